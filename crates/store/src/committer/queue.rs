//! The committer's thread: it takes jobs from the queue, and decides which writes are committed
//! together.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::{Committer, Job, QueuedGroup};
use crate::shared::Shared;

/// The most writes in one batch: enough for every concurrent writer of a server, and few enough
/// that the first does not wait noticeably for the last.
const BATCH_WRITES_MAX: usize = 1024;

/// A batch takes no more writes after this many bytes of values. On disk, a long batch is one
/// transaction of the database, and its pages must fit in `engine::database::CHANGED_BYTES_MAX`.
const BATCH_BYTES_MAX: usize = 768 << 10;

/// With so many writers in a batch, more are likely to come soon, and the batch waits for them.
const GATHERED_WRITERS_MIN: usize = 4;

/// The shortest and the longest time for which a batch waits. It waits as long as the last commit
/// took, but not at all if that was less than the shortest time. A commit has a cost that its
/// records share: a create takes 160 µs of processor time with one writer and 21 µs with 64
/// (decision 14). So on busy processors larger batches leave more time for requests.
const GATHERING_TIMES: RangeInclusive<Duration> =
    Duration::from_micros(100)..=Duration::from_micros(500);

/// The queue of jobs, of which the committer's thread takes the next ones.
pub(crate) struct Queue {
    jobs: Receiver<Job>,
    committer: Arc<Mutex<Committer>>,
}

impl Queue {
    pub(crate) fn new(jobs: Receiver<Job>, committer: Arc<Mutex<Committer>>) -> Self {
        Self { jobs, committer }
    }

    /// Works until the store is closed or dropped.
    pub(crate) fn run(self) {
        let _guard = Guard(self.committer.lock().shared.clone());
        while let Ok(first) = self.next() {
            let is_idle = first.is_none();
            let (writes, other) = self.gather(first);
            let mut committer = self.committer.lock();
            committer.reopen_if_due();
            if is_idle {
                committer.settle_if_idle();
            }
            committer.process(writes);
            match other {
                Some(Job::Follow { follower, after, reply }) => {
                    let _ = reply.send(committer.add_follower(follower, after));
                }
                Some(Job::Compact { reply }) => committer.compaction.wait(reply),
                Some(Job::Close { reply }) => {
                    let followers = committer.close();
                    drop(committer);
                    // A follower may hold the last handle of the store.
                    drop(followers);
                    let _ = reply.send(Ok(()));
                    return;
                }
                Some(Job::Write(_) | Job::OtherWork) | None => {}
            }
        }
    }

    /// Waits for a job; returns `None` if other work is due first.
    fn next(&self) -> Result<Option<Job>, RecvError> {
        let due_in = self.committer.lock().due_in();
        let Some(due_in) = due_in else { return self.jobs.recv().map(Some) };
        match self.jobs.recv_timeout(due_in) {
            Err(RecvTimeoutError::Disconnected) => Err(RecvError),
            job => Ok(job.ok()),
        }
    }

    /// Takes queued writes up to a full batch or a job of another kind.
    fn gather(&self, first: Option<Job>) -> (Vec<QueuedGroup>, Option<Job>) {
        let (mut writes, mut bytes) = (Vec::new(), 0);
        let mut has_waited = false;
        let mut job = first;
        loop {
            match job {
                Some(Job::Write(queued)) => {
                    bytes +=
                        queued.group.writes().map(|w| w.change.template().len()).sum::<usize>();
                    writes.push(queued);
                }
                other => return (writes, other),
            }
            if writes.len() >= BATCH_WRITES_MAX || bytes >= BATCH_BYTES_MAX {
                return (writes, None);
            }
            job = self.jobs.try_recv().ok();
            if job.is_none() && !has_waited && writes.len() >= GATHERED_WRITERS_MIN {
                has_waited = true;
                self.wait_for_writers();
                job = self.jobs.try_recv().ok();
            }
        }
    }

    /// Waits for further writers. It sleeps, because waking up for each of them would cost more
    /// than the larger batch saves.
    fn wait_for_writers(&self) {
        let last_commit = self.committer.lock().last_commit;
        if last_commit >= *GATHERING_TIMES.start() {
            thread::sleep(last_commit.min(*GATHERING_TIMES.end()));
        }
    }
}

/// Fails all waiting writers when the committer's thread ends, even by a panic.
struct Guard(Arc<Shared>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.stopped();
    }
}
