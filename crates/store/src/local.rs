//! The store in this process: [`Store`] over an [`Engine`].
//!
//! It has the logic that memory and disk share. Writes go to the committer. Reads use the index and
//! then the medium.
//!
//! It must not know which medium the engine stores on.
//!
//! Invariants: the queue is bounded in count and bytes; reads do not wait for the disk's
//! synchronisation; the committer's thread ends with the store.

use std::future::ready;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use crate::committer::{Committer, Job, Log, Queue, QueuedGroup, Writer, commit_alone};
use crate::engine::Engine;
use crate::index::Index;
use crate::measures::Measures;
use crate::shared::Shared;
use crate::stored_state::{LocalState, StoredState};
use crate::threads::{on_thread, spawn};
use crate::{At, BoxFuture, Error, Follower, Group, Grouping, Key, Record, Revision, Store, Write};

/// The bound on queued writes, in KiB; a write counts at least one. So 64 MiB of values or 65,536
/// writes: more than a server runs concurrently, and little enough to hold in memory.
const QUEUE_KIB_MAX: u32 = 64 << 10;

/// A follower that lags at most this many revisions gets the rest from the committer, between two
/// batches.
const REPLAY_LAG_MAX: u64 = 1024;

/// How many times a follower may try to get that near while writes go on.
const REPLAY_ROUNDS_MAX: usize = 8;

/// The store over one medium.
pub(crate) struct Local {
    shared: Arc<Shared>,
    jobs: Sender<Job>,
    permits: Arc<Semaphore>,
    committer: Arc<Mutex<Committer>>,
    /// The committer's thread; `None` once it was joined.
    thread: Option<JoinHandle<()>>,
}

impl Local {
    /// Starts the store of a medium whose log was read. The followers have seen the whole log.
    pub(crate) fn start(
        engine: Box<dyn Engine>,
        index: Index,
        log: Log,
        followers: Vec<Arc<dyn Follower>>,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared::new(engine, index));
        shared.horizon.raise_floor(log.floor)?;
        let (jobs, queued) = mpsc::channel();
        let committer = Arc::new(Mutex::new(Committer::new(shared.clone(), log, followers)));
        let queue = Queue::new(queued, committer.clone());
        let thread = Some(spawn("store-committer", move || queue.run())?);
        let permits = Arc::new(Semaphore::new(QUEUE_KIB_MAX as usize));
        Ok(Self { shared, jobs, permits, committer, thread })
    }

    /// Sends a job to the committer's thread and waits for the reply.
    async fn send_job<T>(
        &self,
        job: Job,
        answer: oneshot::Receiver<Result<T, Error>>,
    ) -> Result<T, Error> {
        // If the thread ended, the job and its reply channel are dropped here.
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
        Box::pin(ready(Ok(self.head()))) // no other process writes
    }

    fn commit(&self, group: Group) -> BoxFuture<'_, Result<Vec<Record>, Error>> {
        Box::pin(async move {
            self.shared.writable()?;
            let kib = |write: &Write| write.change.template().len() / 1024 + 1;
            let kib = group.writes().map(kib).sum::<usize>();
            let kib = u32::try_from(kib).unwrap_or(u32::MAX);
            let permit = self.permits.clone().acquire_many_owned(kib.min(QUEUE_KIB_MAX)).await;
            let permit = permit.map_err(|_| self.shared.stopped())?;
            let (reply, answer) = oneshot::channel();
            let queued = QueuedGroup { group, writer: Writer { reply, _permit: permit } };
            if let Some(queued) = commit_alone(&self.committer, &self.jobs, queued, kib) {
                let _ = self.jobs.send(Job::Write(queued)); // dropped if the thread ended
            }
            answer.await.unwrap_or_else(|_| Err(self.shared.write_lost()))
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
        // A single record is read on the caller's thread: that costs less than a thread change.
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
        let is_current = newest.map(|version| self.shared.is_current(version.revision()));
        Box::pin(ready(is_current.unwrap_or(Ok(true))))
    }

    fn follow(&self, follower: Arc<dyn Follower>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let (shared, jobs) = (self.shared.clone(), self.jobs.clone());
            on_thread("store-replay", move || follow(&shared, follower, &jobs)).await
        })
    }

    fn compact(&self, floor: Revision) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.shared.writable()?;
            self.shared.horizon.raise_floor(floor)?;
            let (reply, answer) = oneshot::channel();
            self.send_job(Job::Compact { reply }, answer).await
        })
    }

    fn stored_state(&self) -> BoxFuture<'_, Result<Box<dyn StoredState>, Error>> {
        Box::pin(ready(Ok(Box::new(LocalState::at_head(&self.shared)) as Box<dyn StoredState>)))
    }

    fn check(&self) -> Result<(), Error> {
        self.shared.writable()
    }

    fn disk_bytes(&self) -> Option<u64> {
        self.shared.engine.disk_bytes()
    }

    fn measures(&self) -> Option<&Measures> {
        Some(&self.shared.measures)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let _ = self.send_job(Job::Close { reply }, answer).await;
        })
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let (reply, _) = oneshot::channel();
        let _ = self.jobs.send(Job::Close { reply });
        let Some(thread) = self.thread.take() else { return };
        // If a follower holds the last handle, the store is dropped on the committer's own thread.
        if thread.thread().id() != thread::current().id() {
            let _ = thread.join();
        }
    }
}

/// Replays the log to a follower until it is near the head, then passes it to the committer.
fn follow(shared: &Shared, follower: Arc<dyn Follower>, jobs: &Sender<Job>) -> Result<(), Error> {
    // Held until the committer has the follower, so that nothing is compacted that the follower has
    // yet to see.
    let pin = shared.horizon.pin_floor();
    let mut after = Revision(0);
    for _ in 0..REPLAY_ROUNDS_MAX {
        let head = shared.horizon.head();
        while after < head {
            after = shared.replay(&*follower, pin.revision, after)?;
        }
        if shared.horizon.head().0 - after.0 <= REPLAY_LAG_MAX {
            break;
        }
    }
    let (reply, answer) = oneshot::channel();
    let _ = jobs.send(Job::Follow { follower, after, reply });
    let answer = answer.blocking_recv();
    drop(pin);
    answer.unwrap_or_else(|_| Err(shared.stopped()))
}
