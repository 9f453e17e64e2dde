//! gRPC over one HTTP/2 connection: calls with one response, and bidirectional streams.
//!
//! A call ends with `grpc-status` and `grpc-message` in the trailers, or in the headers if there is
//! no message. [`framing`](crate::framing) has the framing of messages.
//!
//! It must not know what messages mean, which endpoint it uses, or deadlines.
//!
//! Invariant: [`Error::Unreachable`] means that the request was certainly not sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
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
use crate::framing::{framed, unescaped, unframed};
use crate::measures::{Calls, Measures, Method};

/// The flow control windows of a stream and of a connection, large for the pages of ranges.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// The interval of pings on a connection with a call in progress, and their timeout. etcd refuses
/// clients that ping more often than every 5 s (--grpc-keepalive-min-time).
const PING_INTERVAL: Duration = Duration::from_secs(6);
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// An endpoint of etcd.
#[derive(Clone)]
pub(crate) struct Endpoint {
    uri: Uri,
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
}

impl Endpoint {
    /// Parses the URL of an endpoint; the scheme decides about TLS.
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

    /// Returns the URI of a method at this endpoint.
    fn method(&self, method: Method) -> Result<Uri, Error> {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        Uri::builder()
            .scheme(if self.tls.is_some() { "https" } else { "http" })
            .authority(authority)
            .path_and_query(method.path())
            .build()
            .map_err(|why| Error::Configuration(format!("etcd endpoint {}: {why}", self.uri)))
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.uri.fmt(f)
    }
}

/// A connection; calls on it may run concurrently.
#[derive(Clone)]
pub(crate) struct Connection {
    endpoint: Endpoint,
    measures: Arc<Measures>,
    sender: SendRequest<Outgoing>,
}

impl Connection {
    /// Connects to an endpoint.
    pub(crate) async fn open(endpoint: &Endpoint, measures: &Arc<Measures>) -> Result<Self, Error> {
        let failed =
            |why: &dyn std::fmt::Display| Error::Unreachable(format!("{}: {why}", endpoint.uri));
        let address = (endpoint.host.as_str(), endpoint.port);
        let stream = TcpStream::connect(address).await.map_err(|why| failed(&why))?;
        let _ = stream.set_nodelay(true); // without it, calls are only slower
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT);
        let sender = match &endpoint.tls {
            None => {
                let handshake = builder.handshake(TokioIo::new(stream)).await;
                let (sender, connection) = handshake.map_err(|why| failed(&why))?;
                // The task ends with its senders, or when the server disconnects; the next call
                // detects that.
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
        Ok(Self { endpoint: endpoint.clone(), measures: measures.clone(), sender })
    }

    /// Whether the connection can take no further call.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Makes a call with one response.
    pub(crate) async fn call<A: Message + Default>(
        &self,
        method: Method,
        request: &impl Message,
    ) -> Result<A, Error> {
        let mut responses = self.begin(method, Outgoing::One(Some(framed(request)))).await?;
        let Some(response) = responses.next().await? else {
            return Err(Error::Lost("etcd ended the call without a response message".to_owned()));
        };
        match responses.next::<A>().await? {
            None => Ok(response),
            Some(_) => {
                Err(Error::Lost("etcd sent two response messages to one request".to_owned()))
            }
        }
    }

    /// Starts a call with a stream of requests, of which `first` is the first, and a stream of
    /// responses. It returns when the server starts to respond.
    pub(crate) async fn stream<R: Message>(
        &self,
        method: Method,
        first: &R,
    ) -> Result<(Requests, Responses), Error> {
        let (requests, body) = mpsc::channel(REQUESTS_MAX);
        let requests = Requests(requests);
        requests.send(first)?;
        Ok((requests, self.begin(method, Outgoing::Many(body)).await?))
    }

    async fn begin(&self, method: Method, body: Outgoing) -> Result<Responses, Error> {
        let request = Request::post(self.endpoint.method(method)?)
            .header(TE, "trailers")
            .header(CONTENT_TYPE, "application/grpc")
            .body(body)
            .map_err(|why| Error::Configuration(why.to_string()))?;
        let mut call = Call { measures: self.measures.clone(), method, has_ended: false };
        call.calls().started.add(1);
        call.calls().sent.add(1);
        let mut sender = self.sender.clone();
        let unsent = |why: hyper::Error| Error::Unreachable(format!("{}: {why}", self.endpoint));
        let response = async {
            sender.ready().await.map_err(unsent)?;
            sender.send_request(request).await.map_err(|why| match why.is_canceled() {
                true => unsent(why),
                false => Error::Lost(format!("{}: {why}", self.endpoint)),
            })
        };
        let response = response.await.inspect_err(|_| call.end(Code::UNAVAILABLE))?;
        let (head, body) = response.into_parts();
        if head.status != StatusCode::OK {
            call.end(Code::UNKNOWN);
            return Err(Error::Lost(format!("{}: HTTP {}", self.endpoint, head.status)));
        }
        if let Some(ending) = Ending::of(&head.headers) {
            call.end(ending.code);
            ending.outcome()?;
        }
        Ok(Responses { body, buffer: BytesMut::new(), call })
    }
}

/// How many requests of a stream may wait to be sent.
const REQUESTS_MAX: usize = 4;

/// The requests of a stream; dropping this ends the stream for the server.
pub(crate) struct Requests(mpsc::Sender<Bytes>);

impl Requests {
    /// Sends a request without waiting: a full channel means that the stream ended or is stuck.
    pub(crate) fn send(&self, request: &impl Message) -> Result<(), Error> {
        let sent = self.0.try_send(framed(request));
        sent.map_err(|_| Error::Lost("the stream takes no requests".to_owned()))
    }
}

/// The responses of a call.
pub(crate) struct Responses {
    body: Incoming,
    buffer: BytesMut,
    call: Call,
}

/// A call in progress, as the measures count it.
struct Call {
    measures: Arc<Measures>,
    method: Method,
    has_ended: bool,
}

impl Call {
    fn calls(&self) -> &Calls {
        self.measures.of(self.method)
    }

    /// Counts the end of the call, once.
    fn end(&mut self, code: Code) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.calls().ended(code);
        }
    }
}

/// Dropping an unfinished call counts as a cancellation.
impl Drop for Call {
    fn drop(&mut self) {
        self.end(Code::CANCELED);
    }
}

impl Responses {
    /// Waits for the next response; `None` at the end of a successful call. Cancel safe.
    pub(crate) async fn next<A: Message + Default>(&mut self) -> Result<Option<A>, Error> {
        loop {
            if let Some(message) = unframed(&mut self.buffer)? {
                self.call.calls().received.add(1);
                let response = A::decode(message);
                return response.map(Some).map_err(|why| Error::Lost(why.to_string()));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.buffer.extend_from_slice(&data),
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        let lost = || Error::Lost("the response has no grpc-status".to_owned());
                        let ending = Ending::of(&trailers);
                        self.call.end(ending.as_ref().map_or(Code::UNKNOWN, |ending| ending.code));
                        return ending.ok_or_else(lost)?.outcome().map(|()| None);
                    }
                },
                Some(Err(why)) => {
                    self.call.end(Code::UNAVAILABLE);
                    return Err(Error::Lost(why.to_string()));
                }
                None => {
                    self.call.end(Code::UNAVAILABLE);
                    return Err(Error::Lost("the response ended before its trailers".to_owned()));
                }
            }
        }
    }
}

/// The outcome in headers or trailers.
struct Ending {
    code: Code,
    message: String,
}

impl Ending {
    /// Reads the outcome; `None` if the headers have none.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let code = headers.get("grpc-status")?.to_str().ok().and_then(|code| code.parse().ok());
        let message = headers.get("grpc-message").map_or(&b""[..], |message| message.as_bytes());
        Some(Self { code: code.map_or(Code::UNKNOWN, Code), message: unescaped(message) })
    }

    fn outcome(self) -> Result<(), Error> {
        match self.code {
            Code::OK => Ok(()),
            code => Err(Error::of_status(code, self.message)),
        }
    }
}

/// The body of a request: one message, or a stream of them.
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
