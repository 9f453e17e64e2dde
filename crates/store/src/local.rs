//! The store in this process: [`Store`] over an [`Engine`].
//!
//! Purpose: the logic that memory and disk share. Writes go through the committer's queue, reads go to
//! the index and from there to the medium.
//!
//! Must not know: which medium it is.
//!
//! Invariants: what waits is bounded in count and bytes; readers are never held up by the disk's
//! synchronisation; the committer's thread ends with the store.

use std::future::ready;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Semaphore, oneshot};

use crate::committer::{Committer, Job, Log, Waiting, Writer};
use crate::engine::{Engine, Failure};
use crate::horizon::Horizon;
use crate::index::{Index, Version};
use crate::replay::Portion;
use crate::{At, BoxFuture, Error, Follower, Group, Grouping, Key, Record, Revision, Store, Write};

/// What may wait to be committed, in KiB; a write counts as at least one. So 64 MiB of values or 65,536
/// writes: more than a server admits at once, less than would hurt it.
const QUEUE_KIB_MAX: u32 = 64 << 10;

/// A follower that is at most this far behind is given the rest by the committer, between two batches.
const REPLAY_LAG_MAX: u64 = 1024;

/// Times a follower may try to come that near while writes go on.
const REPLAY_ROUNDS_MAX: usize = 8;

/// The store over one medium.
pub(crate) struct Local {
    shared: Arc<Shared>,
    jobs: Sender<Job>,
    room: Arc<Semaphore>,
    committer: Option<JoinHandle<()>>,
}

/// What the committer and the readers share.
pub(crate) struct Shared {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) index: RwLock<Index>,
    pub(crate) horizon: Horizon,
    pub(crate) status: Mutex<Status>,
}

/// Whether writes are taken, or else why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Open,
    Failed(Failure),
    Closed,
}

impl Local {
    /// The store of a medium whose log is read, with its index, and those who have seen all that is in
    /// the log.
    pub(crate) fn start(
        engine: Box<dyn Engine>,
        index: Index,
        log: Log,
        followers: Vec<Arc<dyn Follower>>,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            horizon: Horizon::new(index.base(), index.newest()),
            index: RwLock::new(index),
            engine,
            status: Mutex::new(Status::Open),
        });
        shared.horizon.raise(log.floor)?;
        let (jobs, queue) = mpsc::channel();
        let committer = Committer::new(shared.clone(), queue, log, followers);
        let committer = spawn("store-committer", move || committer.run())?;
        let room = Arc::new(Semaphore::new(QUEUE_KIB_MAX as usize));
        Ok(Self { shared, jobs, room, committer: Some(committer) })
    }

    /// Hands a job to the committer and waits for its answer.
    async fn ask<T>(
        &self,
        job: Job,
        answer: oneshot::Receiver<Result<T, Error>>,
    ) -> Result<T, Error> {
        // Without a committer the job is dropped here, and its reply with it.
        let _ = self.jobs.send(job);
        answer.await.unwrap_or_else(|_| Err(self.shared.stopped()))
    }
}

impl Store for Local {
    fn head(&self) -> Revision {
        self.shared.horizon.head()
    }

    fn floor(&self) -> Revision {
        self.shared.horizon.floor()
    }

    fn fresh(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        Box::pin(ready(Ok(self.head()))) // no other process writes, and followers had it before
    }

    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Record, Error>> {
        Box::pin(async move {
            let group = Group { first: write, rest: Vec::new(), unchanged: Vec::new() };
            let records = self.commit_together(group).await?;
            Ok(records.into_iter().next().expect("each write of a group has a record"))
        })
    }

    fn commit_together(&self, group: Group) -> BoxFuture<'_, Result<Vec<Record>, Error>> {
        Box::pin(async move {
            self.shared.writable()?;
            let kib = |write: &Write| write.change.template().len() / 1024 + 1;
            let kib = group.writes().map(kib).sum::<usize>();
            let kib = u32::try_from(kib).unwrap_or(u32::MAX);
            let room = self.room.clone().acquire_many_owned(kib.min(QUEUE_KIB_MAX)).await;
            let room = room.map_err(|_| self.shared.stopped())?;
            let (reply, answer) = oneshot::channel();
            let writer = Writer { reply, _room: room };
            self.ask(Job::Write(Waiting { group, writer }), answer).await
        })
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn grouping(&self) -> Grouping {
        Grouping::Each
    }

    fn get(&self, key: &Key, at: At) -> BoxFuture<'_, Result<Option<Record>, Error>> {
        let key = key.clone();
        // One record is read where it is asked for: cheaper than to ask another thread.
        Box::pin(async move { self.shared.get(&key, at) })
    }

    fn list(
        &self,
        collection: &str,
        prefix: &str,
        at: At,
    ) -> BoxFuture<'_, Result<Vec<Record>, Error>> {
        let (collection, prefix) = (collection.to_owned(), prefix.to_owned());
        Box::pin(async move {
            let shared = self.shared.clone();
            on_thread("store-list", move || shared.list(&collection, &prefix, at)).await
        })
    }

    fn is_current(&self, key: &Key) -> BoxFuture<'_, Result<bool, Error>> {
        let newest = self.shared.index.read().current(key).filter(|version| version.live());
        let is_current = newest.map(|version| self.shared.engine.is_current(version.revision()));
        Box::pin(ready(is_current.unwrap_or(Ok(true)).map_err(Error::from)))
    }

    fn follow(&self, follower: Arc<dyn Follower>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let (shared, jobs) = (self.shared.clone(), self.jobs.clone());
            on_thread("store-replay", move || shared.follow(follower, &jobs)).await
        })
    }

    fn compact(&self, floor: Revision) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.shared.writable()?;
            self.shared.horizon.raise(floor)?;
            let (reply, answer) = oneshot::channel();
            self.ask(Job::Compact { reply }, answer).await
        })
    }

    fn check(&self) -> Result<(), Error> {
        self.shared.writable()
    }

    fn disk_bytes(&self) -> Option<u64> {
        self.shared.engine.disk_bytes()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let _ = self.ask(Job::Close { reply }, answer).await;
        })
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let (reply, _) = oneshot::channel();
        let _ = self.jobs.send(Job::Close { reply });
        let Some(committer) = self.committer.take() else { return };
        // A follower that holds the last handle drops the store on the committer's own thread.
        if committer.thread().id() != thread::current().id() {
            let _ = committer.join();
        }
    }
}

impl Shared {
    /// Whether writes are taken; the error is the reason why not.
    pub(crate) fn writable(&self) -> Result<(), Error> {
        match &*self.status.lock() {
            Status::Open => Ok(()),
            Status::Failed(failure) => Err(failure.clone().into()),
            Status::Closed => Err(Error::Closed),
        }
    }

    /// Takes no more writes, because of what the medium said.
    pub(crate) fn fail(&self, failure: Failure) {
        *self.status.lock() = Status::Failed(failure);
    }

    /// Takes writes again after the medium failed.
    pub(crate) fn resume(&self) {
        *self.status.lock() = Status::Open;
    }

    /// Takes no more writes, because nobody wants to write any.
    pub(crate) fn close(&self) {
        let mut status = self.status.lock();
        if *status == Status::Open {
            *status = Status::Closed;
        }
    }

    /// Why nobody answers: the store is closed, or else the committer ended where it must not.
    pub(crate) fn stopped(&self) -> Error {
        let mut status = self.status.lock();
        if *status == Status::Open {
            *status = Status::Failed(Failure("the committer stopped".to_owned()));
        }
        drop(status);
        self.writable().err().unwrap_or(Error::Closed)
    }

    fn get(&self, key: &Key, at: At) -> Result<Option<Record>, Error> {
        let pin = self.horizon.pin(at)?;
        let version = self.index.read().at(key, pin.revision).filter(|version| version.live());
        version.map(|version| self.read(version.revision())).transpose()
    }

    fn list(&self, collection: &str, prefix: &str, at: At) -> Result<Vec<Record>, Error> {
        let pin = self.horizon.pin(at)?;
        let revisions = self.index.read().list(collection, prefix, pin.revision);
        revisions.into_iter().map(|revision| self.read(revision)).collect()
    }

    /// A record that the index knows of.
    pub(crate) fn read(&self, revision: Revision) -> Result<Record, Error> {
        let missing = || Failure(format!("the record of revision {revision} is missing"));
        Ok(self.engine.read(revision)?.ok_or_else(missing)?)
    }

    /// Brings a follower near the head, then hands it to the committer.
    fn follow(&self, follower: Arc<dyn Follower>, jobs: &Sender<Job>) -> Result<(), Error> {
        // Held until the follower is live: so nothing it has yet to see is compacted away.
        let pin = self.horizon.pin_floor();
        let mut after = Revision(0);
        for _ in 0..REPLAY_ROUNDS_MAX {
            let head = self.horizon.head();
            while after < head {
                after = self.replay(&*follower, pin.revision, after)?;
            }
            if self.horizon.head().0 - after.0 <= REPLAY_LAG_MAX {
                break;
            }
        }
        let (reply, answer) = oneshot::channel();
        let _ = jobs.send(Job::Follow { follower, after, reply });
        let answer = answer.blocking_recv();
        drop(pin);
        answer.unwrap_or_else(|_| Err(self.stopped()))
    }

    /// Gives a follower the next records after a revision: those of the state at `floor`, and all
    /// above. Returns the revision it has then.
    ///
    /// The caller sees to it that `floor` stays pinned.
    pub(crate) fn replay(
        &self,
        follower: &dyn Follower,
        floor: Revision,
        after: Revision,
    ) -> Result<Revision, Error> {
        let head = self.horizon.head();
        let mut portion = Portion::default();
        self.engine.scan(after, &mut |record| Ok(!portion.add(record)))?;
        let Some(last) = portion.records.last().map(|record| record.revision) else {
            return Ok(head);
        };
        {
            let index = self.index.read();
            portion.records.retain_mut(|record| {
                let Record { revision, .. } = *record;
                let visible = Some(Version::new(revision, true));
                index.share(&mut record.key);
                revision <= head && (revision > floor || index.at(&record.key, floor) == visible)
            });
        }
        portion.give(follower);
        Ok(last.min(head))
    }
}

/// Starts a thread of the store's own.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|e| Error::Failed { reason: format!("no thread for {name}: {e}") })
}

/// Does on a thread of its own what would keep the caller's from other requests.
pub(crate) async fn on_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (reply, answer) = oneshot::channel();
    spawn(name, move || drop(reply.send(work())))?;
    answer.await.unwrap_or_else(|_| Err(Error::Failed { reason: format!("{name} stopped") }))
}
