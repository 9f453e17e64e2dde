//! Compaction: drops past states, one step with each batch of writes.
//!
//! After the floor was raised, the index drops older states and returns the records that are
//! garbage; these are then removed from the medium. Each batch of the committer includes one step.
//! Without writes, batches consist of steps only.
//!
//! It must not know writes and followers.
//!
//! Invariants:
//! - Nothing that a pinned reader can see is dropped.
//! - The medium has the new floor before, or together with, the first removal: so a compaction that
//!   a crash interrupts is found and finished when the store is opened again.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::Revision;
use crate::shared::{Reply, Shared};

/// The most changes that the index drops in one step: about a millisecond in which it cannot be
/// read.
const FORGET_STEP: usize = 4096;

/// The fewest records that a step removes along with writes. A step removes as many as the batch
/// writes, so that removal keeps up with any load.
const REMOVE_STEP_MIN: usize = 32;

/// The most records that a step removes without writes: enough that synchronising the disk is not
/// the main cost, and few enough that a write which arrives meanwhile waits some milliseconds.
const REMOVE_STEP_IDLE: usize = 2048;

/// The compaction in progress.
pub(crate) struct Compaction {
    shared: Arc<Shared>,
    /// The floor on the medium.
    floor: Revision,
    /// Records still to be removed. When the index has dropped everything, they are sorted from the
    /// newest to the oldest, so that neighbours, which share a block, are removed together.
    garbage: Vec<Revision>,
    waiting: Vec<Reply<()>>,
}

/// The state of the compaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing to do.
    Done,
    /// A step can be done.
    Due,
    /// Blocked by a pinned reader.
    Pinned,
}

/// The changes of a step on the medium.
pub(crate) struct Step {
    pub(crate) floor: Option<Revision>,
    pub(crate) garbage: Vec<Revision>,
}

impl Compaction {
    /// Continues with the garbage that was left when the store was last closed; `floor` is the
    /// medium's.
    pub(crate) fn new(shared: Arc<Shared>, floor: Revision, mut leftover: Vec<Revision>) -> Self {
        leftover.sort_unstable_by_key(|&revision| Reverse(revision));
        Self { shared, floor, garbage: leftover, waiting: Vec::new() }
    }

    /// Undoes a step whose batch may not be committed: it is done again from the medium's floor.
    /// Removing a record twice is harmless.
    pub(crate) fn undo(&mut self, floor: Revision, garbage: &[Revision]) {
        self.floor = floor;
        self.garbage.extend(garbage);
    }

    pub(crate) fn state(&self) -> State {
        let Shared { horizon, index, .. } = &*self.shared;
        let base = index.read().base();
        if self.shared.writable().is_err() {
            State::Done
        } else if !self.garbage.is_empty() || base < horizon.oldest() {
            State::Due
        } else if base < horizon.floor() {
            State::Pinned
        } else {
            State::Done
        }
    }

    /// Does a step's work in memory; returns the part for the batch, which has `writes` writes.
    pub(crate) fn step(&mut self, writes: usize) -> Step {
        let Shared { horizon, index, .. } = &*self.shared;
        let (floor, oldest) = (horizon.floor(), horizon.oldest());
        let raised = floor > self.floor;
        self.floor = floor;
        let mut garbage = Vec::new();
        if index.read().base() < oldest {
            let mut index = index.write();
            self.garbage.extend(index.drop_history(oldest, FORGET_STEP));
            if index.base() == oldest {
                self.garbage.sort_unstable_by_key(|&revision| Reverse(revision));
            }
        } else {
            let count = if writes == 0 { REMOVE_STEP_IDLE } else { writes.max(REMOVE_STEP_MIN) };
            let rest = self.garbage.len().saturating_sub(count);
            garbage = self.garbage.split_off(rest);
        }
        Step { floor: raised.then_some(floor), garbage }
    }

    /// Replies when the compaction is done, or failed.
    pub(crate) fn wait(&mut self, reply: Reply<()>) {
        self.waiting.push(reply);
        self.reply_if_done();
    }

    /// Replies to the waiting callers if the compaction is done, or the store takes no writes.
    pub(crate) fn reply_if_done(&mut self) {
        if self.waiting.is_empty() || self.state() != State::Done {
            return;
        }
        let outcome = self.shared.writable();
        for reply in self.waiting.drain(..) {
            let _ = reply.send(outcome.clone());
        }
    }
}
