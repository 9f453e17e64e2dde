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
//! - Once the medium has failed every write is refused, and the medium is not asked to commit again
//!   before it was opened again and its state is known: with the batch that failed, or without it.
//! - Nothing that a pinned reader can see is removed.

mod reopening;

use std::collections::HashMap;
use std::iter;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::compaction::{Compaction, State, Step};
use crate::engine::{Batch, Moved};
use crate::history::History;
use crate::index::Version;
use crate::local::Shared;
use crate::{Change, Error, Expect, Follower, Group, Key, Kind, Record, Revision, Write, encoding};
use reopening::Failed;

/// Writes in one batch at most: enough for every writer a server admits at once, few enough that the
/// first of them does not wait noticeably for the last.
const BATCH_WRITES_MAX: usize = 1024;

/// Bytes of values in one batch, after which no more writes are taken into it: some milliseconds of
/// a disk's time.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// How long compaction waits before it looks again whether a reader that is in its way has finished.
const PIN_RETRY: Duration = Duration::from_millis(5);

/// How long nobody must have written before the medium gives space back.
const TRIM_IDLE: Duration = Duration::from_secs(2);

/// Up to how many bytes of records the medium gives space back while the store is open: it moves them,
/// and a write which comes meanwhile waits for that, about a tenth of a second: 40 MB took 0.3 s
/// (decision 1). With more of them it is done when the store is opened.
const TRIM_RECORD_BYTES_MAX: u64 = 16 << 20;

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
    pub(crate) group: Group,
    pub(crate) writer: Writer,
}

/// Who waits, to be answered once.
pub(crate) struct Writer {
    pub(crate) reply: Reply<Vec<Record>>,
    /// Its part of the queue's bounds, given back when it is answered.
    pub(crate) _room: OwnedSemaphorePermit,
}

impl Writer {
    /// Answers; whoever waits no longer need not know.
    fn answer(self, outcome: Result<Vec<Record>, Error>) {
        let _ = self.reply.send(outcome);
    }
}

impl Group {
    pub(crate) fn writes(&self) -> impl Iterator<Item = &Write> {
        iter::once(&self.first).chain(&self.rest)
    }
}

/// What was found in the log when it was read.
#[derive(Debug)]
pub(crate) struct Log {
    /// Records that a compaction was yet to remove.
    pub(crate) leftover: Vec<Revision>,
    /// What all records take.
    pub(crate) record_bytes: u64,
    /// What the changes above the medium's floor take.
    pub(crate) history: History,
    /// Before which states must be forgotten, so that the history is not too long.
    pub(crate) floor: Revision,
}

/// The thread's state.
pub(crate) struct Committer {
    shared: Arc<Shared>,
    jobs: Receiver<Job>,
    followers: Vec<Arc<dyn Follower>>,
    compaction: Compaction,
    history: History,
    /// What all records on the medium take.
    record_bytes: u64,
    /// Whether records were removed since the medium last had the opportunity to give space back.
    trim_due: bool,
    /// The batch whose commit failed, while the medium is not open.
    failed: Option<Failed>,
    /// When the medium was last opened again, and how long it had been left alone before.
    reopened: Option<(Instant, Duration)>,
}

/// The outcome of deciding a batch of writes.
#[derive(Default)]
struct Decided {
    records: Vec<Record>,
    /// Whose the records are, in the same order, and how many of them.
    accepted: Vec<(Writer, usize)>,
    /// Whose writes cannot be committed.
    refused: Vec<(Writer, Refusal)>,
}

/// Why writes cannot be committed.
enum Refusal {
    /// The first's key is not as expected; this is its newest version.
    First(Option<Version>),
    /// The key of one of the rest is not, or one that was to be unchanged.
    Rest(Key),
}

impl Committer {
    /// A committer for a store that is just opened, and followers that have all there is.
    pub(crate) fn new(
        shared: Arc<Shared>,
        jobs: Receiver<Job>,
        log: Log,
        followers: Vec<Arc<dyn Follower>>,
    ) -> Self {
        let Log { leftover, record_bytes, history, .. } = log;
        let floor = shared.index.read().base();
        let compaction = Compaction::new(shared.clone(), floor, leftover);
        Self {
            shared,
            jobs,
            followers,
            compaction,
            history,
            record_bytes,
            trim_due: false,
            failed: None,
            reopened: None,
        }
    }

    /// Works until the store is closed or dropped.
    pub(crate) fn run(mut self) {
        let _guard = Guard(self.shared.clone());
        while let Ok(first) = self.next() {
            self.reopen_if_due();
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

    /// Waits for a job; `None` when there is none, but something else to do.
    fn next(&mut self) -> Result<Option<Job>, RecvError> {
        if let Some(failed) = &self.failed {
            return self.next_within(failed.due_in());
        }
        match self.compaction.state() {
            State::Due => match self.jobs.try_recv() {
                Err(TryRecvError::Disconnected) => Err(RecvError),
                job => Ok(job.ok()),
            },
            State::Pinned => self.next_within(PIN_RETRY),
            State::Done if self.trim_due => {
                let job = self.next_within(TRIM_IDLE)?;
                if job.is_none() {
                    self.trim();
                }
                Ok(job)
            }
            State::Done => self.jobs.recv().map(Some),
        }
    }

    fn next_within(&self, time: Duration) -> Result<Option<Job>, RecvError> {
        match self.jobs.recv_timeout(time) {
            Err(RecvTimeoutError::Disconnected) => Err(RecvError),
            job => Ok(job.ok()),
        }
    }

    /// Lets the medium give space back.
    fn trim(&mut self) {
        self.trim_due = false;
        if self.record_bytes <= TRIM_RECORD_BYTES_MAX
            && self.shared.writable().is_ok()
            && let Err(failure) = self.shared.engine.trim(self.record_bytes)
        {
            self.fail(failure, Batch::default());
        }
    }

    /// Takes the writes that wait, up to a full batch or a job of another kind.
    fn gather(&self, first: Option<Job>) -> (Vec<Waiting>, Option<Job>) {
        let (mut writes, mut bytes) = (Vec::new(), 0);
        let mut job = first;
        loop {
            match job {
                Some(Job::Write(waiting)) => {
                    bytes +=
                        waiting.group.writes().map(|w| w.change.template().len()).sum::<usize>();
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
        if !batch.is_empty() {
            match self.shared.engine.commit(&batch) {
                Ok(moved) => self.count(moved),
                Err(failure) => {
                    let unknown = Error::Unknown { reason: failure.0.clone() };
                    let failed = failure.clone().into();
                    self.fail(failure, batch);
                    refuse(accepted.into_iter().map(|(writer, _)| writer), &unknown);
                    return refuse(refused.into_iter().map(|(writer, _)| writer), &failed);
                }
            }
        }
        self.show(&mut batch.records);
        let mut records = batch.records.into_iter();
        for (writer, count) in accepted {
            writer.answer(Ok(records.by_ref().take(count).collect()));
        }
        for (writer, refusal) in refused {
            writer.answer(Err(self.conflict(refusal)));
        }
    }

    /// Takes account of what a committed batch did to the medium.
    fn count(&mut self, Moved { written, removed }: Moved) {
        self.record_bytes = (self.record_bytes + written).saturating_sub(removed);
        self.trim_due |= removed > 0;
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
            let Waiting { group, writer } = waiting;
            let (first, rest) = match kinds(&group, newest) {
                Ok(kinds) => kinds,
                Err(refusal) => {
                    decided.refused.push((writer, refusal));
                    continue;
                }
            };
            decided.accepted.push((writer, 1 + rest.len()));
            let writes = iter::once(group.first).chain(group.rest);
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
    fn show(&mut self, records: &mut [Record]) {
        let Some(last) = records.last().map(|record| record.revision) else { return };
        {
            let mut index = self.shared.index.write();
            for record in &mut *records {
                index.push(&mut record.key, record.kind);
            }
        }
        for follower in &self.followers {
            follower.apply(records, last);
        }
        self.shared.horizon.advance(last);
        let bytes = records.iter().map(|record| encoding::size(record) as u64).sum();
        if let Some(floor) = self.history.add(last, bytes) {
            // Not above the head, which this is the only thread to move.
            let _ = self.shared.horizon.raise(floor);
        }
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
    group: &Group,
    newest: impl Fn(&Key) -> Option<Version>,
) -> Result<(Kind, Vec<Kind>), Refusal> {
    let kind = |write: &Write, newest| outcome(write.expect, &write.change, newest);
    let current = newest(&group.first.key);
    let first = kind(&group.first, current).ok_or(Refusal::First(current))?;
    let rest = group.rest.iter().zip(group.writes()).map(|(write, before)| {
        let kind = match write.expect {
            Expect::Left => successor(write, before),
            Expect::Absent | Expect::At(_) => kind(write, newest(&write.key)),
        };
        kind.ok_or_else(|| Refusal::Rest(write.key.clone()))
    });
    let rest = rest.collect::<Result<_, _>>()?;
    let changed = group
        .unchanged
        .iter()
        .find(|(key, revision)| newest(key).is_none_or(|version| version.revision() != *revision));
    match changed {
        Some((key, _)) => Err(Refusal::Rest(key.clone())),
        None => Ok((first, rest)),
    }
}

/// What becomes of the key that the write before has just written, or `None` if it has not.
fn successor(write: &Write, before: &Write) -> Option<Kind> {
    let is_left = before.key == write.key && matches!(before.change, Change::Put(_));
    is_left.then_some(match write.change {
        Change::Put(_) => Kind::Updated,
        Change::Delete(_) => Kind::Deleted,
    })
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
