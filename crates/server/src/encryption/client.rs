//! A client of KMS plugins: the KMS v2 API, as unary gRPC calls over a Unix socket.
//! upstream: `k8s.io/kms/apis/v2/api.proto`, `kmsv2/grpc_service.go`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use pintle_encryption::Kms;
use prost::Message;
use tokio::net::UnixStream;
use tokio::sync::Mutex;

use super::measures::Measures;
use crate::query::percent_decode;

/// The size limit of a response. A seed and its annotations are far smaller.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// The wait between two attempts to connect to a plugin.
const RETRY_PERIOD: Duration = Duration::from_millis(100);

/// A client of one plugin, with at most one connection.
#[derive(Debug)]
pub(super) struct Client {
    /// The plugin's name.
    name: String,
    measures: Arc<Measures>,
    socket: PathBuf,
    timeout: Duration,
    connection: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

#[derive(Clone, PartialEq, Message)]
struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusResponse {
    #[prost(string, tag = "1")]
    pub(super) version: String,
    #[prost(string, tag = "2")]
    pub(super) healthz: String,
    #[prost(string, tag = "3")]
    pub(super) key_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DecryptRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) ciphertext: Bytes,
    #[prost(string, tag = "2")]
    pub(super) uid: String,
    #[prost(string, tag = "3")]
    pub(super) key_id: String,
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub(super) annotations: BTreeMap<String, Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) plaintext: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) plaintext: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(super) uid: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EncryptResponse {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) ciphertext: Bytes,
    #[prost(string, tag = "2")]
    pub(super) key_id: String,
    #[prost(btree_map = "string, bytes", tag = "3")]
    pub(super) annotations: BTreeMap<String, Bytes>,
}

/// Why a call failed.
#[derive(Debug)]
struct Failure {
    code: &'static str,
    why: String,
    /// True if the plugin has certainly not received the request.
    is_unsent: bool,
}

impl Client {
    /// A client for a plugin's endpoint: `unix:///path`, or `unix:///@name` for an abstract socket.
    pub(super) fn new(kms: &Kms, measures: Arc<Measures>) -> Self {
        let path = kms.endpoint.strip_prefix("unix:").unwrap_or(&kms.endpoint);
        let path = path.strip_prefix("//").unwrap_or(path);
        let socket = match path.strip_prefix("/@").or_else(|| path.strip_prefix('@')) {
            Some(name) => OsString::from(format!("\0{name}")).into(),
            None => PathBuf::from(path),
        };
        let (name, timeout) = (kms.name.clone(), kms.timeout);
        Self { name, measures, socket, timeout, connection: Mutex::new(None) }
    }

    pub(super) async fn status(&self) -> Result<StatusResponse, String> {
        self.call("/v2.KeyManagementService/Status", &StatusRequest {}).await
    }

    pub(super) async fn encrypt(
        &self,
        request: &EncryptRequest,
    ) -> Result<EncryptResponse, String> {
        self.call("/v2.KeyManagementService/Encrypt", request).await
    }

    pub(super) async fn decrypt(
        &self,
        request: &DecryptRequest,
    ) -> Result<DecryptResponse, String> {
        self.call("/v2.KeyManagementService/Decrypt", request).await
    }

    /// Calls a method. As upstream's client (`WaitForReady`), it tries to connect until the timeout.
    async fn call<R: Message + Default>(
        &self,
        method: &'static str,
        request: &impl Message,
    ) -> Result<R, String> {
        let began = Instant::now();
        let (body, mut unsent) = (framed(request), None);
        let attempts = async {
            loop {
                match self.attempt(method, &body).await {
                    Err(failure) if failure.is_unsent => {
                        unsent = Some(failure.why);
                        tokio::time::sleep(RETRY_PERIOD).await;
                    }
                    other => return other,
                }
            }
        };
        let outcome = match tokio::time::timeout(self.timeout, attempts).await {
            Ok(outcome) => outcome,
            Err(_) => {
                *self.connection.lock().await = None; // the connection may be stuck
                let last =
                    unsent.map(|why| format!(", last error: {}: {why}", self.socket.display()));
                let why = format!("context deadline exceeded{}", last.unwrap_or_default());
                Err(failure("DeadlineExceeded", why))
            }
        };
        let code = outcome.as_ref().map_or_else(|failure| failure.code, |_| CODES[0]);
        self.measures.calls.with([code, method, &self.name]).took(began.elapsed());
        outcome
            .map_err(|Failure { code, why, .. }| format!("rpc error: code = {code} desc = {why}"))
    }

    async fn attempt<R: Message + Default>(
        &self,
        method: &'static str,
        body: &Bytes,
    ) -> Result<R, Failure> {
        let mut connection = self.connection().await?;
        let request = Request::post(format!("http://localhost{method}"))
            .header(TE, "trailers")
            .header(CONTENT_TYPE, "application/grpc")
            .body(Full::new(body.clone()))
            .map_err(|why| failure("Internal", why))?;
        let unsent = |why: hyper::Error| Failure { is_unsent: true, ..failure("Unavailable", why) };
        connection.ready().await.map_err(unsent)?;
        let response = connection.send_request(request).await.map_err(|why| {
            let is_unsent = why.is_canceled();
            Failure { is_unsent, ..failure("Unavailable", why) }
        })?;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            return Err(failure("Unavailable", format!("HTTP {}", head.status)));
        }
        check_status(&head.headers)?;
        let collected = Limited::new(body, RESPONSE_BYTES_MAX).collect().await;
        let collected = collected.map_err(|why| failure("Unavailable", why))?;
        if let Some(trailers) = collected.trailers() {
            check_status(trailers)?;
        }
        let bytes = collected.to_bytes();
        let Some((&[0, a, b, c, d], message)) = bytes.split_first_chunk::<5>() else {
            return Err(failure("Internal", "the response contains no uncompressed message"));
        };
        if u32::from_be_bytes([a, b, c, d]) as usize != message.len() {
            return Err(failure(
                "Internal",
                "the response has another length than its header says",
            ));
        }
        R::decode(message).map_err(|why| failure("Internal", why))
    }

    /// The open connection, or a new one if there is none.
    async fn connection(&self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let mut cached = self.connection.lock().await;
        if let Some(connection) = cached.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        let unsent = |why: String| Failure { is_unsent: true, ..failure("Unavailable", why) };
        let stream =
            UnixStream::connect(&self.socket).await.map_err(|why| unsent(why.to_string()))?;
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|why| unsent(why.to_string()))?;
        // The task ends when all senders are dropped or the plugin closes the connection. The next call
        // notices that.
        tokio::spawn(connection);
        Ok(cached.insert(sender).clone())
    }
}

fn failure(code: &'static str, why: impl ToString) -> Failure {
    Failure { code, why: why.to_string(), is_unsent: false }
}

fn framed(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::with_capacity(5 + message.encoded_len());
    bytes.put_u8(0); // not compressed
    bytes.put_u32(u32::try_from(message.encoded_len()).unwrap_or(u32::MAX));
    message.encode_raw(&mut bytes);
    bytes.freeze()
}

/// The names of gRPC's status codes, from 0.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];

/// Returns the error of the `grpc-status` in headers or trailers, if it is one.
fn check_status(headers: &HeaderMap) -> Result<(), Failure> {
    let Some(code) = headers.get("grpc-status") else { return Ok(()) };
    let code = code.to_str().ok().and_then(|code| code.parse::<usize>().ok());
    if code == Some(0) {
        return Ok(());
    }
    let code = code.and_then(|code| CODES.get(code)).copied().unwrap_or("Unknown");
    let why = headers.get("grpc-message").map(|why| String::from_utf8_lossy(why.as_bytes()));
    let why = why.unwrap_or_default();
    let decoded = percent_decode(&why).map(|decoded| decoded.into_owned());
    Err(failure(code, decoded.unwrap_or_else(|| why.into_owned())))
}
