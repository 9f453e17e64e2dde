//! A gRPC connection to one endpoint of etcd, whose calls are counted.
//!
//! It must not know deadlines, nor what calls mean.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use pintle_grpc::{Code, Failure, Requests, Service, framed};
use prost::Message;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::error::Error;
use crate::measures::{Calls, Measures, Method};

/// The flow control windows of a stream and of a connection, large for the pages of ranges.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// The interval of pings on a connection with a call in progress, and their timeout. etcd refuses
/// clients that ping more often than every 5 s (--grpc-keepalive-min-time).
const PING_INTERVAL: Duration = Duration::from_secs(6);
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// The longest accepted message: etcd's default limit of a request is 2 MiB with gRPC's overhead,
/// but a page of a range, or the events of many transactions, arrive in one message.
const MESSAGE_BYTES_MAX: usize = 512 << 20;

/// An endpoint of etcd.
#[derive(Clone)]
pub(crate) struct Endpoint {
    uri: Uri,
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    service: Arc<Service>,
}

impl Endpoint {
    /// Parses the URL of an endpoint; the scheme decides about TLS.
    pub(crate) fn new(url: &str, tls: &Arc<ClientConfig>) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Configuration(format!("etcd endpoint {url:?}: {why}"));
        let uri: Uri = url.parse().map_err(|_| wrong("not a URL"))?;
        let host = uri.host().ok_or_else(|| wrong("no host"))?.trim_matches(['[', ']']).to_owned();
        let (scheme, tls) = match uri.scheme_str() {
            Some("http") => (Scheme::HTTP, None),
            Some("https") => (Scheme::HTTPS, Some(tls.clone())),
            _ => return Err(wrong("neither http nor https")),
        };
        let port = uri.port_u16().unwrap_or(2379);
        let authority = uri.authority().ok_or_else(|| wrong("no host"))?.clone();
        let message_bytes_max = MESSAGE_BYTES_MAX;
        let service = Arc::new(Service { scheme, authority, message_bytes_max });
        Ok(Self { host, port, tls, service, uri })
    }

    /// Returns the error of a failed call.
    fn error(&self, failure: Failure) -> Error {
        match Error::of(failure) {
            Error::Unreachable(why) => Error::Unreachable(format!("{}: {why}", self.uri)),
            Error::Lost(why) => Error::Lost(format!("{}: {why}", self.uri)),
            Error::ClientCertificate(why) => {
                Error::ClientCertificate(format!("{}: {why}", self.uri))
            }
            other => other,
        }
    }

    /// Returns the error of a failed TLS handshake.
    fn handshake_error(&self, why: &std::io::Error) -> Error {
        let text = format!("{}: {why}", self.uri);
        match why.get_ref().and_then(|why| why.downcast_ref()) {
            Some(rustls::Error::InvalidCertificate(_)) => Error::ServerCertificate(text),
            Some(rustls::Error::AlertReceived(_)) => Error::of(Failure::unsent(text)),
            _ => Error::Unreachable(text),
        }
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
    grpc: pintle_grpc::Connection,
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
        let service = endpoint.service.clone();
        let opened = match &endpoint.tls {
            None => pintle_grpc::Connection::open(stream, &builder, service).await,
            Some(tls) => {
                let name = ServerName::try_from(endpoint.host.clone());
                let name = name.map_err(|why| failed(&why))?;
                let stream = TlsConnector::from(tls.clone()).connect(name, stream).await;
                let stream = stream.map_err(|why| endpoint.handshake_error(&why))?;
                pintle_grpc::Connection::open(stream, &builder, service).await
            }
        };
        let grpc = opened.map_err(|failure| endpoint.error(failure))?;
        Ok(Self { endpoint: endpoint.clone(), measures: measures.clone(), grpc })
    }

    /// Whether the connection can take no further call.
    pub(crate) fn is_closed(&self) -> bool {
        self.grpc.is_closed()
    }

    /// Makes a call with one response.
    pub(crate) async fn call<A: Message + Default>(
        &self,
        method: Method,
        request: &impl Message,
    ) -> Result<A, Error> {
        let mut call = self.count(method);
        let made = async {
            let mut responses = self.grpc.begin(&method.path(), framed(request)).await?;
            let response = responses.only().await?;
            call.calls().received.add(1);
            Ok(response)
        };
        let made = made.await;
        call.end(made.as_ref().map_or_else(|failure: &Failure| failure.code, |_| Code::OK));
        made.map_err(|failure| self.endpoint.error(failure))
    }

    /// Starts a call with a stream of requests, of which `first` is the first, and a stream of
    /// responses. It returns when the server starts to respond.
    pub(crate) async fn stream<R: Message>(
        &self,
        method: Method,
        first: &R,
    ) -> Result<(Requests, Responses), Error> {
        let mut call = self.count(method);
        match self.grpc.stream(&method.path(), first).await {
            Ok((requests, grpc)) => {
                let endpoint = self.endpoint.clone();
                Ok((requests, Responses { endpoint, grpc, call }))
            }
            Err(failure) => {
                call.end(failure.code);
                Err(self.endpoint.error(failure))
            }
        }
    }

    /// Counts the start of a call.
    fn count(&self, method: Method) -> Call {
        let call = Call { measures: self.measures.clone(), method, has_ended: false };
        call.calls().started.add(1);
        call.calls().sent.add(1);
        call
    }
}

/// The responses of a stream.
pub(crate) struct Responses {
    endpoint: Endpoint,
    grpc: pintle_grpc::Responses,
    call: Call,
}

impl Responses {
    /// Waits for the next response; `None` at the end of a successful call. Cancel safe.
    pub(crate) async fn next<A: Message + Default>(&mut self) -> Result<Option<A>, Error> {
        let next = self.grpc.next().await;
        match &next {
            Ok(Some(_)) => self.call.calls().received.add(1),
            Ok(None) => self.call.end(Code::OK),
            Err(failure) => self.call.end(failure.code),
        }
        next.map_err(|failure| self.endpoint.error(failure))
    }
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
