//! The committer: all changes of the store, one batch after the other.
//!
//! It does group commit. Writers queue; the committer's thread takes all queued writes, checks each
//! in turn, commits the accepted ones to the medium in one batch, passes them to the followers, and
//! replies. Meanwhile the queue fills again. If a batch has several writers already, the thread
//! waits a short time for more. Each batch carries a bounded step of compaction. A writer that is
//! alone commits on its own thread, without the queue.
//!
//! It must not know how writers wait or where the log is stored.
//!
//! Invariants:
//! - Only the holder of the committer's lock changes the store.
//! - Durable, then visible, then acknowledged: medium, index, followers, head, replies, in this
//!   order.
//! - After the medium failed, every write is refused, and nothing is committed until the medium was
//!   reopened and its state is known: with the failed batch or without it.
//! - Nothing that a pinned reader can see is removed.

mod alone;
mod precondition;
mod queue;
mod reopening;

use std::collections::HashMap;
use std::iter;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use crate::compaction::{Compaction, State, Step};
use crate::engine::{Batch, Moved};
use crate::history::History;
use crate::index::Version;
use crate::shared::{Reply, Shared};
use crate::{Error, Follower, Group, Key, Kind, Record, Revision, Write, encoding};
pub(crate) use alone::commit_alone;
use precondition::{Conflict, kinds};
pub(crate) use queue::Queue;
use reopening::Failed;

/// How long compaction waits before it checks again whether a reader released its pin.
const PIN_RETRY: Duration = Duration::from_millis(50);

/// How long the store must be idle before the medium finishes what it put off, and frees space.
const IDLE: Duration = Duration::from_secs(2);

/// While the store is open, the medium frees space only if its records have at most this many
/// bytes. It moves the records, and concurrent writes wait for about a tenth of a second: 40 MB
/// took 0.3 s (decision 1). With more records, space is freed when the store is opened.
const TRIM_RECORD_BYTES_MAX: u64 = 16 << 20;

/// A job for the committer.
pub(crate) enum Job {
    Write(QueuedGroup),
    /// Gives the follower all records after a revision, and then every later batch.
    Follow {
        follower: Arc<dyn Follower>,
        after: Revision,
        reply: Reply<()>,
    },
    /// Drops states before the horizon's floor, which was raised already.
    Compact {
        reply: Reply<()>,
    },
    /// Other work became due: a writer that committed alone wakes the committer's thread.
    OtherWork,
    /// Stops taking writes, closes the medium and ends the committer's thread.
    Close {
        reply: Reply<()>,
    },
}

/// A group of writes that waits for its commit.
pub(crate) struct QueuedGroup {
    pub(crate) group: Group,
    pub(crate) writer: Writer,
}

/// A waiting writer, which gets one reply.
pub(crate) struct Writer {
    pub(crate) reply: Reply<Vec<Record>>,
    /// The writer's share of the queue's bound, released with the reply.
    pub(crate) _permit: OwnedSemaphorePermit,
}

impl Writer {
    /// Sends the result, unless the writer was cancelled.
    fn reply(self, outcome: Result<Vec<Record>, Error>) {
        let _ = self.reply.send(outcome);
    }
}

impl Group {
    pub(crate) fn writes(&self) -> impl Iterator<Item = &Write> {
        iter::once(&self.first).chain(&self.rest)
    }
}

/// The result of reading the log.
#[derive(Debug)]
pub(crate) struct Log {
    /// Records that an unfinished compaction has yet to remove.
    pub(crate) leftover: Vec<Revision>,
    /// The size of all records in bytes.
    pub(crate) record_bytes: u64,
    /// The changes above the medium's floor.
    pub(crate) history: History,
    /// The floor that keeps past states within their bound.
    pub(crate) floor: Revision,
}

/// The committer's state.
pub(crate) struct Committer {
    shared: Arc<Shared>,
    followers: Vec<Arc<dyn Follower>>,
    compaction: Compaction,
    history: History,
    /// The size of all records on the medium in bytes.
    record_bytes: u64,
    /// How many groups the last batch had.
    last_groups: usize,
    /// How long the medium's last commit took.
    last_commit: Duration,
    /// When the medium's last commit ended.
    committed: Instant,
    /// Whether the medium may have work that it puts off until the store is idle.
    is_unsettled: bool,
    /// Whether records were removed since the medium last freed space.
    trim_due: bool,
    /// The failed batch, while the medium is not open.
    failed: Option<Failed>,
    /// When the medium was last reopened, and how long the pause before was.
    reopened: Option<(Instant, Duration)>,
}

/// The result of checking a batch of writes.
#[derive(Default)]
struct Decided {
    records: Vec<Record>,
    /// The writers of the records, in the same order, each with its number of records.
    accepted: Vec<(Writer, usize)>,
    /// The writers whose groups conflict.
    conflicting: Vec<(Writer, Conflict)>,
}

impl Committer {
    /// Makes a committer for a newly opened store whose followers have the whole log.
    pub(crate) fn new(shared: Arc<Shared>, log: Log, followers: Vec<Arc<dyn Follower>>) -> Self {
        let Log { leftover, record_bytes, history, .. } = log;
        let floor = shared.index.read().base();
        let compaction = Compaction::new(shared.clone(), floor, leftover);
        Self {
            shared,
            followers,
            compaction,
            history,
            record_bytes,
            last_groups: 0,
            last_commit: Duration::ZERO,
            committed: Instant::now(),
            is_unsettled: false,
            trim_due: false,
            failed: None,
            reopened: None,
        }
    }

    /// Returns the time until other work than writes is due; `None` if there is none.
    fn due_in(&self) -> Option<Duration> {
        if let Some(failed) = &self.failed {
            return Some(failed.due_in());
        }
        match self.compaction.state() {
            State::Due => Some(Duration::ZERO),
            State::Pinned => Some(PIN_RETRY),
            State::Done if self.needs_settling() => {
                Some(IDLE.saturating_sub(self.committed.elapsed()))
            }
            State::Done => None,
        }
    }

    /// Whether the medium has work for the time when the store is idle. A store that takes no
    /// writes leaves it.
    fn needs_settling(&self) -> bool {
        (self.is_unsettled || self.trim_due) && self.shared.writable().is_ok()
    }

    /// Lets the medium finish what it put off if the store has been idle.
    fn settle_if_idle(&mut self) {
        let is_idle = self.committed.elapsed() >= IDLE && self.compaction.state() == State::Done;
        if is_idle && self.needs_settling() {
            self.settle();
        }
    }

    /// Lets the medium finish what it put off, and free space.
    fn settle(&mut self) {
        let mut settled = self.shared.engine.settle();
        if let Ok(moved) = settled {
            self.count(moved);
            if self.trim_due && self.record_bytes <= TRIM_RECORD_BYTES_MAX {
                settled = self.shared.engine.trim(self.record_bytes).map(|()| moved);
            }
        }
        (self.is_unsettled, self.trim_due) = (false, false);
        if let Err(failure) = settled {
            self.fail(failure, Batch::default());
        }
    }

    /// Commits a batch of writes and one step of compaction, and replies to those that are done.
    fn process(&mut self, writes: Vec<QueuedGroup>) {
        if !writes.is_empty() {
            self.last_groups = writes.len();
        }
        match self.shared.writable() {
            Ok(()) => self.commit(writes),
            Err(error) => fail_all(writes.into_iter().map(|queued| queued.writer), &error),
        }
        self.compaction.reply_if_done();
    }

    fn commit(&mut self, writes: Vec<QueuedGroup>) {
        let Decided { records, accepted, conflicting } = self.decide(writes);
        let Step { floor, garbage } = self.compaction.step(records.len());
        let mut batch = Batch { records, floor, garbage };
        if !batch.is_empty() {
            let began = Instant::now();
            match self.shared.engine.commit(&batch) {
                Ok(moved) => {
                    let measures = &self.shared.measures;
                    self.committed = Instant::now();
                    self.last_commit = self.committed - began;
                    measures.commits.took(self.last_commit);
                    measures.batches.observe(batch.records.len() as u64);
                    self.is_unsettled = true;
                    self.count(moved);
                }
                Err(failure) => {
                    let unknown = Error::Unknown { reason: failure.0.clone() };
                    let failed = failure.clone().into();
                    self.fail(failure, batch);
                    fail_all(accepted.into_iter().map(|(writer, _)| writer), &unknown);
                    return fail_all(conflicting.into_iter().map(|(writer, _)| writer), &failed);
                }
            }
        }
        self.publish(&mut batch.records);
        let mut records = batch.records.into_iter();
        for (writer, count) in accepted {
            writer.reply(Ok(records.by_ref().take(count).collect()));
        }
        for (writer, conflict) in conflicting {
            writer.reply(Err(self.error(conflict)));
        }
    }

    /// Stops taking writes and closes the medium. Returns the followers.
    fn close(&mut self) -> Vec<Arc<dyn Follower>> {
        self.shared.close();
        self.compaction.reply_if_done();
        self.shared.engine.close();
        std::mem::take(&mut self.followers)
    }

    /// Updates the counters after a committed batch.
    fn count(&mut self, Moved { written, removed }: Moved) {
        self.record_bytes = (self.record_bytes + written).saturating_sub(removed);
        self.trim_due |= removed > 0;
    }

    /// Checks the preconditions of each write against the state that the writes before it leave.
    fn decide(&self, writes: Vec<QueuedGroup>) -> Decided {
        let index = self.shared.index.read();
        let mut ahead: HashMap<Key, Version> = HashMap::new();
        let mut next = index.newest();
        let mut decided = Decided::default();
        for queued in writes {
            let newest = |key: &Key| {
                let newest = ahead.get(key).copied().or_else(|| index.current(key));
                newest.filter(|version| version.live())
            };
            let QueuedGroup { group, writer } = queued;
            let (first, rest) = match kinds(&group, newest) {
                Ok(kinds) => kinds,
                Err(conflict) => {
                    decided.conflicting.push((writer, conflict));
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

    /// Makes durable records visible. Their keys become those of the index, so that memory holds
    /// each key once.
    fn publish(&mut self, records: &mut [Record]) {
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
            // The floor is not above the head, which only this thread moves.
            let _ = self.shared.horizon.raise_floor(floor);
        }
    }

    /// Adds a follower that gets every later batch.
    fn add_follower(
        &mut self,
        follower: Arc<dyn Follower>,
        mut after: Revision,
    ) -> Result<(), Error> {
        while after < self.shared.horizon.head() {
            after = self.shared.replay(&*follower, after, after)?;
        }
        self.followers.push(follower);
        Ok(())
    }

    fn error(&self, conflict: Conflict) -> Error {
        let newest = match conflict {
            Conflict::First(newest) => newest,
            Conflict::Rest(key) => return Error::CompanionConflict { key },
        };
        match newest.map(|version| self.shared.read(version.revision())).transpose() {
            Ok(current) => Error::Conflict { current: current.map(Box::new) },
            Err(error) => error,
        }
    }
}

fn fail_all(writers: impl IntoIterator<Item = Writer>, error: &Error) {
    for writer in writers {
        writer.reply(Err(error.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::MemoryEngine;
    use crate::index::Index;

    /// Otherwise the committer's thread would try it again and again.
    #[test]
    fn a_store_that_takes_no_writes_settles_nothing() {
        let index = Index::new(Revision(0));
        let shared = Arc::new(Shared::new(Box::new(MemoryEngine::default()), index));
        let log = Log {
            leftover: Vec::new(),
            record_bytes: 0,
            history: History::new(u64::MAX),
            floor: Revision(0),
        };
        let mut committer = Committer::new(shared.clone(), log, Vec::new());
        assert_eq!(committer.due_in(), None);
        committer.is_unsettled = true;
        assert!(committer.due_in().is_some());
        shared.stopped();
        assert_eq!(committer.due_in(), None);
    }
}
