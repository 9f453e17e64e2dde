//! Commits of a writer that is alone, on the writer's own thread.
//!
//! With one writer at a time, waking the committer's thread and then the writer's would take longer
//! than the commit. The writer's thread serves connections, so this is done only while commits are
//! quick, for small groups, and by one thread at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::time::Duration;

use parking_lot::Mutex;

use super::{Committer, Job, QueuedGroup};
use crate::compaction::State;

/// The longest last commit after which a writer commits on its own thread: connections that the
/// thread serves wait for it.
const COMMIT_MAX: Duration = Duration::from_micros(500);

/// The most bytes of values that a writer commits on its own thread, in KiB.
const GROUP_KIB_MAX: u32 = 64;

/// Commits a group of `kib` KiB on this thread. Returns the group, to be queued, if it is large,
/// if other writers are at work, or if the medium is slow.
pub(crate) fn commit_alone(
    committer: &Mutex<Committer>,
    jobs: &Sender<Job>,
    queued: QueuedGroup,
    kib: u32,
) -> Option<QueuedGroup> {
    if kib > GROUP_KIB_MAX {
        return Some(queued);
    }
    let Some(mut committer) = committer.try_lock() else { return Some(queued) };
    if !committer.serves_alone() {
        return Some(queued);
    }
    let due_in = committer.due_in();
    let commit = AssertUnwindSafe(|| committer.process(vec![queued]));
    if catch_unwind(commit).is_err() {
        committer.shared.stopped(); // the state may be that of half a batch
    }
    let is_sooner = committer.due_in().is_some_and(|new| due_in.is_none_or(|due_in| new < due_in));
    if is_sooner {
        let _ = jobs.send(Job::OtherWork); // dropped if the thread ended: the store is closed
    }
    None
}

impl Committer {
    /// Whether a writer may commit on its own thread.
    fn serves_alone(&self) -> bool {
        self.last_groups <= 1
            && self.last_commit <= COMMIT_MAX
            && self.failed.is_none()
            && self.compaction.state() == State::Done
    }
}
