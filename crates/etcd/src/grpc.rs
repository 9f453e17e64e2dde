//! gRPC over one HTTP/2 connection: calls with one answer, and streams in both directions.
//!
//! Purpose: framing and statuses. A message is five bytes (no compression, length) and its protobuf; a
//! call ends with `grpc-status` and `grpc-message` in the trailers, or in the headers where there is no
//! message at all.
//!
//! Must not know: what the messages mean, which endpoint it is, deadlines.
//!
//! Invariant: [`Error::Unreachable`] is given only where the request has certainly not been sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prost::Message;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;

use crate::error::{Code, Error};

/// The bytes before each message.
const PREFIX_BYTES: usize = 5;

/// The longest message that is read: etcd's own limit for a transaction is 2 MB, but a page of a range or
/// the events of many transactions come in one.
const MESSAGE_BYTES_MAX: usize = 512 << 20;

/// How much a stream, and a whole connection, may be sent before it is read: a page of a range at once.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// How often a connection with a call under way is asked for a sign of life, and how long that may take.
/// etcd refuses clients that ask more often than every 5 s (--grpc-keepalive-min-time).
const PING_INTERVAL: Duration = Duration::from_secs(6);
const PING_PATIENCE: Duration = Duration::from_secs(3);

/// Where a connection goes.
#[derive(Clone)]
pub(crate) struct Endpoint {
    uri: Uri,
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
}

impl Endpoint {
    /// The endpoint of a URL, with TLS or without by its scheme.
    pub(crate) fn new(url: &str, tls: &Arc<ClientConfig>) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Configuration(format!("etcd endpoint {url:?}: {why}"));
        let uri: Uri = url.parse().map_err(|_| wrong("not a URL"))?;
        let host = uri.host().ok_or_else(|| wrong("no host"))?.trim_matches(['[', ']']).to_owned();
        let tls = match uri.scheme_str() {
            Some("http") => None,
            Some("https") => Some(tls.clone()),
            _ => return Err(wrong("neither http nor https")),
        };
        let port = uri.port_u16().unwrap_or(2379);
        Ok(Self { host, port, tls, uri })
    }

    /// The URI of a method of this endpoint.
    fn method(&self, method: &'static str) -> Result<Uri, Error> {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        Uri::builder()
            .scheme(if self.tls.is_some() { "https" } else { "http" })
            .authority(authority)
            .path_and_query(method)
            .build()
            .map_err(|why| Error::Configuration(format!("etcd endpoint {}: {why}", self.uri)))
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.uri.fmt(f)
    }
}

/// A connection; calls on it may run at the same time.
#[derive(Clone)]
pub(crate) struct Connection {
    endpoint: Endpoint,
    sender: SendRequest<Outgoing>,
}

impl Connection {
    /// Connects to an endpoint.
    pub(crate) async fn open(endpoint: &Endpoint) -> Result<Self, Error> {
        let failed =
            |why: &dyn std::fmt::Display| Error::Unreachable(format!("{}: {why}", endpoint.uri));
        let address = (endpoint.host.as_str(), endpoint.port);
        let stream = TcpStream::connect(address).await.map_err(|why| failed(&why))?;
        let _ = stream.set_nodelay(true); // only slower without
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_PATIENCE);
        let sender = match &endpoint.tls {
            None => {
                let handshake = builder.handshake(TokioIo::new(stream)).await;
                let (sender, connection) = handshake.map_err(|why| failed(&why))?;
                // It ends with its senders, or when the server leaves; either is seen at the next call.
                tokio::spawn(connection);
                sender
            }
            Some(tls) => {
                let name = ServerName::try_from(endpoint.host.clone());
                let name = name.map_err(|why| failed(&why))?;
                let stream = TlsConnector::from(tls.clone()).connect(name, stream).await;
                let stream = TokioIo::new(stream.map_err(|why| failed(&why))?);
                let handshake = builder.handshake(stream).await;
                let (sender, connection) = handshake.map_err(|why| failed(&why))?;
                tokio::spawn(connection);
                sender
            }
        };
        Ok(Self { endpoint: endpoint.clone(), sender })
    }

    /// Whether no further call can be made on it.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// A call with one answer.
    pub(crate) async fn call<A: Message + Default>(
        &self,
        method: &'static str,
        request: &impl Message,
    ) -> Result<A, Error> {
        let mut answers = self.begin(method, Outgoing::One(Some(framed(request)))).await?;
        let Some(answer) = answers.next().await? else {
            return Err(Error::Lost("an answer without a message".to_owned()));
        };
        match answers.next::<A>().await? {
            None => Ok(answer),
            Some(_) => Err(Error::Lost("two answers to one request".to_owned())),
        }
    }

    /// A call with a stream of requests, of which this is the first, and one of answers. It is made when
    /// the server begins to answer.
    pub(crate) async fn stream<R: Message>(
        &self,
        method: &'static str,
        first: &R,
    ) -> Result<(Requests, Answers), Error> {
        let (requests, body) = mpsc::channel(REQUESTS_MAX);
        let requests = Requests(requests);
        requests.send(first)?;
        Ok((requests, self.begin(method, Outgoing::Many(body)).await?))
    }

    async fn begin(&self, method: &'static str, body: Outgoing) -> Result<Answers, Error> {
        let request = Request::post(self.endpoint.method(method)?)
            .header(TE, "trailers")
            .header(CONTENT_TYPE, "application/grpc")
            .body(body)
            .map_err(|why| Error::Configuration(why.to_string()))?;
        let mut sender = self.sender.clone();
        let unsent = |why: hyper::Error| Error::Unreachable(format!("{}: {why}", self.endpoint));
        sender.ready().await.map_err(unsent)?;
        let answer = sender.send_request(request).await.map_err(|why| match why.is_canceled() {
            true => unsent(why),
            false => Error::Lost(format!("{}: {why}", self.endpoint)),
        })?;
        let (head, body) = answer.into_parts();
        if head.status != StatusCode::OK {
            return Err(Error::Lost(format!("{}: HTTP {}", self.endpoint, head.status)));
        }
        status(&head.headers).unwrap_or(Ok(()))?;
        Ok(Answers { body, buffer: BytesMut::new() })
    }
}

/// How many requests of a stream may wait to be sent.
const REQUESTS_MAX: usize = 4;

/// The requests of a stream; the server sees its end when this is dropped.
pub(crate) struct Requests(mpsc::Sender<Bytes>);

impl Requests {
    /// Sends a request, without waiting: a stream that does not take it has ended or is stuck.
    pub(crate) fn send(&self, request: &impl Message) -> Result<(), Error> {
        let sent = self.0.try_send(framed(request));
        sent.map_err(|_| Error::Lost("the stream takes no requests".to_owned()))
    }
}

/// The answers of a call.
pub(crate) struct Answers {
    body: Incoming,
    buffer: BytesMut,
}

impl Answers {
    /// The next answer; `None` at the end of a call that went well. Nothing is lost when the future is
    /// dropped.
    pub(crate) async fn next<A: Message + Default>(&mut self) -> Result<Option<A>, Error> {
        loop {
            if let Some(message) = unframed(&mut self.buffer)? {
                let answer = A::decode(message);
                return answer.map(Some).map_err(|why| Error::Lost(why.to_string()));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.buffer.extend_from_slice(&data),
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        let lost = || Err(Error::Lost("an answer without a status".to_owned()));
                        return status(&trailers).unwrap_or_else(lost).map(|()| None);
                    }
                },
                Some(Err(why)) => return Err(Error::Lost(why.to_string())),
                None => return Err(Error::Lost("the answer was cut off".to_owned())),
            }
        }
    }
}

/// A message with what stands before it.
fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(PREFIX_BYTES + length);
    bytes.put_u8(0);
    // A request is far below 4 GiB: etcd takes 2 MiB.
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode_raw(&mut bytes);
    bytes.freeze()
}

/// Takes the next message, if all of it is there.
fn unframed(buffer: &mut BytesMut) -> Result<Option<Bytes>, Error> {
    let Some((&[compressed, a, b, c, d], rest)) = buffer.split_first_chunk::<PREFIX_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if compressed != 0 || length > MESSAGE_BYTES_MAX {
        return Err(Error::Lost(format!("a message of {length} bytes, compressed {compressed}")));
    }
    if rest.len() < length {
        buffer.reserve(PREFIX_BYTES + length - buffer.len());
        return Ok(None);
    }
    let mut message = buffer.split_to(PREFIX_BYTES + length).freeze();
    Ok(Some(message.split_off(PREFIX_BYTES)))
}

/// What headers or trailers say of the outcome, if anything.
fn status(headers: &HeaderMap) -> Option<Result<(), Error>> {
    let code = headers.get("grpc-status")?.to_str().ok().and_then(|code| code.parse().ok());
    let code = code.map_or(Code::UNKNOWN, Code);
    if code == Code::OK {
        return Some(Ok(()));
    }
    let message = headers.get("grpc-message").map_or(&b""[..], |message| message.as_bytes());
    Some(Err(Error::of_status(code, unescaped(message))))
}

/// The text of a message whose bytes beyond ASCII are `%XX`.
fn unescaped(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| byte == b'%');
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The body of a request: one message, or as many as come.
enum Outgoing {
    One(Option<Bytes>),
    Many(mpsc::Receiver<Bytes>),
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::One(message) => Poll::Ready(message.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Many(messages) => {
                messages.poll_recv(context).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::One(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::CompactionRequest;

    /// A message is taken when it is whole, wherever it was cut.
    #[test]
    fn messages_are_put_together() {
        let messages = [CompactionRequest { revision: 7 }, CompactionRequest { revision: 0 }];
        let wire: Vec<u8> = messages.iter().flat_map(framed).collect();
        for cut in 0..=wire.len() {
            let (mut buffer, mut found) = (BytesMut::new(), Vec::new());
            for part in [&wire[..cut], &wire[cut..]] {
                buffer.extend_from_slice(part);
                while let Some(message) = unframed(&mut buffer).unwrap() {
                    found.push(CompactionRequest::decode(message).unwrap());
                }
            }
            assert_eq!((found.as_slice(), buffer.len()), (&messages[..], 0), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_no_message_ends_the_call() {
        for wire in [[1, 0, 0, 0, 0], [0, 255, 255, 255, 255]] {
            assert!(unframed(&mut BytesMut::from(&wire[..])).is_err(), "{wire:?}");
        }
    }

    #[test]
    fn texts_of_statuses_are_unescaped() {
        for (text, expected) in
            [("a b", "a b"), ("%41%c3%bc", "Aü"), ("100%", "100%"), ("%zz", "%zz")]
        {
            assert_eq!(unescaped(text.as_bytes()), expected);
        }
    }
}
