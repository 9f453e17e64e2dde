//! Connections to backends: opened when a request needs one, then idle for a while, for the next request.
//!
//! Invariant: a connection is idle only after its last answer was read to the end and its last request was
//! sent to the end, so that the next answer on it is the next request's. Who asks is said by each request.

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

use super::{Answer, Backend, Failure, Response, dial};

/// How many connections may be idle.
const IDLE_MAX: usize = 64;
/// After how long an idle connection is closed: earlier than Go's servers close one.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the end of a request is waited for whose answer was read.
const END_TIMEOUT: Duration = Duration::from_secs(1);

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A request's body, whatever it is.
pub(crate) type AnyBody = UnsyncBoxBody<Bytes, Error>;

/// The connections that nobody uses at the moment, in the order in which they were given back.
#[derive(Default)]
pub(crate) struct Connections(Mutex<Vec<(Backend, Connection, Instant)>>);

/// A connection; it ends when this is dropped.
pub(crate) struct Connection {
    sender: SendRequest<AnyBody>,
    driver: JoinHandle<()>,
}

impl Connections {
    /// Asks over a connection that is there, or over a new one.
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
                // One that its server has left meanwhile says nothing of the server: ask on another.
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

    /// An answer whose connection is given back when it is over.
    fn idle_after(
        self: &Arc<Self>,
        to: &Backend,
        connection: Connection,
        answer: http::Response<hyper::body::Incoming>,
    ) -> Response {
        let (connections, to) = (self.clone(), to.clone());
        answer.map(|body| {
            Answer::new(body, move |is_whole| {
                if is_whole {
                    connections.give_back(to, connection);
                }
            })
        })
    }

    /// The one that was used last of those that go there.
    fn take(&self, to: &Backend) -> Option<Connection> {
        let mut idle = self.0.lock();
        idle.retain(|(_, connection, since)| {
            since.elapsed() < IDLE_TIMEOUT && connection.sender.is_ready()
        });
        let index = idle.iter().rposition(|(other, _, _)| other == to)?;
        Some(idle.remove(index).1)
    }

    /// Keeps one whose answer has been read, as soon as its request is over, too.
    fn give_back(self: Arc<Self>, to: Backend, mut connection: Connection) {
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

    /// Adds an idle connection; closes the oldest one if there are too many.
    fn add_idle(&self, to: Backend, connection: Connection) {
        let mut idle = self.0.lock();
        if idle.len() >= IDLE_MAX {
            idle.remove(0);
        }
        idle.push((to, connection, Instant::now()));
    }
}

impl Connection {
    /// Makes one.
    async fn open(to: &Backend) -> Result<Self, Failure> {
        let stream = dial::connect(to).await?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|why| Failure::Exchange(why.to_string()))?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "a connection to a backend broke");
            }
        });
        Ok(Self { sender, driver })
    }

    /// Asks over a connection of its own, which ends with the answer.
    pub(super) async fn ask_once<B>(to: &Backend, request: Request<B>) -> Result<Response, Failure>
    where
        B: Body<Data = Bytes, Error: Into<Error>> + Send + 'static,
    {
        let mut connection = Self::open(to).await?;
        let answer = connection.sender.try_send_request(any(request)).await.map_err(failed)?;
        Ok(answer.map(|body| Answer::new(body, move |_| drop(connection))))
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

/// The same request once more, if it has no body and changes nothing (as Go's clients have it).
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
    // As Go tells it.
    Failure::Exchange(match cause.map(io::Error::kind) {
        _ if why.is_incomplete_message() => "EOF".to_owned(),
        Some(io::ErrorKind::ConnectionReset) => "read: connection reset by peer".to_owned(),
        _ => why.to_string(),
    })
}
