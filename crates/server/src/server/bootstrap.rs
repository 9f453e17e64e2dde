//! The objects that exist once a server is ready (BOOT-01), built from its configuration.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use pintle_controllers::{Environment, bootstrap};
use pintle_effects::PortRepair;
use pintle_kinds::bootstrap::{BootstrapObject, RequestHeader, Settings, objects};

use crate::pki::{ListenerCertificates, OwnFrontProxy};
use crate::{Config, Error};

/// The objects that must exist. `own_authority` is the PEM of the CA by which extension API servers
/// authenticate this server.
pub(super) fn wanted(
    config: &Config,
    address: SocketAddr,
    listener: &ListenerCertificates,
    own_authority: &str,
) -> Arc<[BootstrapObject]> {
    let ranges = service_ranges(config);
    let proxy = &config.request_header;
    let (front_proxy_ca, allowed_names) = front_proxies(config, listener, own_authority);
    let allowed_names = texts(&allowed_names);
    let username_headers = texts(&proxy.username_headers);
    let uid_headers = texts(&proxy.uid_headers);
    let group_headers = texts(&proxy.group_headers);
    let extra_headers_prefix = texts(&proxy.extra_header_prefixes);
    let settings = Settings {
        config: &config.apis(),
        service_ranges: &ranges,
        // Servers that share an etcd publish their addresses by leases (`masterleases`).
        advertise_address: config.etcd.is_none().then(|| advertised_address(config, address)),
        secure_port: address.port(),
        client_ca: Some(&listener.clients.pem),
        request_header: Some(RequestHeader {
            client_ca: &front_proxy_ca,
            allowed_names: &allowed_names,
            username_headers: &username_headers,
            uid_headers: &uid_headers,
            group_headers: &group_headers,
            extra_headers_prefix: &extra_headers_prefix,
        }),
    };
    objects(&settings).into()
}

/// The CAs and names of the front proxies that extension API servers trust. If files configure both
/// the front proxies and this server's client certificate, the server's own CA is not among them.
fn front_proxies(
    config: &Config,
    listener: &ListenerCertificates,
    own: &str,
) -> (String, Vec<String>) {
    let names = &config.request_header.allowed_names;
    let own_name = OwnFrontProxy::NAME.to_owned();
    match listener.front_proxies.as_ref().map(|authorities| &authorities.pem) {
        None => (own.to_owned(), vec![own_name]),
        Some(given) if config.extensions.client_files.is_some() => (given.clone(), names.clone()),
        Some(given) => {
            let authorities = format!("{}\n{own}", given.trim_end());
            // An empty list allows any name.
            let also = (!names.is_empty() && !names.contains(&own_name)).then_some(own_name);
            (authorities, names.iter().cloned().chain(also).collect())
        }
    }
}

/// The ranges of the services' addresses, the primary one first.
pub(super) fn service_ranges(config: &Config) -> Vec<&str> {
    config.service_cluster_ip_range.split(',').map(str::trim).collect()
}

fn texts(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

/// Creates or repairs the record of allocated node ports, and returns the task that repairs it from
/// then on.
pub(super) async fn port_record(
    environment: &Environment,
    config: &Config,
    measures: &Arc<pintle_effects::Measures>,
) -> Result<PortRepair, Error> {
    let mut repair = PortRepair::new(config.service_node_port_range, measures.clone());
    let repaired = repair.repair(&environment.registry).await;
    repaired.map_err(|status| Error::Bootstrap { reason: status.message })?;
    Ok(repair)
}

/// Creates missing objects before the server is ready.
pub(super) async fn ensure(
    environment: &Environment,
    objects: &Arc<[BootstrapObject]>,
) -> Result<(), Error> {
    match bootstrap::ensure(environment, objects).await.into_iter().next() {
        None => Ok(()),
        Some(status) => Err(Error::Bootstrap { reason: status.message }),
    }
}

/// The address at which the cluster's members reach the server: the configured one, or the one that
/// it listens on; if that is unspecified, the source address of this machine's default route.
pub(super) fn advertised(config: &Config, address: SocketAddr) -> SocketAddr {
    SocketAddr::new(advertised_address(config, address), address.port())
}

fn advertised_address(config: &Config, address: SocketAddr) -> IpAddr {
    if let Some(advertised) = config.advertise_address {
        return advertised;
    }
    if !address.ip().is_unspecified() {
        return address.ip();
    }
    // Connecting a UDP socket sends nothing; it only looks up the route.
    let (from, to) = if address.is_ipv4() {
        ("0.0.0.0:0", "192.0.2.1:9")
    } else {
        ("[::]:0", "[2001:db8::1]:9")
    };
    let route = UdpSocket::bind(from).and_then(|socket| {
        socket.connect(to)?;
        socket.local_addr()
    });
    route.map_or(address.ip(), |local| local.ip())
}
