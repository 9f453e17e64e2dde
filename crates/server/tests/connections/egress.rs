//! Connections to backends through an egress proxy (`--egress-selector-config-file`).

use std::sync::Arc;

use http::Method;
use parking_lot::Mutex;
use pintle_server::{Config, Egress, EgressTls, ProxiedAddresses, Server, Transport};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_rustls::TlsAcceptor;

use super::client::{PODS, get, read, request, send, server};
use super::kubelet::Kubelet;
use super::streams::{echo, spdy};

/// The request lines that a proxy received.
pub(crate) type Asked = Arc<Mutex<Vec<String>>>;

/// Serves one CONNECT request: connects to the requested address, or responds 403 if `refuses`.
async fn tunnel(stream: impl AsyncRead + AsyncWrite + Unpin, asked: Asked, refuses: bool) {
    tunnel_to(None, stream, asked, refuses).await;
}

/// Like [`tunnel`], but connects to `backend`, if there is one, whatever address is requested.
async fn tunnel_to(
    backend: Option<&str>,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    asked: Asked,
    refuses: bool,
) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let to = line.split(' ').nth(1).unwrap().to_owned();
    asked.lock().push(line.trim_end().to_owned());
    while stream.read_line(&mut line).await.unwrap() > 2 {}
    if refuses {
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await.unwrap();
        return;
    }
    let mut backend = TcpStream::connect(backend.unwrap_or(&to)).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut stream, &mut backend).await; // until a side closes
}

/// Starts a proxy that connects each client to one backend.
pub(crate) async fn proxy_to(backend: String) -> (Egress, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let asked = Asked::default();
    let known = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (backend, known) = (backend.clone(), known.clone());
            tokio::spawn(async move { tunnel_to(Some(&backend), stream, known, false).await });
        }
    });
    (Egress::HttpConnect(Transport::Tcp(at, None)), asked)
}

async fn proxy(refuses: bool) -> (Egress, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let asked = Asked::default();
    let known = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(tunnel(stream, known.clone(), refuses));
        }
    });
    (Egress::HttpConnect(Transport::Tcp(at, None)), asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn kubelets_are_reached_through_a_proxy() {
    let kubelet = Kubelet::start(false).await;
    let (egress, asked) = proxy(false).await;
    let server = server(&kubelet, |config| {
        config.egress.cluster = egress;
        config.proxied_addresses = ProxiedAddresses::Any;
    })
    .await;
    let (code, text) = get(&server, &format!("{PODS}/p/log?container=c")).await;
    assert!(code == 200 && text.contains("reads /containerLogs/default/p/c"), "{text}");
    let answer = send(&server, spdy("exec?container=echoes&command=sh&stdout=true")).await;
    assert_eq!(echo(answer, b"any bytes").await, b"any bytes");
    let path = "/api/v1/nodes/n/proxy/containerLogs/default/p/c";
    assert_eq!(read(send(&server, request(Method::GET, path)).await).await.0, 200);
    let expected = format!("CONNECT 127.0.0.1:{} HTTP/1.1", kubelet.port);
    assert_eq!(*asked.lock(), vec![expected; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_can_listen_on_a_unix_socket() {
    let kubelet = Kubelet::start(false).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let (listener, asked) = (UnixListener::bind(&path).unwrap(), Asked::default());
    let known = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(tunnel(stream, known.clone(), false));
        }
    });
    let server = server(&kubelet, |config| {
        config.egress.cluster = Egress::HttpConnect(Transport::Unix(path));
    })
    .await;
    assert_eq!(get(&server, &format!("{PODS}/p/log?container=c")).await.0, 200);
    assert_eq!(asked.lock().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_proxy_is_reported_to_the_client() {
    let kubelet = Kubelet::start(false).await;
    let (egress, _) = proxy(true).await;
    let server = server(&kubelet, |config| config.egress.cluster = egress).await;
    let (code, text) = get(&server, &format!("{PODS}/p/log?container=c")).await;
    let why = format!("while dialing 127.0.0.1:{}, code 403: 403 Forbidden", kubelet.port);
    assert!(code == 500 && text.contains(&why), "{text}");
}

/// A certificate authority for proxies and clients, with its files and a client certificate.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.crt"), issuer.pem()).unwrap();
        let authority = Self { issuer, directory };
        let (certificate, key) = authority.certify("client");
        std::fs::write(authority.directory.path().join("client.crt"), certificate.pem()).unwrap();
        let path = authority.directory.path().join("client.key");
        std::fs::write(path, key.serialize_pem()).unwrap();
        authority
    }

    fn certify(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// Starts a proxy named `proxy.test` that accepts clients with a certificate of this authority.
    async fn proxy(&self) -> (String, Asked) {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let (certificate, key) = self.certify("proxy.test");
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients.build().unwrap())
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let (acceptor, asked) = (TlsAcceptor::from(Arc::new(config)), Asked::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let known = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, known) = (acceptor.clone(), known.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        tunnel(stream, known, false).await;
                    }
                });
            }
        });
        (at, asked)
    }

    /// A configuration that trusts proxies of this authority, with the client certificate of
    /// `client`.
    fn tls(&self, client: &Self, server_name: Option<&str>) -> EgressTls {
        let (own, client) = (self.directory.path(), client.directory.path());
        EgressTls {
            ca_bundle: Some(own.join("ca.crt")),
            client_cert: client.join("client.crt"),
            client_key: client.join("client.key"),
            server_name: server_name.map(str::to_owned),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_and_server_authenticate_each_other_by_certificates() {
    let (authority, another) = (Authority::new(), Authority::new());
    let kubelet = Kubelet::start(false).await;
    let (at, asked) = authority.proxy().await;
    let named = Some("proxy.test");
    // The name, the authority and the client's certificate must be right.
    for (tls, why) in [
        (authority.tls(&authority, named), None),
        (authority.tls(&authority, None), Some("because it doesn't contain any IP SANs")),
        (another.tls(&authority, named), Some("x509: certificate signed by unknown authority")),
        (authority.tls(&another, named), Some("CONNECT")),
    ] {
        let egress = Egress::HttpConnect(Transport::Tcp(at.clone(), Some(tls)));
        let server = server(&kubelet, |config| config.egress.cluster = egress).await;
        let (code, text) = get(&server, &format!("{PODS}/p/log?container=c")).await;
        match why {
            None => assert_eq!(code, 200, "{text}"),
            Some(why) => assert!(code == 500 && text.contains(why), "{why}: {text}"),
        }
        assert_eq!(asked.lock().len(), 1, "only the first handshake succeeds");
        let (_, metrics) = get(&server, "/metrics").await;
        let dials = "apiserver_egress_dialer_dial";
        let started =
            format!("{dials}_start_total{{protocol=\"http_connect\",transport=\"tcp\"}} 1");
        let took = format!(
            "{dials}_duration_seconds_count{{protocol=\"http_connect\",transport=\"tcp\"}} 1"
        );
        assert!(metrics.contains(&started));
        assert_eq!(metrics.contains(&took), why.is_none());
        assert_eq!(metrics.contains(&format!("{dials}_failure_count{{")), why.is_some());
    }
}

#[tokio::test]
async fn the_server_does_not_start_without_its_client_key_for_the_proxy() {
    let authority = Authority::new();
    std::fs::remove_file(authority.directory.path().join("client.key")).unwrap();
    let mut config = Config::ephemeral();
    let tls = authority.tls(&authority, None);
    config.egress.cluster =
        Egress::HttpConnect(Transport::Tcp("127.0.0.1:1".to_owned(), Some(tls)));
    let why = Server::start(config).await.err().unwrap().to_string();
    assert!(why.starts_with("--egress-selector-config-file"), "{why}");
}
