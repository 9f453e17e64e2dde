//! A client of gRPC services that need no TLS. Each call has one request and one response.

use std::fmt;
use std::path::PathBuf;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::UnixStream;
use tokio::sync::Mutex;

use crate::backends::{self, Backend};
use crate::query::percent_decode;

/// The size limit of a response.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// The address of a service.
pub(crate) enum Destination {
    Unix(PathBuf),
    Tcp(Box<Backend>),
}

/// A client of one service, with its connection if one is open.
pub(crate) struct Channel {
    destination: Destination,
    connection: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let destination: &dyn fmt::Debug = match &self.destination {
            Destination::Unix(path) => path,
            Destination::Tcp(backend) => &backend.authority,
        };
        f.debug_tuple("Channel").field(destination).finish()
    }
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The name of gRPC's status code.
    pub(crate) code: &'static str,
    pub(crate) why: String,
    /// Whether the service has certainly not received the request.
    pub(crate) is_unsent: bool,
}

impl Channel {
    /// A service to which a connection is opened by the first call.
    pub(crate) fn new(destination: Destination) -> Self {
        Self { destination, connection: Mutex::new(None) }
    }

    /// Calls a method once with a [`framed`] message. The caller sets the deadline.
    pub(crate) async fn call<R: Message + Default>(
        &self,
        method: &str,
        body: &Bytes,
    ) -> Result<R, Failure> {
        let mut connection = self.connection().await?;
        let authority = match &self.destination {
            Destination::Unix(_) => "localhost",
            Destination::Tcp(backend) => &backend.authority,
        };
        let request = Request::post(format!("http://{authority}{method}"))
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

    /// Drops the connection, which may be stuck. The next call opens another one.
    pub(crate) async fn reset(&self) {
        *self.connection.lock().await = None;
    }

    /// The open connection, or a new one if none is open.
    async fn connection(&self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let mut cached = self.connection.lock().await;
        if let Some(connection) = cached.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        let unsent = |why: String| Failure { is_unsent: true, ..failure("Unavailable", why) };
        // The spawned task ends when all senders are dropped or the service closes the connection;
        // then the next call opens another one.
        let sender = match &self.destination {
            Destination::Unix(path) => {
                let stream =
                    UnixStream::connect(path).await.map_err(|why| unsent(why.to_string()))?;
                let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
                let (sender, connection) = handshake.map_err(|why| unsent(why.to_string()))?;
                tokio::spawn(connection);
                sender
            }
            Destination::Tcp(backend) => {
                let stream =
                    backends::connect(backend).await.map_err(|why| unsent(why.to_string()))?;
                let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
                let (sender, connection) = handshake.map_err(|why| unsent(why.to_string()))?;
                tokio::spawn(connection);
                sender
            }
        };
        Ok(cached.insert(sender).clone())
    }
}

/// A failure of a request that the service may have received.
pub(crate) fn failure(code: &'static str, why: impl ToString) -> Failure {
    Failure { code, why: why.to_string(), is_unsent: false }
}

/// A message as it is sent: not compressed, behind its length.
pub(crate) fn framed(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::with_capacity(5 + message.encoded_len());
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(message.encoded_len()).unwrap_or(u32::MAX));
    message.encode_raw(&mut bytes);
    bytes.freeze()
}

/// The names of gRPC's status codes, from 0.
pub(crate) const CODES: [&str; 17] = [
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

/// Returns the error that `grpc-status` names in headers or trailers, if it names one.
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
