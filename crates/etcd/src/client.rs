//! What the store asks of etcd: [`Etcd`], and [`Client`], which asks it over the network.
//!
//! Transactions, ranges and watches have a connection each: etcd below 3.5.8 lets a watch starve behind
//! large ranges on a connection with TLS (etcd issue 15402).

use std::sync::Arc;
use std::time::Duration;

use pintle_store::BoxFuture;

use crate::channel::{Channel, Repeat};
use crate::error::Error;
use crate::grpc::{Answers, Endpoint, Requests};
use crate::measures::{Measures, Method};
use crate::messages::{
    CompactionRequest, CompactionResponse, LeaseGrantRequest, LeaseGrantResponse, RangeRequest,
    RangeResponse, StatusRequest, StatusResponse, TxnRequest, TxnResponse, WatchCommand,
    WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse,
};
use crate::tls::{self, Tls};

/// How long each kind of call may take. etcd itself gives a request up after 7 s.
const READ_PATIENCE: Duration = Duration::from_secs(10);
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
const WATCH_PATIENCE: Duration = Duration::from_secs(5);

/// What the store asks of etcd.
pub(crate) trait Etcd: Send + Sync + 'static {
    /// The keys of a range; the newest ones that any client was told of, where no revision is asked for.
    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, Error>>;

    /// Does a transaction.
    fn txn(&self, request: TxnRequest) -> BoxFuture<'_, Result<TxnResponse, Error>>;

    /// Forgets what was before a revision.
    fn compact(&self, revision: i64) -> BoxFuture<'_, Result<CompactionResponse, Error>>;

    /// Grants a lease, after which what was written with it is deleted.
    fn grant(&self, ttl_seconds: i64) -> BoxFuture<'_, Result<LeaseGrantResponse, Error>>;

    /// What a member says of itself.
    fn status(&self) -> BoxFuture<'_, Result<StatusResponse, Error>>;

    /// Begins to watch a range.
    fn watch(&self, create: WatchCreateRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, Error>>;

    /// Further watches go to another member, where there is one: the present one does not answer.
    fn leave_watched(&self);
}

/// A watch; it ends when it is dropped.
pub(crate) trait Watch: Send {
    /// The next message. Nothing is lost when the future is dropped.
    fn next(&mut self) -> BoxFuture<'_, Result<WatchResponse, Error>>;

    /// Asks for a message that tells how far the watch has come, where there are no events.
    fn request_progress(&mut self) -> Result<(), Error>;
}

/// etcd over the network.
pub(crate) struct Client {
    transactions: Channel,
    ranges: Channel,
    watches: Channel,
}

impl Client {
    /// A client of the endpoints, which are URLs. It connects when it is first asked for something.
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
            self.ranges.call(method, &request, Repeat::Read, READ_PATIENCE).await
        })
    }

    fn txn(&self, request: TxnRequest) -> BoxFuture<'_, Result<TxnResponse, Error>> {
        Box::pin(async move {
            let method = Method::Txn;
            self.transactions.call(method, &request, Repeat::Never, WRITE_PATIENCE).await
        })
    }

    fn compact(&self, revision: i64) -> BoxFuture<'_, Result<CompactionResponse, Error>> {
        Box::pin(async move {
            let (method, request) = (Method::Compact, CompactionRequest { revision });
            self.transactions.call(method, &request, Repeat::Never, WRITE_PATIENCE).await
        })
    }

    fn grant(&self, ttl_seconds: i64) -> BoxFuture<'_, Result<LeaseGrantResponse, Error>> {
        Box::pin(async move {
            let method = Method::LeaseGrant;
            // A lease that nobody knows of does no harm and expires.
            let request = LeaseGrantRequest { ttl_seconds };
            self.transactions.call(method, &request, Repeat::Read, WRITE_PATIENCE).await
        })
    }

    fn status(&self) -> BoxFuture<'_, Result<StatusResponse, Error>> {
        Box::pin(async move {
            let method = Method::Status;
            self.ranges.call(method, &StatusRequest {}, Repeat::Read, READ_PATIENCE).await
        })
    }

    fn watch(&self, create: WatchCreateRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, Error>> {
        Box::pin(async move {
            let request = WatchRequest { command: Some(WatchCommand::Create(create)) };
            let method = Method::Watch;
            let stream = self.watches.stream(method, &request, WATCH_PATIENCE).await?;
            let (requests, answers) = stream;
            Ok(Box::new(Stream { requests, answers }) as Box<dyn Watch>)
        })
    }

    fn leave_watched(&self) {
        self.watches.leave();
    }
}

/// A watch over the network.
struct Stream {
    requests: Requests,
    answers: Answers,
}

impl Watch for Stream {
    fn next(&mut self) -> BoxFuture<'_, Result<WatchResponse, Error>> {
        Box::pin(async move {
            let answer = self.answers.next().await?;
            answer.ok_or_else(|| Error::Lost("the server ended the watch".to_owned()))
        })
    }

    fn request_progress(&mut self) -> Result<(), Error> {
        let command = WatchCommand::Progress(WatchProgressRequest {});
        self.requests.send(&WatchRequest { command: Some(command) })
    }
}
