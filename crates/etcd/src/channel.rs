//! A connection to one of several endpoints, with failover.
//!
//! A call goes to the endpoint of the last call. If that endpoint cannot be reached, or does not
//! answer, the next one replaces it.
//!
//! It must not know the meaning of a call, except whether the call may be repeated.
//!
//! Invariants: every call with one answer ends by its deadline. A call that may have had an effect
//! is not repeated, unless the caller allows it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use pintle_grpc::Requests;
use pintle_store::BoxFuture;
use prost::Message;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::connection::{Connection, Endpoint, Responses};
use crate::error::Error;
use crate::measures::{Measures, Method};

/// How long connecting to one endpoint may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long an answer may take before further calls go to another endpoint: the member may be
/// paused, or cut off without a reset of its connections.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Whether a call may be repeated after its answer was lost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// The call changes nothing, or a repetition of its change does no harm.
    Read,
    /// The call may have changed something.
    Never,
}

/// A connection to one of several endpoints.
pub(crate) struct Channel {
    endpoints: Vec<Endpoint>,
    measures: Arc<Measures>,
    current: Mutex<Current>,
    /// Held while a connection is opened, so that concurrent calls use the same one.
    connecting: tokio::sync::Mutex<()>,
}

/// The result of a call within [`SILENCE_MAX`].
enum Attempt<'a, A> {
    Answered(A),
    /// No answer yet; the call continues.
    Silent(BoxFuture<'a, Result<A, Error>>),
}

#[derive(Default)]
struct Current {
    /// The endpoint of the connection, or the one to try next.
    endpoint: usize,
    connection: Option<Connection>,
    /// How many connections were abandoned. It identifies a connection, so that many calls that
    /// fail together abandon it once.
    given_up: u64,
}

impl Channel {
    pub(crate) fn new(endpoints: Vec<Endpoint>, measures: Arc<Measures>) -> Self {
        let (current, connecting) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { endpoints, measures, current, connecting }
    }

    /// Makes a call with one answer. If there is no answer within [`SILENCE_MAX`], a repeatable
    /// call is also made to another endpoint, and the first answer counts.
    pub(crate) async fn call<A: Message + Default>(
        &self,
        method: Method,
        request: &impl Message,
        repeat: Repeat,
        timeout_after: Duration,
    ) -> Result<A, Error> {
        let deadline = Instant::now() + timeout_after;
        let calls_max = if repeat == Repeat::Read { self.endpoints.len() } else { 1 };
        let mut silent: FuturesUnordered<BoxFuture<'_, Result<A, Error>>> = FuturesUnordered::new();
        let mut failures = 0;
        loop {
            let attempt = async {
                let (connection, generation) = self.connection(deadline).await?;
                let mut call: BoxFuture<'_, _> =
                    Box::pin(async move { connection.call(method, request).await });
                let answer = timeout(SILENCE_MAX, &mut call).await;
                let is_lost = |answer: &Result<A, Error>| {
                    answer.as_ref().is_err_and(|error| error.is_of_connection())
                };
                if answer.as_ref().map_or(true, is_lost) {
                    self.abandon(generation);
                }
                answer.map_or(Ok(Attempt::Silent(call)), |answer| answer.map(Attempt::Answered))
            };
            let attempt = tokio::select! {
                biased;
                Some(answer) = silent.next() => answer.map(Attempt::Answered),
                attempt = attempt, if silent.len() < calls_max => attempt,
                () = sleep_until(deadline) => {
                    return Err(Error::Lost(format!("no answer in {timeout_after:?}")));
                }
            };
            let error = match attempt {
                Ok(Attempt::Answered(answer)) => return Ok(answer),
                Ok(Attempt::Silent(call)) => {
                    silent.push(call);
                    continue;
                }
                Err(error) => error,
            };
            failures += 1;
            let is_repeatable = match error {
                Error::Lost(_) => repeat == Repeat::Read,
                _ if error.is_of_connection() => true,
                _ => return Err(error),
            };
            if !is_repeatable || failures > self.endpoints.len() || Instant::now() >= deadline {
                return Err(error);
            }
        }
    }

    /// Makes a call with streams; the deadline covers only its start.
    pub(crate) async fn stream(
        &self,
        method: Method,
        first: &impl Message,
        timeout_after: Duration,
    ) -> Result<(Requests, Responses), Error> {
        let deadline = Instant::now() + timeout_after;
        let (connection, generation) = self.connection(deadline).await?;
        let stream = timeout_at(deadline, connection.stream(method, first)).await;
        let expired = || Err(Error::Lost(format!("no answer in {timeout_after:?}")));
        let stream = stream.unwrap_or_else(|_| expired());
        if stream.is_err() {
            self.abandon(generation);
        }
        stream
    }

    /// Returns an open connection, and its generation.
    async fn connection(&self, deadline: Instant) -> Result<(Connection, u64), Error> {
        if let Some(open) = self.open_connection() {
            return Ok(open);
        }
        let _connecting = timeout_at(deadline, self.connecting.lock())
            .await
            .map_err(|_| Error::Unreachable("connecting timed out".to_owned()))?;
        if let Some(open) = self.open_connection() {
            return Ok(open);
        }
        let first = self.current.lock().endpoint;
        let mut error = None;
        for endpoint in first..first + self.endpoints.len() {
            let endpoint = endpoint % self.endpoints.len();
            let limit = CONNECT_TIMEOUT.min(deadline.saturating_duration_since(Instant::now()));
            let open = Connection::open(&self.endpoints[endpoint], &self.measures);
            let opened = timeout(limit, open).await.unwrap_or_else(|_| {
                let endpoint = &self.endpoints[endpoint];
                Err(Error::Unreachable(format!("{endpoint}: connecting timed out")))
            });
            match opened {
                Ok(connection) => {
                    let mut current = self.current.lock();
                    current.endpoint = endpoint;
                    current.connection = Some(connection.clone());
                    return Ok((connection, current.given_up));
                }
                // The error of an endpoint that may recover counts more.
                Err(why) if error.as_ref().is_none_or(Error::is_permanent) => error = Some(why),
                Err(_) => {}
            }
        }
        Err(error.unwrap_or_else(|| Error::Unreachable("there are no endpoints".to_owned())))
    }

    fn open_connection(&self) -> Option<(Connection, u64)> {
        let current = self.current.lock();
        let connection = current.connection.as_ref().filter(|connection| !connection.is_closed());
        Some((connection?.clone(), current.given_up))
    }

    /// Abandons the current connection.
    pub(crate) fn leave(&self) {
        let generation = self.current.lock().given_up;
        self.abandon(generation);
    }

    /// Abandons a connection and moves to the next endpoint; calls in progress on it may still
    /// succeed.
    fn abandon(&self, generation: u64) {
        let mut current = self.current.lock();
        if current.given_up == generation {
            current.given_up += 1;
            current.connection = None;
            current.endpoint = (current.endpoint + 1) % self.endpoints.len();
        }
    }
}
