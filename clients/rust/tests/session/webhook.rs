//! A webhook: an HTTPS server with its own certificate, which responds as the test says and records
//! its requests.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::TIMEOUT;

/// The response to a request, given its path: the `response`, whose uid is the request's unless it
/// has one; a text, which is the whole body; a number, which is the status, with the body `no`; or
/// null, which closes the connection without a response.
pub(crate) type Answer = dyn Fn(&str, &Value) -> Value + Send + Sync;

pub(crate) struct Webhook {
    pub(crate) url: String,
    /// The webhook's certificate, which is self-signed.
    pub(crate) ca_bundle: String,
    /// The port in `url`.
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<Value>>>,
    connections: Arc<AtomicUsize>,
}

impl Webhook {
    /// Starts the server.
    pub(crate) fn start(
        answer: impl Fn(&str, &Value) -> Value + Send + Sync + 'static,
    ) -> Result<Self> {
        let names = ["localhost", "127.0.0.1", "hook.t.svc"].map(str::to_owned);
        let certified = rcgen::generate_simple_self_signed(names)?;
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der());
        let key = key.map_err(|why| anyhow::anyhow!("{why}"))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)?;
        let (config, answer) = (Arc::new(config), Arc::new(answer));
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let url = format!("https://localhost:{port}");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (memory, number) = (requests.clone(), connections.clone());
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                number.fetch_add(1, Ordering::Relaxed);
                let (config, answer, requests) = (config.clone(), answer.clone(), memory.clone());
                // The server under test reports connections that end early.
                std::thread::spawn(move || converse(socket, config, &*answer, &requests));
            }
        });
        let ca_bundle = STANDARD.encode(certified.cert.pem());
        Ok(Self { url, ca_bundle, port, requests, connections })
    }

    /// The number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.requests.lock().clone()
    }

    /// The requests so far, except those about the ConfigMap of the cluster's CA, which a
    /// controller writes into every namespace at any time.
    pub(crate) fn requests_about_the_test(&self) -> Vec<Value> {
        let mut requests = self.requests();
        requests.retain(|review| review["name"] != "kube-root-ca.crt");
        requests
    }
}

/// Serves requests until either side closes the connection.
fn converse(
    socket: TcpStream,
    config: Arc<ServerConfig>,
    answer: &Answer,
    requests: &Mutex<Vec<Value>>,
) -> Result<()> {
    socket.set_read_timeout(Some(TIMEOUT))?;
    let mut stream = StreamOwned::new(ServerConnection::new(config)?, socket);
    loop {
        let (path, review) = read(&mut stream)?;
        let mut response = answer(&path, &review["request"]);
        requests.lock().push(review["request"].clone());
        let (status, body) = match &mut response {
            Value::Null => return Ok(()),
            Value::String(text) => (200, std::mem::take(text)),
            Value::Number(status) => (status.as_u64().context("no status")?, "no".to_owned()),
            response => {
                if response.get("uid").is_none() {
                    response["uid"] = review["request"]["uid"].clone();
                }
                let (version, kind) = (&review["apiVersion"], &review["kind"]);
                let review = json!({"apiVersion": version, "kind": kind, "response": response});
                (200, review.to_string())
            }
        };
        let head = format!("HTTP/1.1 {status} -\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes())?;
        stream.flush()?;
    }
}

/// A request's path and body.
fn read(stream: &mut impl Read) -> Result<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer)?;
        ensure!(read > 0, "the server closed the connection");
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.context("no length")?.parse()? {
            let path = head.split(' ').nth(1).context("no path")?.to_owned();
            return Ok((path, serde_json::from_str::<Value>(body)?));
        }
    }
}
