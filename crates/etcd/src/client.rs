//! The requests of the store to etcd: the trait [`Etcd`], and [`Client`], which sends them over the
//! network.
//!
//! Transactions, ranges and watches have separate connections: etcd before 3.5.8 starves watches
//! behind large ranges on a TLS connection (etcd issue 15402).

use std::sync::Arc;
use std::time::Duration;

use pintle_grpc::Requests;
use pintle_store::BoxFuture;
use tokio::time::{Instant, sleep};

use crate::channel::{Channel, Repeat};
use crate::connection::{Endpoint, Responses};
use crate::error::Error;
use crate::measures::{Measures, Method};
use crate::messages::{
    CompactionRequest, CompactionResponse, LeaseGrantRequest, LeaseGrantResponse, RangeRequest,
    RangeResponse, StatusRequest, StatusResponse, TxnRequest, TxnResponse, WatchCommand,
    WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse,
};
use crate::tls::{self, Tls};

/// The timeouts of calls. etcd itself gives up a request after 7 s.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
const WATCH_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause before a write that could not be sent is tried again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// The requests of the store to etcd.
pub(crate) trait Etcd: Send + Sync + 'static {
    /// Reads the keys of a range, at the given revision or else, linearizably, at the newest.
    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, Error>>;

    /// Executes a transaction.
    fn txn(&self, request: TxnRequest) -> BoxFuture<'_, Result<TxnResponse, Error>>;

    /// Compacts the history before a revision.
    fn compact(&self, revision: i64) -> BoxFuture<'_, Result<CompactionResponse, Error>>;

    /// Grants a lease, at whose end the keys written with it are deleted.
    fn grant(&self, ttl_seconds: i64) -> BoxFuture<'_, Result<LeaseGrantResponse, Error>>;

    /// Returns a member's status.
    fn status(&self) -> BoxFuture<'_, Result<StatusResponse, Error>>;

    /// Starts to watch a range.
    fn watch(&self, create: WatchCreateRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, Error>>;

    /// Directs further watches to another member, if there is one, because the current one does not
    /// respond.
    fn leave_watched(&self);
}

/// A watch, which ends when it is dropped.
pub(crate) trait Watch: Send {
    /// Waits for the next message. Cancel safe.
    fn next(&mut self) -> BoxFuture<'_, Result<WatchResponse, Error>>;

    /// Requests a progress message, which has no events.
    fn request_progress(&mut self) -> Result<(), Error>;
}

/// The client of etcd over the network.
pub(crate) struct Client {
    transactions: Channel,
    ranges: Channel,
    watches: Channel,
}

impl Client {
    /// Makes a client of endpoints, which are URLs. It connects at the first request.
    pub(crate) fn new(
        endpoints: &[String],
        tls: &Tls,
        measures: &Arc<Measures>,
    ) -> Result<Self, Error> {
        let tls = tls::config(tls)?;
        let endpoints: Result<Vec<_>, _> =
            endpoints.iter().map(|url| Endpoint::new(url, &tls)).collect();
        let endpoints = endpoints?;
        if endpoints.is_empty() {
            return Err(Error::Configuration("there are no etcd endpoints".to_owned()));
        }
        let channel = || Channel::new(endpoints.clone(), measures.clone());
        Ok(Self { transactions: channel(), ranges: channel(), watches: channel() })
    }
}

impl Etcd for Client {
    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, Error>> {
        Box::pin(async move {
            let method = Method::Range;
            self.ranges.call(method, &request, Repeat::Read, READ_TIMEOUT).await
        })
    }

    fn txn(&self, request: TxnRequest) -> BoxFuture<'_, Result<TxnResponse, Error>> {
        Box::pin(async move {
            let deadline = Instant::now() + WRITE_TIMEOUT;
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                let call = self.transactions.call(Method::Txn, &request, Repeat::Never, left);
                match call.await {
                    // The request was not sent: etcd may be starting again.
                    Err(Error::Unreachable(_)) if left > RECONNECT_PAUSE => {
                        sleep(RECONNECT_PAUSE).await;
                    }
                    ended => return ended,
                }
            }
        })
    }

    fn compact(&self, revision: i64) -> BoxFuture<'_, Result<CompactionResponse, Error>> {
        Box::pin(async move {
            let (method, request) = (Method::Compact, CompactionRequest { revision });
            self.transactions.call(method, &request, Repeat::Never, WRITE_TIMEOUT).await
        })
    }

    fn grant(&self, ttl_seconds: i64) -> BoxFuture<'_, Result<LeaseGrantResponse, Error>> {
        Box::pin(async move {
            let method = Method::LeaseGrant;
            // The call may be repeated, because an unused lease does no harm and expires.
            let request = LeaseGrantRequest { ttl_seconds };
            self.transactions.call(method, &request, Repeat::Read, WRITE_TIMEOUT).await
        })
    }

    fn status(&self) -> BoxFuture<'_, Result<StatusResponse, Error>> {
        Box::pin(async move {
            let method = Method::Status;
            self.ranges.call(method, &StatusRequest {}, Repeat::Read, READ_TIMEOUT).await
        })
    }

    fn watch(&self, create: WatchCreateRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, Error>> {
        Box::pin(async move {
            let request = WatchRequest { command: Some(WatchCommand::Create(create)) };
            let method = Method::Watch;
            let stream = self.watches.stream(method, &request, WATCH_TIMEOUT).await?;
            let (requests, responses) = stream;
            Ok(Box::new(Stream { requests, responses }) as Box<dyn Watch>)
        })
    }

    fn leave_watched(&self) {
        self.watches.leave();
    }
}

/// A watch over the network.
struct Stream {
    requests: Requests,
    responses: Responses,
}

impl Watch for Stream {
    fn next(&mut self) -> BoxFuture<'_, Result<WatchResponse, Error>> {
        Box::pin(async move {
            let response = self.responses.next().await?;
            response.ok_or_else(|| Error::Lost("the server ended the watch".to_owned()))
        })
    }

    fn request_progress(&mut self) -> Result<(), Error> {
        let command = WatchCommand::Progress(WatchProgressRequest {});
        let sent = self.requests.send(&WatchRequest { command: Some(command) });
        sent.map_err(Error::of)
    }
}
