//! The parts of a request's head that events contain.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use http::header::{HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::request::Parts;
use http::uri::PathAndQuery;
use pintle_trace::Timing;

use crate::header_text::{lossy, text};

/// The longest user agent that is recorded whole, in bytes (upstream: maxUserAgentLength).
const USER_AGENT_BYTES_MAX: usize = 1024;
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// A request as it was received.
pub(crate) struct Received<'a> {
    pub(crate) head: &'a Parts,
    pub(crate) audit_id: &'a HeaderValue,
    /// The address of the connection's peer.
    pub(crate) from: IpAddr,
    pub(crate) at_unix_micros: i64,
    /// The time that the request spends in each layer.
    pub(crate) timing: &'a Arc<Timing>,
}

/// The recorded parts of a request's head. They share the connection's buffer instead of copying
/// it.
pub(super) struct Head {
    pub(super) audit_id: HeaderValue,
    uri: Option<PathAndQuery>,
    user_agent: Option<HeaderValue>,
    pub(super) source_ips: Vec<IpAddr>,
    pub(super) received_unix_micros: i64,
    /// The size of all headers and of the URI: what is recorded keeps the connection's buffer.
    bytes: usize,
}

impl Received<'_> {
    pub(super) fn head(&self) -> Head {
        let headers = &self.head.headers;
        let uri = self.head.uri.path_and_query();
        let of_headers = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        let bytes = uri.map_or(0, |uri| uri.as_str().len()) + of_headers.sum::<usize>();
        Head {
            audit_id: self.audit_id.clone(),
            uri: uri.cloned(),
            user_agent: headers.get(USER_AGENT).cloned(),
            source_ips: source_ips(headers, self.from),
            received_unix_micros: self.at_unix_micros,
            bytes,
        }
    }
}

impl Head {
    /// Its approximate size in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes + self.source_ips.capacity() * size_of::<IpAddr>()
    }

    /// The path and the query.
    pub(super) fn uri(&self) -> &str {
        self.uri.as_ref().map_or("", PathAndQuery::as_str)
    }

    /// The user agent, truncated to the recorded length.
    pub(super) fn user_agent(&self) -> Cow<'_, str> {
        let agent = self.user_agent.as_ref().map_or(&b""[..], HeaderValue::as_bytes);
        match agent.get(..USER_AGENT_BYTES_MAX) {
            Some(start) if agent.len() > USER_AGENT_BYTES_MAX => {
                Cow::Owned(format!("{}...TRUNCATED", lossy(start)))
            }
            _ => lossy(agent),
        }
    }
}

/// The addresses of the client and the proxies, from the request's headers, and the peer's address.
fn source_ips(headers: &HeaderMap, from: IpAddr) -> Vec<IpAddr> {
    let first = |name| headers.get(name).map(text);
    let mut ips: Vec<IpAddr> = Vec::with_capacity(1);
    if let Some(forwarded) = first(FORWARDED_FOR) {
        ips.extend(forwarded.split(',').filter_map(|part| address(part.trim())));
    }
    let real = first(REAL_IP).and_then(|text| address(&text));
    ips.extend(real.filter(|ip| !ips.contains(ip)));
    let from = from.to_canonical();
    if ips.last() != Some(&from) {
        ips.push(from);
    }
    ips
}

/// Parses an address as Go before 1.17 did: the numbers of IPv4 may have leading zeros.
fn address(text: &str) -> Option<IpAddr> {
    let plain = |number: &str| match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    let parsed = match text.contains(':') {
        true => text.parse(),
        false => text.split('.').map(plain).collect::<Vec<_>>().join(".").parse(),
    };
    parsed.ok().map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn source_ips_are_upstreams() {
        for (pairs, expected) in [
            (&[][..], "172.16.0.1"),
            (&[("x-forwarded-for", "1.1.1.1, 8.8.8.8")], "1.1.1.1 8.8.8.8 172.16.0.1"),
            (&[("x-forwarded-for", "x, ::ffff:1.1.1.1")], "1.1.1.1 172.16.0.1"),
            (&[("x-forwarded-for", "010.000.00.1,1.1.1,::1%x")], "10.0.0.1 172.16.0.1"),
            (&[("x-real-ip", "10.0.0.1")], "10.0.0.1 172.16.0.1"),
            (&[("x-real-ip", "10.0.0.1, 1.1.1.1")], "172.16.0.1"),
            (
                &[("x-forwarded-for", "1.1.1.1,10.0.0.1"), ("x-real-ip", "1.1.1.1")],
                "1.1.1.1 10.0.0.1 172.16.0.1",
            ),
            (&[("x-forwarded-for", "2001:db8::1,172.16.0.1")], "2001:db8::1 172.16.0.1"),
        ] {
            let ips = source_ips(&headers(pairs), "172.16.0.1".parse().unwrap());
            let texts: Vec<_> = ips.iter().map(ToString::to_string).collect();
            assert_eq!(texts.join(" "), expected, "{pairs:?}");
        }
    }

    #[test]
    fn long_user_agents_are_truncated() {
        let agent = |text: &str| {
            let head = Head {
                audit_id: HeaderValue::from_static("a"),
                uri: None,
                user_agent: HeaderValue::from_str(text).ok(),
                source_ips: Vec::new(),
                bytes: 0,
                received_unix_micros: 0,
            };
            head.user_agent().into_owned()
        };
        let long = "a".repeat(1024);
        assert_eq!(agent(&long), long);
        assert_eq!(agent(&format!("{long}a")), format!("{long}...TRUNCATED"));
        assert_eq!(agent(""), "");
    }
}
