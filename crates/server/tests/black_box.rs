//! The server over TLS: authentication, flags, limits, shutdown and restart. API scripts test the
//! responses of the API.

#![allow(clippy::unwrap_used, reason = "a test that cannot connect fails")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pintle_server::{Config, Cors, EffectiveVersion, FeatureGates, Mode, Running, Server};
use rcgen::{CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};

/// A certificate and its key, as PEM.
type Identity = (String, String);

/// The client certificate of a request.
#[derive(Clone, Copy)]
enum As<'a> {
    Nobody,
    Somebody(&'a Identity),
    /// With one version of TLS.
    Speaking(&'static SupportedProtocolVersion, &'a Identity),
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

/// A client's connection.
struct Client {
    stream: StreamOwned<ClientConnection, TcpStream>,
}

impl Client {
    fn connect(server: &Running, who: As<'_>) -> Self {
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_slice(server.ca_pem().as_bytes()).unwrap();
        roots.add(ca).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let versions = match who {
            As::Speaking(version, _) => vec![version],
            As::Nobody | As::Somebody(_) => rustls::ALL_VERSIONS.to_vec(),
        };
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .unwrap()
            .with_root_certificates(roots);
        let config = match who {
            As::Nobody => config.with_no_client_auth(),
            As::Somebody((certificate, key)) | As::Speaking(_, (certificate, key)) => {
                let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
                let chain = chain.collect::<Result<_, _>>().unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                let key = provider.key_provider.load_private_key(key).unwrap();
                // This resolver sends any certificate; the usual resolver sends only a suitable
                // one.
                let given = SingleCertAndKey::from(CertifiedKey::new(chain, key));
                config.with_client_cert_resolver(Arc::new(given))
            }
        };
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let socket = TcpStream::connect(server.url().trim_start_matches("https://")).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self { stream: StreamOwned::new(connection, socket) }
    }

    fn send(&mut self, request: &str) {
        self.stream.write_all(request.as_bytes()).unwrap();
        self.stream.flush().unwrap();
    }

    /// Reads until `stop` is true or the connection ends.
    fn read_until(&mut self, stop: impl Fn(&str) -> bool) -> String {
        let mut text = Vec::new();
        let mut buffer = [0; 4096];
        while !stop(&String::from_utf8_lossy(&text)) {
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(count) => text.extend_from_slice(&buffer[..count]),
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    fn answer(&mut self) -> Answer {
        let text = self.read_until(|_| false);
        let (head, body) = text.split_once("\r\n\r\n").expect("an answer has a head");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }
}

/// Sends a request and reads the response. `what` is the method and the path.
fn ask(server: &Running, who: As<'_>, what: &str, headers: &str, body: &str) -> Answer {
    let mut client = Client::connect(server, who);
    let length = body.len();
    client.send(&format!(
        "{what} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\
         {headers}\r\n{body}"
    ));
    client.answer()
}

fn admin(server: &Running) -> Identity {
    (server.admin().certificate_pem.clone(), server.admin().key_pem.clone())
}

/// A certificate authority for clients, separate from the server's.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn identity(&self, user: &str, group: &str, valid_for: Duration) -> Identity {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        let day = Duration::from_secs(24 * 60 * 60);
        params.not_before = (SystemTime::now() - 30 * day).into();
        params.not_after = (SystemTime::now() - 10 * day + valid_for).into();
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

const LONG: Duration = Duration::from_secs(100 * 24 * 60 * 60);
/// Longer than any test.
const FOR_EVER: Duration = Duration::from_secs(24 * 60 * 60);
/// The deadline of a read. Only a test that fails waits for so long.
const TIMEOUT: Duration = Duration::from_secs(120);
const PODS: &str = "GET /api/v1/namespaces/default/pods";

/// Runs `work` on a separate thread, because the client blocks.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_authenticated_by_certificate_or_token() {
    let directory = tempfile::tempdir().unwrap();
    let known = Authority::new("known");
    let file = directory.path().join("clients.pem");
    std::fs::write(&file, &known.pem).unwrap();
    let config = Config { client_ca_file: Some(file), ..Config::ephemeral() };
    let server = Server::start(config).await.unwrap();
    blocking(move || {
        let admin = admin(&server);
        assert_eq!(ask(&server, As::Somebody(&admin), PODS, "", "").status, 200);

        // AUTHN-01, ST-05
        let jane = known.identity("jane", "dev", LONG);
        let refused = ask(&server, As::Somebody(&jane), PODS, "", "");
        assert_eq!(refused.status, 403);
        let message = r#"User \"jane\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\""#;
        assert!(refused.body.contains(message), "{}", refused.body);
        let review = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
        let who = ask(&server, As::Somebody(&jane), review, "", "{}");
        assert_eq!(who.status, 201, "{}", who.body);
        assert!(who.body.contains(r#""groups":["dev","system:authenticated"]"#), "{}", who.body);

        // AUTHN-03, HLT-09, OAS-05
        assert_eq!(ask(&server, As::Nobody, "GET /version", "", "").status, 200);
        assert_eq!(ask(&server, As::Nobody, "GET /readyz", "", "").body, "ok");
        let refused = ask(&server, As::Nobody, PODS, "", "");
        assert_eq!(refused.status, 403);
        assert!(refused.body.contains("system:anonymous"));

        // Invalid credentials get a Status with 401 instead of a failed handshake.
        let unknown = Authority::new("unknown").identity("jane", "system:masters", LONG);
        let expired = known.identity("jane", "system:masters", Duration::ZERO);
        for identity in [&unknown, &expired] {
            let refused = ask(&server, As::Somebody(identity), "GET /version", "", "");
            assert_eq!(refused.status, 401);
            assert!(refused.body.contains(r#""reason":"Unauthorized""#), "{}", refused.body);
        }
        let token = "authorization: Bearer abc\r\n";
        assert_eq!(ask(&server, As::Nobody, "GET /version", token, "").status, 401);
    })
    .await;
}

/// AUTHN-01: `openssl x509 -req` without extensions makes version 1 certificates, which many users
/// have.
#[tokio::test(flavor = "multi_thread")]
async fn x509_version_1_certificates_are_accepted() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/first-version");
    let file = |name: &str| std::fs::read_to_string(format!("{directory}/{name}")).unwrap();
    let (jane, forged, key) = (file("jane.crt"), file("forged.crt"), file("jane.key"));
    let authority = format!("{directory}/ca.crt").into();
    let config = Config { client_ca_file: Some(authority), ..Config::ephemeral() };
    let server = Server::start(config).await.unwrap();
    let other = Server::start(Config::ephemeral()).await.unwrap();
    blocking(move || {
        let review = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
        let (jane, forged) = ((jane, key.clone()), (forged, key));
        for version in [&TLS12, &TLS13] {
            let who = ask(&server, As::Speaking(version, &jane), review, "", "{}");
            assert_eq!(who.status, 201, "{}", who.body);
            let groups = r#""username":"jane","groups":["dev","system:authenticated"]"#;
            assert!(who.body.contains(groups), "{}", who.body);
            // An authority with the same name but another key, and an unknown one.
            for (server, identity) in [(&server, &forged), (&other, &jane)] {
                let refused = ask(server, As::Speaking(version, identity), review, "", "{}");
                assert_eq!(refused.status, 401, "{}", refused.body);
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_anonymous_access_everyone_needs_credentials() {
    let config = Config { anonymous_auth: false, ..Config::ephemeral() };
    let server = Server::start(config).await.unwrap();
    blocking(move || {
        assert_eq!(ask(&server, As::Nobody, "GET /version", "", "").status, 401);
        let admin = admin(&server);
        assert_eq!(ask(&server, As::Somebody(&admin), "GET /version", "", "").status, 200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_response_has_audit_id_and_cache_control() {
    let server = Server::start(Config::ephemeral()).await.unwrap();
    blocking(move || {
        let admin = admin(&server);
        let answer = ask(&server, As::Somebody(&admin), PODS, "audit-id: mine\r\n", "");
        // OAS-09
        assert_eq!(answer.header("audit-id"), Some("mine"));
        assert_eq!(answer.header("cache-control"), Some("no-cache, private"));
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let answer = ask(&server, As::Nobody, "GET /nowhere", "", "");
        assert_eq!(answer.header("audit-id").map(str::len), Some(36));
        let answer = ask(&server, As::Somebody(&admin), "HEAD /apis", "", "");
        assert_eq!((answer.status, answer.body.as_str()), (200, ""));
        assert_ne!(answer.header("content-length"), Some("0"));
    })
    .await;
}

/// A client may send the body of a refused request late, and the next request after it.
#[tokio::test(flavor = "multi_thread")]
async fn the_late_body_of_a_refused_request_does_not_end_the_connection() {
    let server = Server::start(Config::ephemeral()).await.unwrap();
    blocking(move || {
        let mut client = Client::connect(&server, As::Nobody);
        client.send(
            "POST /api/v1/namespaces/default/pods HTTP/1.1\r\nhost: localhost\r\n\
             content-type: application/json\r\ncontent-length: 100000\r\n\r\n",
        );
        let refusal = client.read_until(|text| text.contains("\"code\":403}"));
        assert!(refusal.starts_with("HTTP/1.1 403"), "{refusal}");
        client.send(&" ".repeat(100_000));
        client.send("GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let answer = client.answer();
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn send_initial_events_needs_the_watch_list_gate() {
    for (gate, status) in [("WatchList=true", 200), ("WatchList=false", 422)] {
        let mut config = Config::ephemeral();
        config.feature_gates = FeatureGates::parse([gate]).unwrap();
        let server = Server::start(config).await.unwrap();
        blocking(move || {
            let admin = admin(&server);
            let watch = "GET /api/v1/nodes?watch=1&timeoutSeconds=1&sendInitialEvents=true\
                         &resourceVersionMatch=NotOlderThan";
            let answer = ask(&server, As::Somebody(&admin), watch, "", "");
            assert_eq!(answer.status, status, "{}", answer.body);
            let why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate";
            assert_eq!(answer.body.contains(why), status == 422, "{}", answer.body);
        })
        .await;
    }
}

/// DEP-09
#[tokio::test(flavor = "multi_thread")]
async fn a_server_acts_as_an_older_release() {
    let forward = Config { emulation_forward_compatible: true, ..Config::ephemeral() };
    let refused = Server::start(forward).await.err().map(|error| error.to_string());
    let why = "--emulation-forward-compatible: ServerRunOptions.EmulationForwardCompatible cannot be set to \
               true if the emulation version is the same as the binary version";
    assert_eq!(refused.as_deref(), Some(why));
    let effective_version = EffectiveVersion::parse(["1.34"], []).unwrap();
    let server = Server::start(Config {
        effective_version,
        feature_gates: FeatureGates::parse_for(effective_version, []).unwrap(),
        ..Config::ephemeral()
    });
    let server = server.await.unwrap();
    blocking(move || {
        let admin = admin(&server);
        for (path, text, is_there) in [
            ("/version", "\"emulationMinor\": \"34\"", true),
            ("/version", "\"minCompatibilityMinor\": \"33\"", true),
            ("/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies", true),
            ("/apis/admissionregistration.k8s.io/v1", "mutatingadmissionpolicies", false),
            ("/metrics", "emulation=\"1.34\",min_compat=\"1.33\"", true),
            ("/metrics", "kubernetes_feature_enabled{name=\"AllAlpha\"", true),
            ("/metrics", "kubernetes_feature_enabled{name=\"AtomicFIFO\"", false),
        ] {
            let answer = ask(&server, As::Somebody(&admin), &format!("GET {path}"), "", "");
            assert_eq!(
                (answer.status, answer.body.contains(text)),
                (200, is_there),
                "{path} {text}"
            );
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compression_can_be_switched_off() {
    // CMP-02
    for compresses in [true, false] {
        let mut config = Config::ephemeral();
        let gate = format!("APIResponseCompression={compresses}");
        config.feature_gates = FeatureGates::parse([gate.as_str()]).unwrap();
        let server = Server::start(config).await.unwrap();
        blocking(move || {
            let admin = admin(&server);
            let post = "POST /api/v1/namespaces/default/configmaps";
            let body = format!(
                r#"{{"metadata":{{"name":"long"}},"data":{{"k":"{}"}}}}"#,
                "long ".repeat(40_000)
            );
            assert_eq!(ask(&server, As::Somebody(&admin), post, "", &body).status, 201);
            let mut client = Client::connect(&server, As::Somebody(&admin));
            let get = "GET /api/v1/namespaces/default/configmaps/long HTTP/1.1\r\nhost: localhost\r\n\
                       connection: close\r\naccept-encoding: gzip\r\n\r\n";
            client.send(get);
            let answer = client.answer();
            let expected = compresses.then_some("gzip");
            assert_eq!((answer.status, answer.header("content-encoding")), (200, expected));
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_refuses_all_but_masters() {
    let config = Config {
        priority_and_fairness: false,
        max_mutating_requests_inflight: 1,
        ..Config::ephemeral()
    };
    let server = Server::start(config).await.unwrap();
    blocking(move || {
        let admin = admin(&server);
        let post = "POST /api/v1/namespaces/default/configmaps";
        let body = r#"{"metadata":{"name":"a"}}"#;
        // A request whose body is not complete yet holds the only permit.
        let mut slow = Client::connect(&server, As::Somebody(&admin));
        slow.send(&format!(
            "{post} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        ));
        // The server asks for the body only after the request has its permit.
        let asked = slow.read_until(|text| text.ends_with("\r\n\r\n"));
        assert!(asked.starts_with("HTTP/1.1 100 "), "{asked}");
        let jane = server.signer().client("jane", &[]).unwrap();
        let jane = (jane.certificate_pem, jane.key_pem);
        let review = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let about = r#"{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}"#;
        let refused = ask(&server, As::Somebody(&jane), review, "", about);
        assert_eq!(refused.status, 429); // ST-11, APF-04
        assert_eq!(refused.header("retry-after"), Some("1"));
        let other = r#"{"metadata":{"name":"b"}}"#;
        assert_eq!(ask(&server, As::Somebody(&admin), post, "", other).status, 201);
        // A forbidden request is refused without a permit.
        assert_eq!(ask(&server, As::Nobody, post, "", body).status, 403);
        slow.send(body);
        assert_eq!(slow.answer().status, 201);
        assert_eq!(ask(&server, As::Somebody(&jane), review, "", about).status, 201);
    })
    .await;
}

/// HLT-08: during the delay, connections that are open still work.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_serves_during_its_shutdown_delay_and_is_not_ready() {
    let config = Config { shutdown_delay: FOR_EVER, ..Config::ephemeral() };
    let server = Server::start(config).await.unwrap();
    let (server, mut probe) = blocking(move || {
        let mut probe = Client::connect(&server, As::Nobody);
        probe.send("GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n");
        assert!(probe.read_until(|text| text.ends_with("ok")).starts_with("HTTP/1.1 200 "));
        (server, probe)
    })
    .await;
    let stopping = tokio::spawn(server.shutdown());
    blocking(move || {
        let ready = loop {
            probe.send("GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n");
            let answer =
                probe.read_until(|text| text.ends_with("ok") || text.ends_with("failed\n"));
            if !answer.ends_with("ok") {
                break answer;
            }
        };
        assert!(
            ready.starts_with("HTTP/1.1 500 ") && ready.contains("[-]shutdown failed"),
            "{ready}"
        );
        probe.send("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
        assert!(probe.read_until(|text| text.ends_with("ok")).starts_with("HTTP/1.1 200 "));
    })
    .await;
    stopping.abort();
}

/// HLT-08: the response of a watch ends properly, so that clients resume at another server.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_ends_its_watches() {
    let server = Server::start(Config::ephemeral()).await.unwrap();
    let (server, mut watch) = blocking(move || {
        let admin = admin(&server);
        let mut watch = Client::connect(&server, As::Somebody(&admin));
        watch.send("GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let begun = watch.read_until(|text| text.matches("ADDED").count() >= 4);
        assert!(begun.contains("kube-system"), "{begun}");
        (server, watch)
    })
    .await;
    let stopping = tokio::spawn(server.shutdown());
    let rest = blocking(move || watch.read_until(|_| false)).await;
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    stopping.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_and_certificates_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let config =
        || Config { data_dir: directory.path().join("data"), secure_port: 0, ..Config::default() };
    let get = "GET /api/v1/namespaces/default/configmaps/a";
    let first = Server::start(config()).await.unwrap();
    let (first, admin, before) = blocking(move || {
        let admin = admin(&first);
        let post = "POST /api/v1/namespaces/default/configmaps";
        let body = r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#;
        assert_eq!(ask(&first, As::Somebody(&admin), post, "", body).status, 201);
        let before = ask(&first, As::Somebody(&admin), get, "", "").body;
        (first, admin, before)
    })
    .await;

    // A second server cannot use the directory.
    let second = Server::start(config()).await.err().map(|error| error.to_string());
    assert!(second.as_deref().is_some_and(|e| e.contains("--data-dir")), "{second:?}");

    first.shutdown().await;
    let again = Server::start(config()).await.unwrap();
    blocking(move || {
        // GRP-12; the administrator's certificate is still valid
        let after = ask(&again, As::Somebody(&admin), get, "", "");
        assert_eq!((after.status, after.body), (200, before));
    })
    .await;
}

/// Sends a request until the response satisfies a condition.
fn ask_until(server: &Running, who: As<'_>, what: &str, is_so: impl Fn(&Answer) -> bool) -> Answer {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let answer = ask(server, who, what, "", "");
        if is_so(&answer) {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what}: {} {}", answer.status, answer.body);
    }
}

/// A custom resource definition with the names of the built-in CertificateSigningRequest.
const REQUESTS: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
    "metadata":{"name":"certificatesigningrequests.certificates.k8s.io",
        "annotations":{"api-approved.kubernetes.io":"unapproved"}},
    "spec":{"group":"certificates.k8s.io","scope":"Cluster",
        "names":{"plural":"certificatesigningrequests","kind":"CertificateSigningRequest"},
        "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{
            "type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}"#;

/// The built-in resource stays at a restart, if the definition's status claims that its names are
/// accepted, and when the definition is deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_custom_resource_definition_does_not_replace_a_built_in_resource() {
    const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/\
                       certificatesigningrequests.certificates.k8s.io";
    const CSRS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let directory = tempfile::tempdir().unwrap();
    let config =
        || Config { data_dir: directory.path().join("data"), secure_port: 0, ..Config::default() };
    let check = |server: &Running, admin: &Identity| {
        let who = As::Somebody(admin);
        // An invalid signing request, which claims to be approved, is refused.
        let made_up = r#"{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest",
            "metadata":{"name":"made-up"},"status":{"conditions":[{"type":"Approved"}]}}"#;
        let refused = ask(server, who, &format!("POST {CSRS}"), "", made_up);
        assert_eq!(refused.status, 422, "{}", refused.body);
        let list = ask(server, who, &format!("GET {CSRS}"), "", "");
        assert!(list.body.contains(r#""kind":"CertificateSigningRequestList""#), "{}", list.body);
    };
    let first = Server::start(config()).await.unwrap();
    let (first, admin) = blocking(move || {
        let admin = admin(&first);
        let who = As::Somebody(&admin);
        let made = ask(&first, who, &format!("POST {CRDS}"), "", REQUESTS);
        assert_eq!(made.status, 201, "{}", made.body);
        let refused = ask_until(&first, who, &format!("GET {CRD}"), |crd| {
            crd.body.contains(r#""reason":"ListKindConflict""#)
        });
        assert!(refused.body.contains("is already in use"), "{}", refused.body);
        check(&first, &admin);
        let claim = r#"{"status":{"storedVersions":["v1"],
            "acceptedNames":{"plural":"certificatesigningrequests","singular":"certificatesigningrequest",
                "kind":"CertificateSigningRequest","listKind":"CertificateSigningRequestList"},
            "conditions":[{"type":"NamesAccepted","status":"True","reason":"NoConflicts"},
                {"type":"Established","status":"True","reason":"InitialNamesAccepted"}]}}"#;
        let patch = "content-type: application/merge-patch+json\r\n";
        let claimed = ask(&first, who, &format!("PATCH {CRD}/status"), patch, claim);
        assert_eq!(claimed.status, 200, "{}", claimed.body);
        check(&first, &admin);
        (first, admin)
    })
    .await;
    first.shutdown().await;
    let again = Server::start(config()).await.unwrap();
    blocking(move || {
        let who = As::Somebody(&admin);
        check(&again, &admin);
        let roles = "GET /apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin";
        assert_eq!(ask(&again, who, &format!("DELETE {CRD}"), "", "").status, 200);
        ask_until(&again, who, &format!("GET {CRD}"), |crd| crd.status == 404);
        check(&again, &admin);
        assert_eq!(ask(&again, who, roles, "", "").status, 200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_marked_invalid_is_refused() {
    const SECRET: &str = "/api/v1/namespaces/default/secrets/old";
    let server = Server::start(Config::ephemeral()).await.unwrap();
    blocking(move || {
        let admin = admin(&server);
        let who = As::Somebody(&admin);
        let secret = r#"{"metadata":{"name":"old",
            "annotations":{"kubernetes.io/service-account.name":"default"}},
            "type":"kubernetes.io/service-account-token"}"#;
        ask_until(&server, who, "GET /api/v1/namespaces/default/serviceaccounts/default", |account| {
            account.status == 200
        });
        let made = ask(&server, who, "POST /api/v1/namespaces/default/secrets", "", secret);
        assert_eq!(made.status, 201, "{}", made.body);
        let filled = ask_until(&server, who, &format!("GET {SECRET}"), |secret| {
            secret.body.contains(r#""token":""#)
        });
        let (_, token) = filled.body.split_once(r#""token":""#).unwrap();
        let token = STANDARD.decode(token.split('"').next().unwrap()).unwrap();
        let token = format!("authorization: Bearer {}\r\n", String::from_utf8(token).unwrap());
        let with_token = || ask(&server, As::Nobody, "GET /version", &token, "").status;
        assert_eq!(with_token(), 200);
        let patch = "content-type: application/merge-patch+json\r\n";
        let mark = |date: &str| {
            let label = format!(
                r#"{{"metadata":{{"labels":{{"kubernetes.io/legacy-token-invalid-since":{date}}}}}}}"#
            );
            ask(&server, who, &format!("PATCH {SECRET}"), patch, &label).status
        };
        assert_eq!((mark(r#""2026-01-01""#), with_token()), (200, 401));
        assert_eq!((mark("null"), with_token()), (200, 200));
    })
    .await;
}

/// Credentials with other than ASCII bytes are not ignored.
#[tokio::test(flavor = "multi_thread")]
async fn names_and_tokens_with_other_than_ascii_characters_are_read() {
    let server = Server::start(Config::ephemeral()).await.unwrap();
    blocking(move || {
        let admin = admin(&server);
        let review = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
        let as_another =
            ask(&server, As::Somebody(&admin), review, "impersonate-user: jürgen\r\n", "{}");
        assert!(as_another.body.contains(r#""username":"jürgen""#), "{}", as_another.body);
        let token = "authorization: Bearer tökén\r\n";
        assert_eq!(ask(&server, As::Nobody, "GET /version", token, "").status, 401);
    })
    .await;
}

/// With `AlwaysAllow`, requests without credentials are refused.
#[tokio::test(flavor = "multi_thread")]
async fn always_allow_disables_anonymous_access() {
    let modes = vec![Mode::Rbac, Mode::AlwaysAllow];
    let config = Config { authorization_modes: modes, ..Config::ephemeral() };
    let server = Server::start(config).await.unwrap();
    blocking(move || {
        assert_eq!(ask(&server, As::Nobody, PODS, "", "").status, 401);
        let admin = admin(&server);
        assert_eq!(ask(&server, As::Somebody(&admin), PODS, "", "").status, 200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_an_error_with_a_remedy() {
    let first = Server::start(Config::ephemeral()).await.unwrap();
    let port = first.url().rsplit(':').next().unwrap().parse().unwrap();
    let config = Config { secure_port: port, ..Config::ephemeral() };
    let error = Server::start(config).await.err().unwrap().to_string();
    assert!(error.contains("choose another --secure-port"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_tls_do_no_harm() {
    let server = Server::start(Config::ephemeral()).await.unwrap();
    blocking(move || {
        let address = server.url().trim_start_matches("https://");
        let mut plain = TcpStream::connect(address).unwrap();
        plain.set_read_timeout(Some(TIMEOUT)).unwrap();
        plain.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        plain.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.0 400 "), "{answer}");
        assert!(answer.ends_with("Client sent an HTTP request to an HTTPS server.\n"), "{answer}");
        let mut noise = TcpStream::connect(address).unwrap();
        noise.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        noise.write_all(b"EHLO somewhere\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = noise.read_to_end(&mut answer); // an alert, or nothing
        assert!(!answer.starts_with(b"HTTP/"));
        assert_eq!(ask(&server, As::Nobody, "GET /readyz", "", "").status, 200);
    })
    .await;
}

/// A refusal that comes before the body has been read leaves the connection usable.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_body_does_not_end_the_connection() {
    let server = Server::start(Config::ephemeral()).await.unwrap();
    blocking(move || {
        let admin = admin(&server);
        let mut client = Client::connect(&server, As::Somebody(&admin));
        let body = "x".repeat(200_000);
        client.send(&format!(
            "POST /api/v1/namespaces/default HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
            body.len()
        ));
        client.send(&body);
        client.send("GET /version HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let both = client.read_until(|_| false);
        assert!(both.starts_with("HTTP/1.1 405 "), "{both}");
        assert!(both.contains("HTTP/1.1 200 "), "{both}");
    })
    .await;
}

/// VERB-14: CORS, with preflight requests of browsers.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_allowed_origins_can_send_requests() {
    let cors = Cors::parse([r"//example\.com(:|$)"]).unwrap();
    let server = Server::start(Config { cors, ..Config::ephemeral() }).await.unwrap();
    blocking(move || {
        let (page, stranger) =
            ("origin: https://example.com\r\n", "origin: https://example.org\r\n");
        let allowed =
            |answer: &Answer| answer.header("access-control-allow-origin").map(str::to_owned);
        let preflight = ask(&server, As::Nobody, PREFLIGHT, page, "");
        assert_eq!((preflight.status, preflight.body.as_str()), (204, ""));
        assert_eq!(allowed(&preflight).as_deref(), Some("https://example.com"));
        assert_eq!(preflight.header("access-control-allow-credentials"), Some("true"));
        let refused = ask(&server, As::Nobody, PREFLIGHT, stranger, "");
        assert_eq!((refused.status, allowed(&refused)), (403, None));
        // A page of an allowed origin can read refusals, too.
        let unknown = ask(&server, As::Nobody, PODS, page, "");
        assert_eq!((unknown.status, allowed(&unknown).is_some()), (403, true));
        assert_eq!(allowed(&ask(&server, As::Nobody, PODS, "", "")), None);
    })
    .await;
}

const PREFLIGHT: &str = "OPTIONS /api/v1/namespaces/default/pods";

/// Health checks and reads of small objects are served beside many heavy requests: on a small
/// machine, beside more of them than there are threads.
#[test]
fn heavy_requests_do_not_delay_small_ones() {
    const HEAVY: usize = 6;
    const SMALL: usize = 20;
    let runtime = pintle_server::runtime().unwrap();
    let server = Arc::new(runtime.block_on(Server::start(Config::ephemeral())).unwrap());
    let admin = admin(&server);
    // The dry run is large and valid, and stores nothing.
    let members: Vec<String> = (0..30_000).map(|n| format!(r#""key-{n}":"value""#)).collect();
    let heavy = format!(r#"{{"metadata":{{"name":"x"}},"data":{{{}}}}}"#, members.join(","));
    let answered = AtomicUsize::new(0);
    let over = AtomicBool::new(false);
    thread::scope(|threads| {
        for _ in 0..HEAVY {
            threads.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let what = "POST /api/v1/namespaces/default/configmaps?dryRun=All";
                    let header = "content-type: application/json\r\n";
                    let answer = ask(&server, As::Somebody(&admin), what, header, &heavy);
                    assert_eq!(answer.status, 201, "{}", answer.head);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // Wait until heavy requests are in flight.
        while answered.load(Ordering::Relaxed) < HEAVY {
            thread::yield_now();
        }
        let before = answered.load(Ordering::Relaxed);
        for small in 0..SMALL {
            assert_eq!(ask(&server, As::Nobody, "GET /livez", "", "").body, "ok");
            let what = "GET /api/v1/namespaces/default";
            assert_eq!(ask(&server, As::Somebody(&admin), what, "", "").status, 200, "{small}");
        }
        // If each small request had waited for a thread, at least one heavy request would have
        // ended before it.
        let meanwhile = answered.load(Ordering::Relaxed) - before;
        over.store(true, Ordering::Relaxed);
        assert!(meanwhile < SMALL, "{meanwhile} heavy requests were answered meanwhile");
    });
}
