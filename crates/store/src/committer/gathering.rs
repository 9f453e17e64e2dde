//! Gathering: which queued writes are committed together.

use std::ops::RangeInclusive;
use std::thread;
use std::time::Duration;

use super::{Committer, Job, QueuedGroup};

/// The most writes in one batch: enough for every concurrent writer of a server, and few enough
/// that the first does not wait noticeably for the last.
const BATCH_WRITES_MAX: usize = 1024;

/// A batch takes no more writes after this many bytes of values: some milliseconds of disk time.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// With so many writers in a batch, more are likely to come soon, and the batch waits for them.
const GATHERED_WRITERS_MIN: usize = 4;

/// The shortest and the longest time for which a batch waits. It waits as long as the last commit
/// took, but not at all if that was less than the shortest time. A commit has a cost that its
/// records share: a create takes 160 µs of processor time with one writer and 21 µs with 64
/// (decision 14). So on busy processors larger batches leave more time for requests.
const GATHERING_TIMES: RangeInclusive<Duration> =
    Duration::from_micros(100)..=Duration::from_micros(500);

impl Committer {
    /// Takes queued writes up to a full batch or a job of another kind.
    pub(super) fn gather(&self, first: Option<Job>) -> (Vec<QueuedGroup>, Option<Job>) {
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
        if self.last_commit >= *GATHERING_TIMES.start() {
            thread::sleep(self.last_commit.min(*GATHERING_TIMES.end()));
        }
    }
}
