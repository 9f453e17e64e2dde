//! [`EtcdStore`]: the store's contract on a database with other writers.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use pintle_store::{
    At, BoxFuture, Error, Follower, Group, Grouping, Key, Record, Revision, Store, StoredState,
    Transformer,
};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use crate::assembly::Progress;
use crate::backup::EtcdState;
use crate::compaction;
use crate::feed::{self, Feed, Job, Publisher};
use crate::following;
use crate::health::{self, Health, Waiter};
use crate::horizon::Horizon;
use crate::leases::{Leases, REUSE};
use crate::measures::Measures;
use crate::messages::ResponseHeader;
use crate::own::Own;
use crate::plan::grouping;
use crate::reading::{Reading, read_error, readable_number};
use crate::tls::Tls;
use crate::translation::revision;
use crate::writing::Writing;

/// The most concurrent writes; further ones wait.
const WRITES_MAX: u32 = 4096;

/// Options of a store on etcd.
#[derive(Clone, Debug)]
pub struct Options {
    /// The URLs of etcd's members.
    pub endpoints: Vec<String>,
    /// The TLS settings for `https` endpoints.
    pub tls: Tls,
    /// The prefix of all keys.
    pub prefix: String,
    /// Whether opening waits for an etcd that does not respond yet, as a server does that starts at
    /// the same time.
    pub waits: bool,
    /// Encrypts values; `None` to store them in plain text.
    pub transformer: Option<Arc<dyn Transformer>>,
    /// The interval of compactions, each of which one server of the database does; `None` for
    /// never.
    pub compaction_interval: Option<Duration>,
    /// The longest time for which new writes join an existing lease.
    pub lease_reuse: Duration,
    /// How long etcd may take to answer before [`Store::check`] fails.
    pub health_timeout: Duration,
    /// How long etcd may take to answer before [`Store::ready`] fails.
    pub ready_timeout: Duration,
    /// The interval at which the size of the database is read; `None` for never.
    pub size_interval: Option<Duration>,
    /// The measures to update.
    pub measures: Arc<Measures>,
}

impl Default for Options {
    /// The defaults of a kube-apiserver without flags; there are no endpoints.
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            tls: Tls::default(),
            prefix: "/registry".to_owned(),
            waits: true,
            transformer: None,
            compaction_interval: Some(Duration::from_secs(300)),
            lease_reuse: REUSE,
            health_timeout: Duration::from_secs(2),
            ready_timeout: Duration::from_secs(2),
            size_interval: Some(Duration::from_secs(30)),
            measures: Arc::default(),
        }
    }
}

/// Where the store begins to read.
pub(crate) struct Begin {
    pub(crate) progress: Progress,
    pub(crate) floor: Revision,
    pub(crate) header: ResponseHeader,
}

/// The store on etcd.
pub struct EtcdStore {
    reading: Reading,
    progress: Progress,
    horizon: Arc<Horizon>,
    health: Arc<Health>,
    writing: Arc<Writing>,
    /// Permits for writes; closing the store takes all of them.
    permits: Arc<Semaphore>,
    jobs: mpsc::Sender<Job>,
    fresh: mpsc::Sender<Waiter>,
    /// The task that has all others.
    tasks: JoinHandle<()>,
}

impl Store for EtcdStore {
    fn head(&self) -> Revision {
        self.horizon.head()
    }

    fn floor(&self) -> Revision {
        self.horizon.floor()
    }

    fn fresh(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        Box::pin(async move {
            let (waiter, fresh) = oneshot::channel();
            let _ = self.fresh.send(waiter).await;
            match fresh.await {
                Ok(Ok(fresh)) => Ok(fresh),
                Ok(Err(error)) => Err(Error::Failed { reason: error.to_string() }),
                Err(_) => Err(Error::Closed),
            }
        })
    }

    fn commit(&self, group: Group) -> BoxFuture<'_, Result<Vec<Record>, Error>> {
        Box::pin(async move {
            self.health.open()?;
            let permit = self.permits.clone().acquire_owned().await;
            let permit = permit.map_err(|_| Error::Closed)?;
            let writing = self.writing.clone();
            // The write runs to its end even if its caller is cancelled, so that no group stays
            // half written.
            let commit = tokio::spawn(async move {
                let outcome = writing.commit(group).await;
                drop(permit);
                outcome
            });
            let ended =
                |_| Err(Error::Unknown { reason: "the task of the write was aborted".to_owned() });
            commit.await.unwrap_or_else(ended)
        })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn grouping(&self) -> Grouping {
        self.writing.grouping
    }

    fn get(&self, key: &Key, at: At) -> BoxFuture<'_, Result<Option<Record>, Error>> {
        let key = key.clone();
        Box::pin(async move {
            let (revision, at) = self.at(at)?;
            let read = self.reading.key(&key, at).await;
            let (stored, _) = read.map_err(|why| read_error(why, revision, &self.horizon))?;
            Ok(stored.and_then(|stored| self.reading.translation.record(&stored)))
        })
    }

    fn list(
        &self,
        collection: &str,
        prefix: &str,
        at: At,
    ) -> BoxFuture<'_, Result<Vec<Record>, Error>> {
        let (collection, prefix) = (collection.to_owned(), prefix.to_owned());
        Box::pin(async move {
            let (revision, at) = self.at(at)?;
            let read = self.reading.collection(&collection, &prefix, at).await;
            read.map_err(|why| read_error(why, revision, &self.horizon))
        })
    }

    fn is_current(&self, key: &Key) -> BoxFuture<'_, Result<bool, Error>> {
        let key = key.clone();
        Box::pin(async move {
            let translation = &self.reading.translation;
            let read = self.reading.key(&key, None).await;
            let (stored, _) = read.map_err(|why| Error::Failed { reason: why.to_string() })?;
            Ok(stored.is_none_or(|stored| translation.is_current(&key, &stored)))
        })
    }

    fn follow(&self, follower: Arc<dyn Follower>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let Self { reading, progress, horizon, jobs, .. } = self;
            let followed = following::follow(reading, *progress, horizon, jobs, follower).await;
            followed.map_err(|error| Error::Failed { reason: error.to_string() })
        })
    }

    fn stored_state(&self) -> BoxFuture<'_, Result<Box<dyn StoredState>, Error>> {
        let transformer = self.reading.translation.transformer();
        let state = EtcdState::new(self.reading.clone(), transformer, self.horizon.pin_head());
        Box::pin(ready(Ok(Box::new(state) as Box<dyn StoredState>)))
    }

    fn compact(&self, floor: Revision) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.health.open()?;
            let head = self.horizon.head();
            if floor > head {
                return Err(Error::Future { requested: floor, head });
            }
            if floor <= self.horizon.floor() {
                return Ok(());
            }
            let compacted = compaction::compact(&*self.reading.etcd, &self.horizon, floor).await;
            compacted.map_err(|error| Error::Failed { reason: error.to_string() })
        })
    }

    fn check(&self) -> Result<(), Error> {
        self.health.check()
    }

    fn check_life(&self) -> Result<(), Error> {
        self.health.open()
    }

    fn ready(&self) -> Result<(), Error> {
        self.health.ready()
    }

    fn disk_bytes(&self) -> Option<u64> {
        self.health.disk_bytes()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.health.close();
            if let Ok(all) = self.permits.acquire_many(WRITES_MAX).await {
                all.forget();
                self.permits.close();
            }
        })
    }
}

impl EtcdStore {
    /// Starts the tasks of the store, which needs a runtime.
    pub(crate) fn start(reading: Reading, options: Options, begin: Begin) -> Self {
        let Begin { progress, floor, header } = begin;
        let horizon = Arc::new(Horizon::new(floor, revision(header.revision)));
        let health = Health::new(options.health_timeout, options.ready_timeout);
        let (own, health) = (Arc::new(Own::default()), Arc::new(health));
        let (jobs, queue) = feed::jobs();
        let (fresh, waiters) = health::waiters();
        let feed = Feed {
            reading: reading.clone(),
            progress,
            horizon: horizon.clone(),
            health: health.clone(),
            jobs: jobs.clone(),
            room: feed::room(),
        };
        let publisher = Publisher {
            reading: reading.clone(),
            own: own.clone(),
            horizon: horizon.clone(),
            jobs: queue,
            recipients: Vec::new(),
            resets: 0,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(feed.run(header));
        tasks.spawn(publisher.run());
        tasks.spawn(health::run(reading.clone(), horizon.clone(), health.clone(), waiters));
        if let Some(interval) = options.size_interval {
            tasks.spawn(health::measure(reading.clone(), health.clone(), interval));
        }
        if let Some(interval) = options.compaction_interval {
            tasks.spawn(compaction::run(reading.clone(), horizon.clone(), interval));
        }
        let leases = Leases::new(options.lease_reuse, options.measures);
        let writing = Writing {
            reading: reading.clone(),
            horizon: horizon.clone(),
            own,
            leases,
            grouping: grouping(header.cluster_id),
        };
        Self {
            reading,
            progress,
            horizon,
            tasks: tokio::spawn(health::supervise(tasks, health.clone())),
            health,
            writing: Arc::new(writing),
            permits: Arc::new(Semaphore::new(WRITES_MAX as usize)),
            jobs,
            fresh,
        }
    }

    /// Returns the revision to read at, for errors and for etcd.
    fn at(&self, at: At) -> Result<(Option<Revision>, Option<i64>), Error> {
        match at {
            At::Head => Ok((None, None)),
            At::Revision(at) => Ok((Some(at), Some(readable_number(at, &self.horizon)?))),
        }
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.tasks.abort();
    }
}
