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
use std::iter;
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

/// Writes that are to be committed together, and wait for their answer.
pub(crate) struct Waiting {
    pub(crate) first: Write,
    pub(crate) rest: Vec<Write>,
    pub(crate) writer: Writer,
}

/// Who waits, to be answered once.
pub(crate) struct Writer {
    pub(crate) reply: Reply<Record>,
    /// Its part of the queue's bounds, given back when it is answered.
    pub(crate) _room: OwnedSemaphorePermit,
}

impl Writer {
    /// Answers; whoever waits no longer need not know.
    fn answer(self, outcome: Result<Record, Error>) {
        let _ = self.reply.send(outcome);
    }
}

impl Waiting {
    fn writes(&self) -> impl Iterator<Item = &Write> {
        iter::once(&self.first).chain(&self.rest)
    }
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
    /// Whose the records are, in the same order: the first, and how many follow that go with it.
    accepted: Vec<(Writer, usize)>,
    /// Whose writes cannot be committed.
    refused: Vec<(Writer, Refusal)>,
}

/// Why writes cannot be committed.
enum Refusal {
    /// The first's key is not as expected; this is its newest version.
    First(Option<Version>),
    /// The key of one of the rest is not.
    Rest(Key),
}

impl Committer {
    /// A committer for a store that is just opened, with what its last compaction left to remove, and
    /// followers that have all there is.
    pub(crate) fn new(
        shared: Arc<Shared>,
        jobs: Receiver<Job>,
        leftover: Vec<Revision>,
        followers: Vec<Arc<dyn Follower>>,
    ) -> Self {
        let compaction = Compaction::new(shared.clone(), leftover);
        Self { shared, jobs, followers, compaction }
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
                    bytes += waiting.writes().map(|w| w.change.template().len()).sum::<usize>();
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
            Err(error) => refuse(writes.into_iter().map(|waiting| waiting.writer), &error),
        }
        self.compaction.settle();
    }

    fn commit(&mut self, writes: Vec<Waiting>) {
        let Decided { records, accepted, refused } = self.decide(writes);
        let Step { floor, garbage } = self.compaction.step(records.len());
        let mut batch = Batch { records, floor, garbage };
        if !batch.is_empty()
            && let Err(failure) = self.shared.engine.commit(&batch)
        {
            let error = self.shared.fail(failure);
            refuse(accepted.into_iter().map(|(writer, _)| writer), &error);
            return refuse(refused.into_iter().map(|(writer, _)| writer), &error);
        }
        self.show(&mut batch.records);
        let mut records = batch.records.into_iter();
        for (writer, rest) in accepted {
            let first = records.next().expect("each accepted write has become a record");
            records.by_ref().take(rest).for_each(drop);
            writer.answer(Ok(first));
        }
        for (writer, refusal) in refused {
            writer.answer(Err(self.conflict(refusal)));
        }
    }

    /// Checks what each write expects, against the state that the writes before it leave.
    fn decide(&self, writes: Vec<Waiting>) -> Decided {
        let index = self.shared.index.read();
        let mut ahead: HashMap<Key, Version> = HashMap::new();
        let mut next = index.newest();
        let mut decided = Decided::default();
        for waiting in writes {
            let newest = |key: &Key| {
                let newest = ahead.get(key).copied().or_else(|| index.current(key));
                newest.filter(|version| version.live())
            };
            let (first, rest) = match kinds(&waiting, newest) {
                Ok(kinds) => kinds,
                Err(refusal) => {
                    decided.refused.push((waiting.writer, refusal));
                    continue;
                }
            };
            decided.accepted.push((waiting.writer, waiting.rest.len()));
            let writes = iter::once(waiting.first).chain(waiting.rest);
            for (Write { key, change, note, .. }, kind) in writes.zip(iter::once(first).chain(rest))
            {
                next.0 += 1;
                let (bytes, body) = change.template().fill(next);
                ahead.insert(key.clone(), Version::new(next, kind != Kind::Deleted));
                decided.records.push(Record { revision: next, key, kind, bytes, body, note });
            }
        }
        decided
    }

    /// Makes durable records visible. Their keys become the index's own, so that a key that is written
    /// again is in memory once.
    fn show(&self, records: &mut [Record]) {
        let Some(last) = records.last().map(|record| record.revision) else { return };
        {
            let mut index = self.shared.index.write();
            for record in &mut *records {
                index.push(&mut record.key, record.kind);
            }
        }
        for follower in &self.followers {
            follower.apply(records);
        }
        self.shared.horizon.advance(last);
    }

    /// Makes a follower one of those that get every batch.
    fn adopt(&mut self, follower: Arc<dyn Follower>, mut after: Revision) -> Result<(), Error> {
        while after < self.shared.horizon.head() {
            after = self.shared.replay(&*follower, after, after)?;
        }
        self.followers.push(follower);
        Ok(())
    }

    fn conflict(&self, refusal: Refusal) -> Error {
        let newest = match refusal {
            Refusal::First(newest) => newest,
            Refusal::Rest(key) => return Error::CompanionConflict { key },
        };
        match newest.map(|version| self.shared.read(version.revision())).transpose() {
            Ok(current) => Error::Conflict { current: current.map(Box::new) },
            Err(error) => error,
        }
    }
}

fn refuse(writers: impl IntoIterator<Item = Writer>, error: &Error) {
    for writer in writers {
        writer.answer(Err(error.clone()));
    }
}

/// What becomes of the keys of writes that are committed together, or why they cannot be.
fn kinds(
    waiting: &Waiting,
    newest: impl Fn(&Key) -> Option<Version>,
) -> Result<(Kind, Vec<Kind>), Refusal> {
    let kind = |write: &Write, newest| outcome(write.expect, &write.change, newest);
    let current = newest(&waiting.first.key);
    let first = kind(&waiting.first, current).ok_or(Refusal::First(current))?;
    let rest = waiting.rest.iter().map(|write| {
        kind(write, newest(&write.key)).ok_or_else(|| Refusal::Rest(write.key.clone()))
    });
    Ok((first, rest.collect::<Result<_, _>>()?))
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
