//! The DNS names and addresses in the serving certificate.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pintle_kinds::bootstrap::first_address;
use pintle_meta::names::dns1123_subdomain;

use super::bootstrap;
use crate::{Config, machine};

/// The most addresses of the machine that a certificate names. A node of a large cluster may have
/// thousands.
const ADDRESSES_MAX: usize = 64;

/// The addresses under which clients may reach the server: the one that it listens on, the
/// advertised one, and that of the service `default/kubernetes` for each range. Clients reach a
/// server that listens on all of the machine's addresses at each of them. The configuration adds
/// addresses that only the administrator knows.
pub(super) fn addresses(config: &Config) -> Vec<IpAddr> {
    let services = bootstrap::service_ranges(config).into_iter().filter_map(first_address);
    let configured = config.tls_names.iter().filter_map(|name| name.parse().ok());
    let mut addresses: Vec<IpAddr> =
        services.chain(config.advertise_address).chain(configured).collect();
    if config.bind_address.is_unspecified() {
        addresses.extend(of_machine(config.bind_address, machine::addresses()));
    } else {
        addresses.push(config.bind_address);
    }
    addresses
}

/// The configured names, and the host name if the server listens on all of the machine's addresses.
pub(super) fn dns_names(config: &Config) -> Vec<String> {
    let name = machine::hostname().to_lowercase();
    let is_named = config.bind_address.is_unspecified() && dns1123_subdomain(&name).is_empty();
    let configured = config.tls_names.iter().filter(|name| name.parse::<IpAddr>().is_err());
    is_named.then_some(name).into_iter().chain(configured.cloned()).collect()
}

/// The addresses at which clients reach a server that listens on `bind`: `0.0.0.0` means all IPv4
/// addresses, `::` all addresses. Link-local addresses are left out, and so are the loopback
/// addresses, which every certificate has.
fn of_machine(bind: IpAddr, all: Vec<IpAddr>) -> impl Iterator<Item = IpAddr> {
    let is_reachable = move |address: &IpAddr| match address {
        IpAddr::V4(address) => *address != Ipv4Addr::LOCALHOST && !address.is_link_local(),
        IpAddr::V6(address) => {
            bind.is_ipv6() && *address != Ipv6Addr::LOCALHOST && !address.is_unicast_link_local()
        }
    };
    all.into_iter().filter(is_reachable).take(ADDRESSES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(config: &Config) -> Vec<String> {
        addresses(config).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_certificate_names_the_bound_and_the_advertised_address_and_those_of_the_service() {
        let config = Config {
            bind_address: IpAddr::from([192, 0, 2, 7]),
            advertise_address: Some(IpAddr::from([198, 51, 100, 7])),
            service_cluster_ip_range: "10.96.0.0/12, fd00:1::/112".to_owned(),
            tls_names: ["pintle.example", "203.0.113.7"].map(str::to_owned).to_vec(),
            ..Config::default()
        };
        assert_eq!(
            found(&config),
            ["10.96.0.1", "fd00:1::1", "198.51.100.7", "203.0.113.7", "192.0.2.7"]
        );
        assert_eq!(dns_names(&config), ["pintle.example"]);
    }

    #[test]
    fn an_unspecified_address_stands_for_those_of_the_machine() {
        let all: Vec<IpAddr> =
            ["127.0.0.1", "192.0.2.7", "169.254.1.1", "::1", "fe80::1", "fd00::7"]
                .iter()
                .map(|address| address.parse().expect("an address"))
                .collect();
        for (bind, expected) in [("0.0.0.0", &["192.0.2.7"][..]), ("::", &["192.0.2.7", "fd00::7"])]
        {
            let bind = bind.parse().expect("an address");
            let found: Vec<_> =
                of_machine(bind, all.clone()).map(|address| address.to_string()).collect();
            assert_eq!(found, expected, "{bind}");
        }
    }
}
