//! The proxies of outgoing connections: `--egress-selector-config-file` (upstream:
//! `EgressSelectorConfiguration`).

use std::path::PathBuf;

use pintle_value::Value;

/// The supported versions of the file.
const VERSIONS: [&str; 2] = ["apiserver.k8s.io/v1beta1", "apiserver.k8s.io/v1alpha1"];

/// The proxies by destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EgressSelector {
    /// For nodes, pods and services: kubelets, proxied requests, extension API servers, webhooks
    /// that name a service; and for OpenID providers that select `cluster`.
    pub cluster: Egress,
    /// For webhooks that have a URL, and for OpenID providers that select `controlplane`.
    pub control_plane: Egress,
}

/// A kind of connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Egress {
    /// No proxy.
    #[default]
    Direct,
    /// A proxy that supports HTTP CONNECT.
    HttpConnect(Transport),
}

/// The transport to a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP to `host:port`, with or without TLS.
    Tcp(String, Option<EgressTls>),
    /// A Unix socket.
    Unix(PathBuf),
}

/// The CA of a proxy, and the client certificate for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressTls {
    /// The proxy's CAs as PEM; by default the system's.
    pub ca_bundle: Option<PathBuf>,
    /// The client certificate.
    pub client_cert: PathBuf,
    /// The key of the client certificate.
    pub client_key: PathBuf,
    /// The name that the proxy's certificate must have; by default the URL's host.
    pub server_name: Option<String>,
}

impl EgressSelector {
    /// Reads an `EgressSelectorConfiguration`.
    ///
    /// # Errors
    /// Describes the member that is invalid or not supported.
    pub fn read(file: &Value) -> Result<Self, String> {
        let (kind, version) = (text(file, "kind"), text(file, "apiVersion"));
        if kind != "EgressSelectorConfiguration" || !VERSIONS.contains(&version) {
            return Err(format!("no kind {kind:?} is registered for version {version:?}"));
        }
        only(file, &["kind", "apiVersion", "egressSelections"])?;
        let mut selector = Self::default();
        let mut seen = Vec::new();
        for selection in items(file, "egressSelections") {
            only(selection, &["name", "connection"])?;
            let name = text(selection, "name").to_ascii_lowercase();
            if seen.contains(&name) {
                return Err(format!("service.connection: Duplicate value: {name:?}"));
            }
            let egress = connection(selection.get("connection").unwrap_or(&Value::Null))?;
            match name.as_str() {
                "cluster" => selector.cluster = egress,
                "controlplane" => selector.control_plane = egress,
                "master" if version.ends_with("v1alpha1") => selector.control_plane = egress,
                "etcd" if egress == Egress::Direct => {}
                "etcd" => return Err("etcd can only be reached directly".to_owned()),
                _ => {
                    return Err(format!(
                        "service.connection: Unsupported value: {name:?}: supported values: \
                         \"cluster\", \"controlplane\", \"etcd\""
                    ));
                }
            }
            seen.push(name);
        }
        Ok(selector)
    }
}

fn connection(value: &Value) -> Result<Egress, String> {
    only(value, &["proxyProtocol", "transport"])?;
    let transport = value.get("transport").filter(|transport| !transport.is_null());
    match (text(value, "proxyProtocol"), transport) {
        ("Direct", None) => Ok(Egress::Direct),
        ("Direct", Some(_)) => Err(
            "service.connection.transport: Invalid value: \"direct\": config must be absent for direct connect"
                .to_owned(),
        ),
        ("HTTPConnect", Some(value)) => transport_of(value).map(Egress::HttpConnect),
        ("HTTPConnect", None) => Err(
            "service.connection.transport: Required value: transport must be set for HTTPConnect"
                .to_owned(),
        ),
        ("GRPC", _) => Err("the protocol GRPC is not implemented; HTTPConnect is".to_owned()),
        (other, _) => Err(format!(
            "service.connection.protocol: Unsupported value: {other:?}: supported values: \"Direct\", \
             \"HTTPConnect\""
        )),
    }
}

fn transport_of(value: &Value) -> Result<Transport, String> {
    only(value, &["tcp", "uds"])?;
    match (present(value, "tcp"), present(value, "uds")) {
        (Some(tcp), None) => {
            only(tcp, &["url", "tlsConfig"])?;
            let (url, tls) = (text(tcp, "url"), present(tcp, "tlsConfig"));
            match (url.strip_prefix("http://"), url.strip_prefix("https://"), tls) {
                (Some(at), _, None) => Ok(Transport::Tcp(authority(at, 80), None)),
                (Some(_), _, Some(_)) => {
                    Err(wrong("tlsConfig", "config must not be present when using HTTP"))
                }
                (_, Some(at), Some(tls)) => {
                    Ok(Transport::Tcp(authority(at, 443), Some(tls_of(tls)?)))
                }
                (_, Some(_), None) => {
                    Err(wrong("tlsConfig", "TLSConfig must be present when using HTTPS"))
                }
                _ => Err(wrong("url", "supported connection protocols are http:// and https://")),
            }
        }
        (None, Some(uds)) => {
            only(uds, &["udsName"])?;
            match text(uds, "udsName") {
                "" => Err(wrong("udsName", "must be present for UDS connections")),
                name => Ok(Transport::Unix(name.into())),
            }
        }
        (Some(_), Some(_)) => Err(wrong("tcp", "TCP and UDS cannot both be set")),
        (None, None) => Err(wrong("tcp", "One of TCP or UDS must be set")),
    }
}

fn tls_of(value: &Value) -> Result<EgressTls, String> {
    only(value, &["caBundle", "clientCert", "clientKey", "tlsServerName"])?;
    let file =
        |member| Some(text(value, member)).filter(|name| !name.is_empty()).map(PathBuf::from);
    let required = |member| {
        file(member).ok_or_else(|| wrong("tlsConfig", &format!("Using TLS requires {member}")))
    };
    Ok(EgressTls {
        ca_bundle: file("caBundle"),
        client_cert: required("clientCert")?,
        client_key: required("clientKey")?,
        server_name: Some(text(value, "tlsServerName").to_owned()).filter(|name| !name.is_empty()),
    })
}

/// `host:port` of a URL without its scheme.
fn authority(url: &str, port: u16) -> String {
    let host = url.split('/').next().unwrap_or_default();
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port { host.to_owned() } else { format!("{host}:{port}") }
}

fn wrong(member: &str, why: &str) -> String {
    format!("service.connection.{member}: {why}")
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.str_at(&[member]).unwrap_or_default()
}

fn present<'a>(value: &'a Value, member: &str) -> Option<&'a Value> {
    value.get(member).filter(|value| !value.is_null())
}

fn items<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value.get(member).and_then(Value::as_array).unwrap_or_default()
}

/// Refuses unknown members.
fn only(value: &Value, members: &[&str]) -> Result<(), String> {
    let all = value.as_object().into_iter().flat_map(|object| object.iter());
    let unknown = all.map(|(name, _)| &**name).find(|name| !members.contains(name));
    unknown.map_or(Ok(()), |name| Err(format!("unknown field {name:?}")))
}

#[cfg(test)]
mod tests {
    use pintle_value::yaml;

    use super::*;

    fn read(selections: &str) -> Result<EgressSelector, String> {
        let text = format!(
            "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections: [{selections}]\n"
        );
        EgressSelector::read(&yaml::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn a_destination_type_determines_the_selection() {
        let direct = "{name: etcd, connection: {proxyProtocol: Direct}}";
        assert_eq!(read(direct).unwrap(), EgressSelector::default());
        let both = "{name: Cluster, connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://p:8131', \
            tlsConfig: {caBundle: a, clientCert: b, clientKey: c, tlsServerName: d}}}}}, \
            {name: controlplane, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: /s}}}}";
        let tls = EgressTls {
            ca_bundle: Some("a".into()),
            client_cert: "b".into(),
            client_key: "c".into(),
            server_name: Some("d".to_owned()),
        };
        let expected = EgressSelector {
            cluster: Egress::HttpConnect(Transport::Tcp("p:8131".to_owned(), Some(tls))),
            control_plane: Egress::HttpConnect(Transport::Unix("/s".into())),
        };
        assert_eq!(read(both).unwrap(), expected);
    }

    #[test]
    fn unsupported_members_are_refused_by_name() {
        for (selections, expected) in [
            (
                "{name: cluster, connection: {proxyProtocol: GRPC}}",
                "the protocol GRPC is not implemented",
            ),
            (
                "{name: etcd, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: /s}}}}",
                "etcd can only be reached directly",
            ),
            (
                "{name: cluster, connection: {proxyProtocol: HTTPConnect}}",
                "transport must be set for HTTPConnect",
            ),
            ("{name: nodes, connection: {proxyProtocol: Direct}}", "Unsupported value: \"nodes\""),
            ("{name: cluster, connection: {proxyProtocol: None}}", "Unsupported value: \"None\""),
            (
                "{name: cluster, connection: {proxyProtocol: Direct}, more: 1}",
                "unknown field \"more\"",
            ),
            (
                "{name: cluster, connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://p'}}}}",
                "TLSConfig must be present when using HTTPS",
            ),
            (
                "{name: cluster, connection: {proxyProtocol: Direct}}, {name: cluster, connection: {proxyProtocol: Direct}}",
                "Duplicate value: \"cluster\"",
            ),
        ] {
            let why = read(selections).unwrap_err();
            assert!(why.contains(expected), "{selections}: {why}");
        }
    }
}
