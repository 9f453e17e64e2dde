//! Reopening of a medium that failed, after which the store takes writes again.
//!
//! A full disk, or one that failed for a while, needs no restart of the server.
//!
//! Invariant: before the next batch it is known whether the failed batch was committed.

use std::time::{Duration, Instant};

use super::Committer;
use crate::encoding;
use crate::engine::{Batch, Failure, Moved};
use crate::shared::Shared;

/// The pause before a failed medium is reopened: it begins with the first constant and doubles with
/// each attempt, up to the second. An attempt rewrites the files, so it must not be frequent.
const REOPEN_FIRST: Duration = Duration::from_millis(100);
const REOPEN_MAX: Duration = Duration::from_secs(30);

/// A failed commit.
pub(super) struct Failed {
    batch: Batch,
    /// The time of the next attempt.
    due: Instant,
    /// The pause before that attempt.
    pause: Duration,
}

impl Failed {
    /// Returns the time until the next attempt.
    pub(super) fn due_in(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }
}

impl Committer {
    /// Stops taking writes until the medium was reopened.
    pub(super) fn fail(&mut self, failure: Failure, batch: Batch) {
        tracing::error!(
            reason = failure.0,
            "the store failed to commit; writes are refused until it is reopened"
        );
        self.shared.fail(failure);
        // A medium that fails soon after it was reopened gets a longer pause.
        let pause = match self.reopened {
            Some((at, pause)) if at.elapsed() < REOPEN_MAX => (pause * 2).min(REOPEN_MAX),
            _ => REOPEN_FIRST,
        };
        self.failed = Some(Failed { batch, due: Instant::now() + pause, pause });
    }

    /// Reopens a failed medium if it is time, and takes writes again on success.
    pub(super) fn reopen_if_due(&mut self) {
        let Some(mut failed) = self.failed.take_if(|failed| failed.due <= Instant::now()) else {
            return;
        };
        match self.reopen(&mut failed.batch) {
            Ok(()) => {
                self.shared.resume();
                self.reopened = Some((Instant::now(), failed.pause));
                tracing::info!("reopened the store; it takes writes again");
            }
            Err(failure) => {
                failed.pause = (failed.pause * 2).min(REOPEN_MAX);
                failed.due = Instant::now() + failed.pause;
                let (reason, pause) = (&failure.0, failed.pause);
                tracing::warn!(reason, "cannot reopen the store; next attempt in {pause:?}");
                self.shared.fail(failure);
                self.failed = Some(failed);
            }
        }
    }

    /// Reopens the medium and finds out whether it has the failed batch, wholly, or not at all. If
    /// it has, the batch becomes visible.
    fn reopen(&mut self, batch: &mut Batch) -> Result<(), Failure> {
        let Shared { engine, horizon, .. } = &*self.shared;
        engine.reopen()?;
        let (head, floor) = (horizon.head(), engine.floor()?);
        if head > floor && engine.read(head)?.is_none() {
            return Err(Failure(format!("the record of revision {head} is missing")));
        }
        let mut found = Vec::new();
        engine.scan(head, &mut |record| {
            found.push(record);
            Ok(true)
        })?;
        if found.is_empty() {
            batch.records.clear();
        } else if found != batch.records {
            return Err(Failure(format!(
                "the records after revision {head} are not those of the failed batch"
            )));
        }
        self.compaction.undo(floor, &batch.garbage);
        let written = batch.records.iter().map(|record| encoding::size(record) as u64).sum();
        self.count(Moved { written, removed: 0 });
        self.publish(&mut batch.records);
        Ok(())
    }
}
