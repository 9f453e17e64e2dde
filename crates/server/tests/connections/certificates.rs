//! Replacement of certificate files while the server runs. Upstream:
//! `test/integration/apiserver/certreload`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use pintle_server::{Config, Mode, NamedServingFiles, Running, Server};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::client::{TIMEOUT, create, get, request};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn params(common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}

fn authority(common_name: &str) -> Authority {
    let mut params = params(common_name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A serving certificate and its key, self-signed.
fn serving(common_name: &str, dns_names: &[&str]) -> (String, String) {
    let mut params = params(common_name);
    let names = dns_names.iter().map(|name| (*name).try_into().unwrap());
    params.subject_alt_names = names.map(rcgen::SanType::DnsName).collect();
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// A client that trusts each server, records its certificate, and may have a client certificate.
#[derive(Clone, Debug)]
struct Client {
    provider: Arc<CryptoProvider>,
    identity: Option<Arc<CertifiedKey>>,
    /// The subjects of the server's certificate and of the client authorities that the server
    /// names.
    shown: Arc<Mutex<(String, Vec<String>)>>,
}

impl Client {
    fn new() -> Self {
        let provider = Arc::new(aws_lc_rs::default_provider());
        Self { provider, identity: None, shown: Arc::default() }
    }

    fn with_certificate(common_name: &str, authority: &Authority) -> Self {
        let client = Self::new();
        let key = KeyPair::generate().unwrap();
        let leaf = params(common_name).signed_by(&key, authority).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        let key = client.provider.key_provider.load_private_key(key).unwrap();
        let certified = CertifiedKey::new(vec![leaf.der().clone()], key);
        Self { identity: Some(Arc::new(certified)), ..client }
    }

    /// Connects with a name for SNI; an IP address sends no SNI.
    async fn connect(&self, server: &Running, name: &str) -> SendRequest<Full<Bytes>> {
        let this = Arc::new(self.clone());
        let config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(this.clone())
            .with_client_cert_resolver(this);
        let address = server.url().trim_start_matches("https://");
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// Connects and returns the subjects of the server's certificate and of the client authorities.
    async fn shown(&self, server: &Running, name: &str) -> (String, Vec<String>) {
        drop(self.connect(server, name).await);
        self.shown.lock().clone()
    }
}

impl ServerCertVerifier for Client {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let (_, leaf) = x509_parser::parse_x509_certificate(leaf).unwrap();
        self.shown.lock().0 = leaf.subject().to_string();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ResolvesClientCert for Client {
    fn resolve(&self, authorities: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let name = |name: &&[u8]| {
            use x509_parser::prelude::FromDer;
            x509_parser::x509::X509Name::from_der(name).unwrap().1.to_string()
        };
        self.shown.lock().1 = authorities.iter().map(name).collect();
        self.identity.clone()
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// A directory of certificate files.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn pair(&self, name: &str, (certificate, key): &(String, String)) -> (PathBuf, PathBuf) {
        // The key is written first, so that for a moment key and certificate do not fit.
        let key = self.write(&format!("{name}.key"), key);
        (self.write(&format!("{name}.crt"), certificate), key)
    }

    async fn serve(change: impl FnOnce(&mut Config)) -> Running {
        let mut config = Config::ephemeral();
        change(&mut config);
        Server::start(config).await.unwrap()
    }
}

/// Calls `ask` until it returns the expected value.
pub(crate) async fn until<T: PartialEq + std::fmt::Debug>(expected: T, ask: impl AsyncFn() -> T) {
    let began = Instant::now();
    loop {
        let found = ask().await;
        if found == expected {
            return;
        }
        assert!(began.elapsed() < TIMEOUT, "{found:?} is not {expected:?}");
    }
}

/// Posts a SelfSubjectReview. Returns the status code and the user's name.
async fn whoami(
    connection: &mut SendRequest<Full<Bytes>>,
    headers: &[(&str, &str)],
) -> (u16, String) {
    let mut request =
        request(http::Method::POST, "/apis/authentication.k8s.io/v1/selfsubjectreviews");
    *request.body_mut() =
        Full::from(r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#);
    let mut add = |name: &str, value: &str| {
        let name: http::HeaderName = name.parse().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
    };
    [("host", "localhost"), ("content-type", "application/json")]
        .iter()
        .chain(headers)
        .for_each(|(name, value)| add(name, value));
    connection.ready().await.unwrap();
    let answer = connection.send_request(request).await.unwrap();
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let body: String = String::from_utf8(body.to_vec()).unwrap();
    let name = body.split(r#""username":""#).nth(1).and_then(|rest| rest.split('"').next());
    (code, name.unwrap_or_default().to_owned())
}

/// Upstream: TestClientCA.
#[tokio::test(flavor = "multi_thread")]
async fn certreload_client_ca() {
    let files = Files::new();
    let [clients, others, proxies, other_proxies] =
        ["clients", "webhook-test.default.svc", "proxies", "My Client"].map(authority);
    let server = Files::serve(|config| {
        config.client_ca_file = Some(files.write("client.crt", &clients.pem()));
        config.request_header.client_ca_file = Some(files.write("proxy.crt", &proxies.pem()));
    })
    .await;
    let hints = || async { Client::new().shown(&server, "localhost").await.1 };
    assert_eq!(hints().await, ["CN=kubernetes", "CN=clients", "CN=proxies"]);
    let jane = Client::with_certificate("jane", &clients);
    let joe = Client::with_certificate("joe", &others);
    let proxy = Client::with_certificate("proxy", &proxies);
    let mut jane = jane.connect(&server, "localhost").await;
    let mut joe = joe.connect(&server, "localhost").await;
    let mut proxy = proxy.connect(&server, "localhost").await;
    let ann = [("x-remote-user", "ann")];
    assert_eq!(whoami(&mut jane, &[]).await, (201, "jane".to_owned()));
    assert_eq!(whoami(&mut joe, &[]).await.0, 401);
    assert_eq!(whoami(&mut proxy, &ann).await, (201, "ann".to_owned()));

    files.write("client.crt", &others.pem());
    files.write("proxy.crt", &other_proxies.pem());
    let expected = ["CN=kubernetes", "CN=webhook-test.default.svc", "CN=My Client"];
    until(expected.map(str::to_owned).to_vec(), hints).await;
    // The new authorities also apply to open connections.
    assert_eq!(whoami(&mut jane, &[]).await.0, 401);
    assert_eq!(whoami(&mut joe, &[]).await, (201, "joe".to_owned()));
    assert_eq!(whoami(&mut proxy, &ann).await.0, 401);

    // The ConfigMap for extension API servers has the old and the new authorities, because another
    // server may still use the old ones.
    let map = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let lines = |authority: &Authority| authority.pem().lines().nth(2).unwrap().to_owned();
    let all = [&clients, &others, &proxies, &other_proxies].map(lines);
    until(true, || async {
        let (_, text) = get(&server, map).await;
        all.iter().all(|line| text.contains(line))
    })
    .await;
    server.shutdown().await;
}

/// As in Go, a CA counts only while it is valid, whatever its certificates say.
#[tokio::test(flavor = "multi_thread")]
async fn authorities_that_have_expired_issue_no_valid_certificate() {
    let files = Files::new();
    let expired = |name| {
        let mut params = params(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (valid, old, proxies) = (authority("valid"), expired("old"), expired("proxies"));
    let server = Files::serve(|config| {
        let clients = [valid.pem(), old.pem()].concat();
        config.client_ca_file = Some(files.write("client.crt", &clients));
        config.request_header.client_ca_file = Some(files.write("proxy.crt", &proxies.pem()));
    })
    .await;
    let ann = [("x-remote-user", "ann")];
    for (authority, headers, expected) in [
        (&valid, &[][..], (201, "jane".to_owned())),
        (&old, &[], (401, String::new())),
        (&proxies, &ann, (401, String::new())),
    ] {
        let client = Client::with_certificate("jane", authority);
        let mut connection = client.connect(&server, "localhost").await;
        assert_eq!(whoami(&mut connection, headers).await, expected);
    }
    server.shutdown().await;
}

/// Upstream: TestServingCert. While only the key is new, the old certificate stays in use.
#[tokio::test(flavor = "multi_thread")]
async fn certreload_serving_cert() {
    let files = Files::new();
    let server = Files::serve(|config| {
        config.tls_files = Some(files.pair("tls", &serving("first", &["localhost"])));
    })
    .await;
    let client = Client::new();
    let shown = || async { client.shown(&server, "localhost").await.0 };
    assert_eq!(shown().await, "CN=first");
    files.pair("tls", &serving("second", &["localhost"]));
    until("CN=second".to_owned(), shown).await;
    // Kubernetes replaces the files of a volume by changing a symbolic link.
    let (certificate, key) = files.pair("third", &serving("third", &["localhost"]));
    link(&key, &files.path("tls.key"));
    link(&certificate, &files.path("tls.crt"));
    until("CN=third".to_owned(), shown).await;
    server.shutdown().await;
}

fn link(to: &Path, at: &Path) {
    let beside = at.with_extension("new");
    std::os::unix::fs::symlink(to, &beside).unwrap();
    fs::rename(&beside, at).unwrap();
}

/// A file system may not respond. Here it is a pipe, whose readers wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_file_that_does_not_respond_stops_no_controller() {
    use rustix::fs::{CWD, FileType, Mode, OFlags};
    let files = Files::new();
    let server = Files::serve(|config| {
        config.tls_files = Some(files.pair("tls", &serving("first", &["localhost"])));
    })
    .await;
    let pipe = files.path("pipe");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fs::rename(&pipe, files.path("tls.crt")).unwrap();
    // A pipe can be opened in this way only while the server reads it.
    let flags = OFlags::WRONLY | OFlags::NONBLOCK;
    let open = || rustix::fs::open(files.path("tls.crt"), flags, Mode::empty()).ok();
    let began = Instant::now();
    let writer = loop {
        if let Some(writer) = open() {
            break writer;
        }
        assert!(began.elapsed() < TIMEOUT, "the server does not read the file");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    create(&server, "/api/v1/namespaces", r#"{"metadata":{"name":"new"}}"#).await;
    let account = "/api/v1/namespaces/new/serviceaccounts/default";
    until(200, async || get(&server, account).await.0).await;
    drop(writer);
    server.shutdown().await;
}

/// Upstream: TestSNICert, and the rules of names: apiserver/pkg/server/dynamiccertificates,
/// named_certificates_test.go and server_test.go.
#[tokio::test(flavor = "multi_thread")]
async fn certreload_sni_cert() {
    let files = Files::new();
    let named = |name: &str, pair: &(String, String), names: &[&str]| {
        let (certificate, key) = files.pair(name, pair);
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        NamedServingFiles { certificate, key, names }
    };
    let server = Files::serve(|config| {
        config.tls_files = Some(files.pair("tls", &serving("serving", &["localhost"])));
        config.tls_named_files = vec![
            named("a", &serving("foo", &["foo", "*.example.com", "both.example.com"]), &[]),
            named("b", &serving("bar", &["www.example.com", "foo"]), &[]),
            named("c", &serving("explicit", &["own.test"]), &["foo", "*.test"]),
            named("d", &serving("address", &["address.test"]), &["127.0.0.1"]),
            named("e", &serving("*.wild.org", &["www.wild.org"]), &[]),
        ];
    })
    .await;
    let client = Client::new();
    for (name, expected) in [
        // Names in the flag come before names in certificates, and exact names before wildcards.
        ("foo", "explicit"),
        ("FOO", "explicit"),
        ("any.test", "explicit"),
        ("www.example.com", "bar"),
        ("a.example.com", "foo"),
        ("both.example.com", "foo"),
        ("a.b.example.com", "serving"),
        ("bar", "bar"),
        ("a.wild.org", "*.wild.org"),
        ("localhost", "serving"),
        ("unknown", "serving"),
        // A client without SNI gets the certificate for the address.
        ("127.0.0.1", "address"),
    ] {
        let expected = format!("CN={expected}");
        assert_eq!(client.shown(&server, name).await.0, expected, "{name}");
    }
    files.pair("b", &serving("again", &["www.example.com"]));
    until("CN=again".to_owned(), || async { client.shown(&server, "www.example.com").await.0 })
        .await;
    assert_eq!(client.shown(&server, "bar").await.0, "CN=serving");
    server.shutdown().await;
}

/// If clients and front proxies shared an authority, each client could claim to be any user. A
/// reload refuses that as the start does.
#[tokio::test(flavor = "multi_thread")]
async fn a_reload_refuses_an_authority_of_both_clients_and_front_proxies() {
    let files = Files::new();
    let [clients, proxies] = ["clients", "proxies"].map(authority);
    let server = Files::serve(|config| {
        config.authorization_modes = vec![Mode::Rbac];
        config.client_ca_file = Some(files.write("client.crt", &clients.pem()));
        config.request_header.client_ca_file = Some(files.write("proxy.crt", &proxies.pem()));
        config.tls_files = Some(files.pair("tls", &serving("first", &["localhost"])));
    })
    .await;
    files.write("proxy.crt", &clients.pem());
    let client = Client::with_certificate("jane", &clients);
    let shown = || async { client.shown(&server, "localhost").await.0 };
    let ann = [("x-remote-user", "ann")];
    let user = || async { whoami(&mut client.connect(&server, "localhost").await, &ann).await.1 };
    for _ in 0..100 {
        assert_eq!(user().await, "jane");
    }
    // With a separate authority for front proxies, the reload works again.
    files.write("proxy.crt", &authority("more proxies").pem());
    files.pair("tls", &serving("second", &["localhost"]));
    until("CN=second".to_owned(), shown).await;
    assert_eq!(user().await, "jane");
    server.shutdown().await;
}
