//! Restricts the addresses that proxied requests may go to: global unicast addresses only, so
//! neither loopback nor link-local ones (upstream: `isProxyableHostname`).

use std::net::{IpAddr, SocketAddr};

use super::{Backend, dial};
use crate::config::ProxiedAddresses;

impl ProxiedAddresses {
    /// Resolves a backend and checks its addresses. The backend is then dialled at these addresses
    /// and not resolved again, because its name may mean another address by then (CVE-2020-8562).
    pub(crate) async fn find(self, mut backend: Backend) -> Result<Backend, Refused> {
        let (host, port) = backend.authority.rsplit_once(':').unwrap_or((&backend.authority, ""));
        let port = port.parse().map_err(|_| Refused::Port(port.to_owned()))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let found = dial::look_up(host, port).await.map_err(Refused::Unknown)?;
        if found.is_empty() || !found.iter().all(|address| self.allow(address)) {
            return Err(Refused::Address);
        }
        backend.addresses = Some(found.into());
        Ok(backend)
    }

    fn allow(self, address: &SocketAddr) -> bool {
        self == Self::Any || is_global_unicast(address.ip())
    }
}

/// Why a backend is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// Its address is not allowed.
    #[error("address not allowed")]
    Address,
    /// Its host cannot be resolved.
    #[error("{0}")]
    Unknown(String),
    /// The port does not exist.
    #[error("dial tcp: address {0}: invalid port")]
    Port(String),
}

/// True for a global unicast address (upstream: `IsGlobalUnicast`).
fn is_global_unicast(ip: IpAddr) -> bool {
    let ip = ip.to_canonical(); // ::ffff:127.0.0.1 is 127.0.0.1
    let is_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !(ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_local)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::Dialer;

    #[test]
    fn only_global_unicast_addresses_are_allowed() {
        for (ip, expected) in [
            ("10.0.0.1", true),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("fd00::1", true),
            ("::1", false),
            ("::", false),
            ("fe80::1", false),
            ("ff02::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:169.254.169.254", false),
            ("::ffff:10.0.0.1", true),
        ] {
            assert_eq!(is_global_unicast(ip.parse().unwrap()), expected, "{ip}");
        }
    }

    /// A name may resolve to an allowed address when it is checked, and to another when it is
    /// dialled.
    #[tokio::test]
    async fn cve_2020_8562_only_checked_addresses_are_dialled() {
        let backend = |authority: &str| Backend {
            authority: authority.to_owned(),
            name: None,
            tls: None,
            addresses: None,
            dialer: Dialer::Direct,
        };
        for authority in ["127.0.0.1:1", "localhost:1", "[::1]:1", "169.254.169.254:80"] {
            let refused = ProxiedAddresses::GlobalUnicast.find(backend(authority)).await;
            assert!(matches!(refused.err(), Some(Refused::Address)), "{authority}");
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = listener.local_addr().unwrap();
        let mut found = ProxiedAddresses::Any.find(backend(&there.to_string())).await.unwrap();
        found.authority = "a-name-that-nobody-has.invalid:1".to_owned();
        assert!(dial::connect(&found).await.is_ok());
    }
}
