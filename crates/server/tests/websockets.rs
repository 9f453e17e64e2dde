//! Watches over WebSockets (WS-08), with the client of the crate `tungstenite`.

#![allow(clippy::unwrap_used, reason = "a test that cannot connect fails")]

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use pintle_server::{Config, FeatureGates, Running, Server};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tungstenite::client::client_with_config;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{ClientRequestBuilder, Error, HandshakeError, Message, WebSocket};

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// The deadline of a read. Only a test that fails waits for so long.
const TIMEOUT: Duration = Duration::from_secs(120);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Connects as the administrator or without credentials.
fn connect(server: &Running, as_admin: bool) -> Stream {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(server.ca_pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = if as_admin {
        let chain = CertificateDer::pem_slice_iter(server.admin().certificate_pem.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(server.admin().key_pem.as_bytes()).unwrap();
        config.with_client_auth_cert(chain.collect::<Result<_, _>>().unwrap(), key).unwrap()
    } else {
        config.with_no_client_auth()
    };
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(server.url().trim_start_matches("https://")).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    StreamOwned::new(connection, socket)
}

/// Opens a watch. The error is the status code of a refusal.
fn watch(
    stream: Stream,
    query: &str,
    accept: &str,
    subprotocols: &[&str],
) -> Result<WebSocket<Stream>, u16> {
    let uri = format!("wss://localhost{MAPS}?watch=true&{query}").parse().unwrap();
    let mut request = ClientRequestBuilder::new(uri).with_header("Accept", accept);
    for subprotocol in subprotocols {
        request = request.with_sub_protocol(*subprotocol);
    }
    match client_with_config(request, stream, None) {
        Ok((socket, _)) => Ok(socket),
        Err(HandshakeError::Failure(Error::Http(answer))) => Err(answer.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

/// Creates a ConfigMap with `bytes` bytes of data.
fn create(server: &Running, name: &str, bytes: usize) {
    use std::io::{Read, Write};
    let body =
        format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"k":"{}"}}}}"#, "x".repeat(bytes));
    let mut stream = connect(server, true);
    let head = format!("POST {MAPS} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer); // the server may close without a close_notify
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

/// Starts a server and runs `work` on a separate thread, because the client blocks.
async fn with_server(work: impl FnOnce(&Running) + Send + 'static) {
    let mut config = Config::ephemeral();
    config.feature_gates = FeatureGates::parse(["CBORServingAndStorage=true"]).unwrap();
    let server = Server::start(config).await.unwrap();
    tokio::task::spawn_blocking(move || work(&server)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_is_a_message() {
    with_server(|server| {
        let names = "fieldSelector=metadata.name!=kube-root-ca.crt";
        let open = |accept| watch(connect(server, true), names, accept, &[]).unwrap();
        let mut json = open("application/json");
        let mut protobuf = open("application/vnd.kubernetes.protobuf");
        let mut cbor = open("application/cbor");
        let mut table = open("application/json;as=Table;g=meta.k8s.io;v=v1");
        for (name, bytes) in [("small", 1), ("medium", 1_000), ("large", 100_000)] {
            create(server, name, bytes);
        }
        for name in ["small", "medium", "large"] {
            for socket in [&mut json, &mut table] {
                let Message::Text(text) = socket.read().unwrap() else { panic!("is text") };
                assert!(text.starts_with(r#"{"type":"ADDED","object":{"kind":""#), "{text}");
                assert!(text.contains(name) && text.ends_with("}\n"), "{text}");
            }
            let Message::Binary(event) = protobuf.read().unwrap() else { panic!("is binary") };
            assert!(event.starts_with(b"\n\x05ADDED\x12"), "{event:?}");
            let Message::Binary(event) = cbor.read().unwrap() else { panic!("is binary") };
            assert!(event.starts_with(&[0xd9, 0xd9, 0xf7, 0xa2]), "a map of two: {event:?}");
        }
        // The initial events of a later watch are separate messages, too.
        let mut late = open("application/json");
        for name in ["large", "medium", "small"] {
            let text = late.read().unwrap();
            assert!(text.to_text().unwrap().contains(&format!(r#""name":"{name}""#)), "{text}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn client_and_server_can_close_a_watch() {
    with_server(|server| {
        let mut socket =
            watch(connect(server, true), "resourceVersion=0", "*/*", &["mine"]).unwrap();
        // The server ignores messages and responds to pings.
        socket.send(Message::Text("x".repeat(100_000).into())).unwrap();
        socket.send(Message::Ping("ping".into())).unwrap();
        let answer = loop {
            match socket.read().unwrap() {
                Message::Text(_) => {} // the event of the ConfigMap kube-root-ca.crt
                other => break other,
            }
        };
        assert_eq!(answer, Message::Pong("ping".into()));
        socket.close(None).unwrap();
        let end = loop {
            match socket.read() {
                Ok(_) => {}
                Err(end) => break end,
            }
        };
        assert!(matches!(end, Error::ConnectionClosed), "{end}");

        let mut socket = watch(connect(server, true), "timeoutSeconds=1", "*/*", &[]).unwrap();
        let reason = loop {
            match socket.read().unwrap() {
                Message::Text(_) => {}
                Message::Close(frame) => break frame.unwrap().code,
                other => panic!("{other}"),
            }
        };
        assert_eq!(reason, CloseCode::Normal);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_watch_gets_a_status_code() {
    with_server(|server| {
        let refused = |stream, query, accept, subprotocols: &[&str]| {
            watch(stream, query, accept, subprotocols).err()
        };
        assert_eq!(refused(connect(server, true), "resourceVersion=x", "*/*", &[]), Some(400));
        assert_eq!(refused(connect(server, true), "", "application/yaml", &[]), Some(406));
        assert_eq!(refused(connect(server, true), "", "*/*", &["a", "b"]), Some(400));
        assert_eq!(refused(connect(server, false), "", "*/*", &[]), Some(403));
        // Browsers send tokens as subprotocols.
        let token = "base64url.bearer.authorization.k8s.io.bm9ib2R5";
        assert_eq!(refused(connect(server, false), "", "*/*", &[token, "mine"]), Some(401));
    })
    .await;
}
