//! The one thread that changes the store.
//!
//! Purpose: group commit. Writers queue; the committer takes all that wait, decides each in turn, puts
//! what may be committed on the medium in one batch, shows it to the followers, and answers. The next
//! batch forms meanwhile. What compaction removes goes along with the batches, a bounded step at a time.
//!
//! Must not know: how writers wait, where the log lies.
//!
//! Invariants:
//! - Durable, then visible, then acknowledged: medium, index, followers, head, answers, in this order.
//! - Once the medium has failed it is never asked to commit again, and every write is refused.
//! - Nothing that a pinned reader can see is removed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::compaction::{Compaction, State, Step};
use crate::engine::Batch;
use crate::index::Version;
use crate::local::Shared;
use crate::{Change, Error, Expect, Follower, Key, Kind, Record, Revision, Write};

/// Writes in one batch at most: enough for every writer a server admits at once, few enough that the
/// first of them does not wait noticeably for the last.
const BATCH_WRITES_MAX: usize = 1024;

/// Bytes of values in one batch, after which no more writes are taken into it: some milliseconds of
/// a disk's time.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// How long compaction waits before it looks again whether a reader that is in its way has finished.
const PIN_RETRY: Duration = Duration::from_millis(5);

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// What the committer is asked to do.
pub(crate) enum Job {
    Write(Waiting),
    /// Give the follower what was committed after a revision, and from then on everything.
    Follow {
        follower: Arc<dyn Follower>,
        after: Revision,
        reply: Reply<()>,
    },
    /// Forget states before the horizon's floor, which has been raised already.
    Compact {
        reply: Reply<()>,
    },
    /// Take no more writes, and end.
    Close {
        reply: Reply<()>,
    },
}

/// A write that waits for its answer.
pub(crate) struct Waiting {
    pub(crate) write: Write,
    pub(crate) reply: Reply<Record>,
    /// Its part of the queue's bounds, given back when it is answered.
    pub(crate) _room: OwnedSemaphorePermit,
}

/// The thread's state.
pub(crate) struct Committer {
    shared: Arc<Shared>,
    jobs: Receiver<Job>,
    followers: Vec<Arc<dyn Follower>>,
    compaction: Compaction,
}

/// The outcome of deciding a batch of writes.
#[derive(Default)]
struct Decided {
    records: Vec<Record>,
    /// The writes that become the records, in the same order.
    accepted: Vec<Waiting>,
    /// The writes that cannot be committed, with the newest version of their key.
    refused: Vec<(Waiting, Option<Version>)>,
}

impl Committer {
    /// A committer for a store that is just opened, with what its last compaction left to remove.
    pub(crate) fn new(shared: Arc<Shared>, jobs: Receiver<Job>, leftover: Vec<Revision>) -> Self {
        let compaction = Compaction::new(shared.clone(), leftover);
        Self { shared, jobs, followers: Vec::new(), compaction }
    }

    /// Works until the store is closed or dropped.
    pub(crate) fn run(mut self) {
        let _guard = Guard(self.shared.clone());
        while let Ok(first) = self.next() {
            let (writes, other) = self.gather(first);
            self.turn(writes);
            match other {
                Some(Job::Follow { follower, after, reply }) => {
                    let _ = reply.send(self.adopt(follower, after));
                }
                Some(Job::Compact { reply }) => self.compaction.wait(reply),
                Some(Job::Close { reply }) => {
                    self.shared.close();
                    self.compaction.settle();
                    let _ = reply.send(Ok(()));
                    return;
                }
                Some(Job::Write(_)) | None => {}
            }
        }
    }

    /// Waits for a job; `None` when there is none, but compaction may have something to do.
    fn next(&self) -> Result<Option<Job>, RecvError> {
        match self.compaction.state() {
            State::Done => self.jobs.recv().map(Some),
            State::Due => match self.jobs.try_recv() {
                Err(TryRecvError::Disconnected) => Err(RecvError),
                job => Ok(job.ok()),
            },
            State::Pinned => match self.jobs.recv_timeout(PIN_RETRY) {
                Err(RecvTimeoutError::Disconnected) => Err(RecvError),
                job => Ok(job.ok()),
            },
        }
    }

    /// Takes the writes that wait, up to a full batch or a job of another kind.
    fn gather(&self, first: Option<Job>) -> (Vec<Waiting>, Option<Job>) {
        let (mut writes, mut bytes) = (Vec::new(), 0);
        let mut job = first;
        loop {
            match job {
                Some(Job::Write(waiting)) => {
                    bytes += waiting.write.change.template().len();
                    writes.push(waiting);
                }
                other => return (writes, other),
            }
            if writes.len() >= BATCH_WRITES_MAX || bytes >= BATCH_BYTES_MAX {
                return (writes, None);
            }
            job = self.jobs.try_recv().ok();
        }
    }

    /// Commits a batch of writes and one step of compaction, and answers whoever is done.
    fn turn(&mut self, writes: Vec<Waiting>) {
        match self.shared.writable() {
            Ok(()) => self.commit(writes),
            Err(error) => refuse(writes, &error),
        }
        self.compaction.settle();
    }

    fn commit(&mut self, writes: Vec<Waiting>) {
        let Decided { records, accepted, refused } = self.decide(writes);
        let Step { floor, garbage } = self.compaction.step(records.len());
        let batch = Batch { records, floor, garbage };
        if !batch.is_empty()
            && let Err(failure) = self.shared.engine.commit(&batch)
        {
            let error = self.shared.fail(failure);
            refuse(accepted, &error);
            return refuse(refused.into_iter().map(|(waiting, _)| waiting), &error);
        }
        self.show(&batch.records);
        for (waiting, record) in accepted.into_iter().zip(batch.records) {
            let _ = waiting.reply.send(Ok(record));
        }
        for (waiting, version) in refused {
            let _ = waiting.reply.send(Err(self.conflict(version)));
        }
    }

    /// Checks what each write expects, against the state that the writes before it leave.
    fn decide(&self, writes: Vec<Waiting>) -> Decided {
        let index = self.shared.index.read();
        let mut ahead: HashMap<Key, Version> = HashMap::new();
        let mut next = index.newest();
        let mut decided = Decided::default();
        for waiting in writes {
            let Write { key, expect, change, note } = &waiting.write;
            let newest = ahead.get(key).copied().or_else(|| index.current(key));
            let newest = newest.filter(|version| version.live());
            let Some(kind) = outcome(*expect, change, newest) else {
                decided.refused.push((waiting, newest));
                continue;
            };
            next.0 += 1;
            let (bytes, body) = change.template().fill(next);
            ahead.insert(key.clone(), Version::new(next, kind != Kind::Deleted));
            decided.records.push(Record {
                revision: next,
                key: key.clone(),
                kind,
                bytes,
                body,
                note: note.clone(),
            });
            decided.accepted.push(waiting);
        }
        decided
    }

    /// Makes durable records visible.
    fn show(&self, records: &[Record]) {
        let Some(last) = records.last() else { return };
        {
            let mut index = self.shared.index.write();
            for record in records {
                index.push(record.key.clone(), record.kind);
            }
        }
        for follower in &self.followers {
            follower.apply(records);
        }
        self.shared.horizon.advance(last.revision);
    }

    /// Makes a follower one of those that get every batch.
    fn adopt(&mut self, follower: Arc<dyn Follower>, mut after: Revision) -> Result<(), Error> {
        while after < self.shared.horizon.head() {
            after = self.shared.replay(&*follower, after, after)?;
        }
        self.followers.push(follower);
        Ok(())
    }

    fn conflict(&self, newest: Option<Version>) -> Error {
        match newest.map(|version| self.shared.read(version.revision())).transpose() {
            Ok(current) => Error::Conflict { current: current.map(Box::new) },
            Err(error) => error,
        }
    }
}

fn refuse(writes: impl IntoIterator<Item = Waiting>, error: &Error) {
    for waiting in writes {
        let _ = waiting.reply.send(Err(error.clone()));
    }
}

/// What becomes of the key, or `None` if the write expects something else.
fn outcome(expect: Expect, change: &Change, newest: Option<Version>) -> Option<Kind> {
    match (expect, change, newest) {
        (Expect::Absent, Change::Put(_), None) => Some(Kind::Created),
        (Expect::At(revision), change, Some(version)) if version.revision() == revision => {
            Some(match change {
                Change::Put(_) => Kind::Updated,
                Change::Delete(_) => Kind::Deleted,
            })
        }
        _ => None,
    }
}

/// Tells everybody when the committer ends, also where it must not.
struct Guard(Arc<Shared>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.stopped();
    }
}
