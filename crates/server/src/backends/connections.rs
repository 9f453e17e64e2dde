//! A pool of connections to backends: opened on demand, then idle for a while.
//!
//! Invariant: a connection is idle only after its last response was read and its last request was
//! sent completely, so the next response on it belongs to the next request. Each request names its
//! own user.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::Body;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Backend, Failure, Response, ResponseBody, dial};
use crate::trust::Deprecations;

/// The largest number of idle connections.
const IDLE_MAX: usize = 64;
/// The idle timeout: shorter than the 90 s of upstream's servers.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The time for a request to be sent completely after its response was read.
const END_TIMEOUT: Duration = Duration::from_secs(1);

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A request body of any type.
pub(crate) type AnyBody = UnsyncBoxBody<Bytes, Error>;

/// The idle connections, in the order in which they were returned.
#[derive(Default)]
pub(crate) struct Connections(Mutex<Vec<(Backend, Connection, Instant)>>);

/// A connection; closed when dropped.
pub(crate) struct Connection {
    sender: SendRequest<AnyBody>,
    driver: JoinHandle<()>,
    /// The deprecated properties of the backend's certificates. Responses have them as an extension.
    deprecations: Deprecations,
}

impl Connections {
    /// Sends a request over an idle connection, or over a new one.
    pub(crate) async fn ask<B>(
        self: &Arc<Self>,
        to: &Backend,
        request: Request<B>,
    ) -> Result<Response, Failure>
    where
        B: Body<Data = Bytes, Error: Into<Error>> + Send + 'static,
    {
        let mut request = any(request);
        while let Some(mut connection) = self.take(to) {
            let replay = replayable(&request);
            match connection.sender.try_send_request(request).await {
                Ok(answer) => return Ok(self.idle_after(to, connection, answer)),
                // The server may have closed an idle connection; that is no failure, so the request
                // is sent on another if it was not sent at all or may be repeated. (Go:
                // `shouldRetryRequest` of net/http.)
                Err(mut failure) => match failure.take_message().or(replay) {
                    Some(again) => request = again,
                    None => return Err(failed(failure)),
                },
            }
        }
        let mut connection = Connection::open(to).await?;
        let answer = connection.sender.try_send_request(request).await.map_err(failed)?;
        Ok(self.idle_after(to, connection, answer))
    }

    /// A response that returns its connection to the pool when it has been read.
    fn idle_after(
        self: &Arc<Self>,
        to: &Backend,
        connection: Connection,
        answer: http::Response<hyper::body::Incoming>,
    ) -> Response {
        let (connections, to) = (self.clone(), to.clone());
        connection.marked(answer).map(|body| {
            ResponseBody::new(body, move |is_whole| {
                if is_whole {
                    connections.return_to_pool(to, connection);
                }
            })
        })
    }

    /// Takes the most recently used connection to a backend.
    fn take(&self, to: &Backend) -> Option<Connection> {
        let mut idle = self.0.lock();
        idle.retain(|(_, connection, since)| {
            since.elapsed() < IDLE_TIMEOUT && connection.sender.is_ready()
        });
        let index = idle.iter().rposition(|(other, _, _)| other == to)?;
        Some(idle.remove(index).1)
    }

    /// Returns a connection to the pool once its request has been sent completely, too.
    fn return_to_pool(self: Arc<Self>, to: Backend, mut connection: Connection) {
        if connection.sender.is_ready() {
            return self.add_idle(to, connection);
        }
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            let ready = tokio::time::timeout(END_TIMEOUT, connection.sender.ready()).await;
            if matches!(ready, Ok(Ok(()))) {
                self.add_idle(to, connection);
            }
        });
    }

    /// Adds an idle connection, and closes the oldest if there are too many.
    fn add_idle(&self, to: Backend, connection: Connection) {
        let mut idle = self.0.lock();
        if idle.len() >= IDLE_MAX {
            idle.remove(0);
        }
        idle.push((to, connection, Instant::now()));
    }
}

impl Connection {
    /// Opens a connection.
    async fn open(to: &Backend) -> Result<Self, Failure> {
        let (stream, deprecations) = dial::connect_with_deprecations(to).await?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|why| Failure::Exchange(why.to_string()))?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "a connection to a backend broke");
            }
        });
        Ok(Self { sender, driver, deprecations })
    }

    fn marked<B>(&self, mut answer: http::Response<B>) -> http::Response<B> {
        if self.deprecations != Deprecations::default() {
            answer.extensions_mut().insert(self.deprecations);
        }
        answer
    }

    /// Sends a request on a connection that closes with the response.
    pub(super) async fn ask_once<B>(to: &Backend, request: Request<B>) -> Result<Response, Failure>
    where
        B: Body<Data = Bytes, Error: Into<Error>> + Send + 'static,
    {
        let mut connection = Self::open(to).await?;
        let answer = connection.sender.try_send_request(any(request)).await.map_err(failed)?;
        let answer = connection.marked(answer);
        Ok(answer.map(|body| ResponseBody::new(body, move |_| drop(connection))))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

fn any<B>(request: Request<B>) -> Request<AnyBody>
where
    B: Body<Data = Bytes, Error: Into<Error>> + Send + 'static,
{
    request.map(|body| body.map_err(Into::into).boxed_unsync())
}

/// Copies a request; `None` if it cannot be repeated, because it has a body or is not read-only (as
/// in Go's clients).
fn replayable(request: &Request<AnyBody>) -> Option<Request<AnyBody>> {
    if !request.method().is_safe() || !request.body().is_end_stream() {
        return None;
    }
    let mut again =
        Request::new(http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync());
    again.method_mut().clone_from(request.method());
    again.uri_mut().clone_from(request.uri());
    again.headers_mut().clone_from(request.headers());
    Some(again)
}

fn failed<B>(failure: TrySendError<B>) -> Failure {
    let why = failure.into_error();
    let cause = std::error::Error::source(&why).and_then(|cause| cause.downcast_ref());
    match cause.map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionReset) => Failure::Reset,
        kind if why.is_incomplete_message() || kind == Some(io::ErrorKind::UnexpectedEof) => {
            Failure::Exchange("EOF".to_owned()) // Go's text, with or without a last alert of TLS
        }
        _ => Failure::Exchange(why.to_string()),
    }
}
