//! From a medium that failed back to one that takes writes.
//!
//! Purpose: a full disk, or one that failed for a while, needs nobody to start the server again.
//!
//! Invariants: what became of the batch that failed is known before the next one is decided.

use std::time::{Duration, Instant};

use super::Committer;
use crate::encoding;
use crate::engine::{Batch, Failure, Moved};
use crate::local::Shared;

/// How long a medium that failed is left alone before it is opened again: at first, and at most, for
/// the time doubles with each attempt. An attempt writes the whole file again.
const REOPEN_FIRST: Duration = Duration::from_millis(100);
const REOPEN_MAX: Duration = Duration::from_secs(30);

/// A commit that failed.
pub(super) struct Failed {
    batch: Batch,
    /// When the medium is to be opened again.
    due: Instant,
    /// How long it is left alone after that.
    pause: Duration,
}

impl Failed {
    /// How long it is until the medium is to be opened again.
    pub(super) fn due_in(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }
}

impl Committer {
    /// Takes no more writes until the medium was opened again.
    pub(super) fn fail(&mut self, failure: Failure, batch: Batch) {
        tracing::error!(
            reason = failure.0,
            "the store failed and takes no writes until it is well"
        );
        self.shared.fail(failure);
        // A medium that fails again soon is left alone longer, though it was open in between.
        let pause = match self.reopened {
            Some((at, pause)) if at.elapsed() < REOPEN_MAX => (pause * 2).min(REOPEN_MAX),
            _ => REOPEN_FIRST,
        };
        self.failed = Some(Failed { batch, due: Instant::now() + pause, pause });
    }

    /// Opens a medium that failed again, if it is time, and takes writes if that succeeds.
    pub(super) fn reopen_if_due(&mut self) {
        let Some(mut failed) = self.failed.take_if(|failed| failed.due <= Instant::now()) else {
            return;
        };
        match self.reopen(&mut failed.batch) {
            Ok(()) => {
                self.shared.resume();
                self.reopened = Some((Instant::now(), failed.pause));
                tracing::info!("the store takes writes again");
            }
            Err(failure) => {
                failed.pause = (failed.pause * 2).min(REOPEN_MAX);
                failed.due = Instant::now() + failed.pause;
                let (reason, pause) = (&failure.0, failed.pause);
                tracing::warn!(reason, "the store is not well, and is tried again in {pause:?}");
                self.shared.fail(failure);
                self.failed = Some(failed);
            }
        }
    }

    /// Opens the medium again and finds out what became of the batch that failed: it is there wholly,
    /// and becomes visible, or it is not there at all.
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
            return Err(Failure(format!("after revision {head} is what nobody wrote")));
        }
        self.compaction.undo(floor, &batch.garbage);
        let written = batch.records.iter().map(|record| encoding::size(record) as u64).sum();
        self.count(Moved { written, removed: 0 });
        self.show(&mut batch.records);
        Ok(())
    }
}
