//! Forgetting the past, a step at a time, along with the writes.
//!
//! Purpose: when the floor has been raised, the index forgets what was before it and says which
//! records nothing needs any more; those are then removed from the medium. Each batch that the
//! committer commits has one step of that in it; without writes there are batches of steps alone.
//!
//! Must not know: writes and followers.
//!
//! Invariants:
//! - Nothing that a pinned reader can see is forgotten.
//! - The medium has the new floor before, or together with, the first removal: so a compaction that a
//!   crash ends is found and finished when the store is opened again.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::Revision;
use crate::committer::Reply;
use crate::local::Shared;

/// Changes that the index forgets in one step: about a millisecond in which it cannot be read.
const FORGET_STEP: usize = 4096;

/// Records that a step removes at least along with writes, where there are so many; measured, each
/// costs a batch about as much as a write. A step removes as many as the batch writes, so removal keeps
/// up with any load.
const REMOVE_STEP_MIN: usize = 32;

/// Records that a step removes when nobody writes: so many that synchronising the disk is not what it
/// costs, so few that a write which comes meanwhile waits some milliseconds.
const REMOVE_STEP_IDLE: usize = 2048;

/// What is being forgotten, and who waits for it.
pub(crate) struct Compaction {
    shared: Arc<Shared>,
    /// The floor on the medium.
    floor: Revision,
    /// What is still to be removed; once the index has forgotten all it must, from the newest to the
    /// oldest, so that neighbours go together.
    garbage: Vec<Revision>,
    waiting: Vec<Reply<()>>,
}

/// What there is to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing.
    Done,
    /// A step.
    Due,
    /// Nothing that may be done before a reader has finished.
    Pinned,
}

/// What a step does to the medium.
pub(crate) struct Step {
    pub(crate) floor: Option<Revision>,
    pub(crate) garbage: Vec<Revision>,
}

impl Compaction {
    /// Goes on with what was left to remove when the store was last closed; `floor` is the medium's.
    pub(crate) fn new(shared: Arc<Shared>, floor: Revision, mut leftover: Vec<Revision>) -> Self {
        leftover.sort_unstable_by_key(|&revision| Reverse(revision));
        Self { shared, floor, garbage: leftover, waiting: Vec::new() }
    }

    /// Takes back a step whose batch may not have been committed: it is done again from the floor that
    /// the medium has. What is removed already does not suffer from being removed again.
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

    /// Does a step's work in memory; the rest of it goes into the batch, which has so many writes.
    pub(crate) fn step(&mut self, writes: usize) -> Step {
        let Shared { horizon, index, .. } = &*self.shared;
        let (floor, oldest) = (horizon.floor(), horizon.oldest());
        let raised = floor > self.floor;
        self.floor = floor;
        let mut garbage = Vec::new();
        if index.read().base() < oldest {
            let mut index = index.write();
            self.garbage.extend(index.forget(oldest, FORGET_STEP));
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

    /// Answers when the compaction is done, or can't be done.
    pub(crate) fn wait(&mut self, reply: Reply<()>) {
        self.waiting.push(reply);
        self.settle();
    }

    /// Answers those who wait, if it is time.
    pub(crate) fn settle(&mut self) {
        if self.waiting.is_empty() || self.state() != State::Done {
            return;
        }
        let outcome = self.shared.writable();
        for reply in self.waiting.drain(..) {
            let _ = reply.send(outcome.clone());
        }
    }
}
