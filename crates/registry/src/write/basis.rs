//! The state that a write is decided on.
//!
//! On a shared database the cache may lack what other processes were acknowledged a moment ago. A commit
//! names the revision that its object must have, and those of what it hangs on: where it succeeds, the state
//! at hand was current. So a write begins with that state, and only what commits nothing is decided again
//! after catching up, if there was something to catch up with: a refusal, or a write that changes nothing
//! (upstream: `GuaranteedUpdate` repeats on a fresh read what it refused or left out on its cache's state, if
//! that was not the newest).
//!
//! Invariants:
//! - No refusal and no omission is answered that a fresh state does not call for.
//! - A write whose outcome is unknown is not decided again: it may have been done.

use pintle_meta::Status;

use crate::answer::Outcome;
use crate::request::Context;
use crate::{Head, Registry, list};

/// How current the state is that a write is decided on.
pub(super) struct Basis {
    is_fresh: bool,
    /// How far the cache was before the decision.
    head: Head,
    /// How many warnings there were before.
    warnings: usize,
}

impl Basis {
    /// Whether the state has all that was acknowledged before the request came.
    pub(super) const fn is_fresh(&self) -> bool {
        self.is_fresh
    }
}

impl Registry {
    /// Runs a write on the state at hand, and once more on a fresh one where it commits nothing.
    pub(crate) async fn decide<F: Future<Output = Result<Outcome, Status>>>(
        &self,
        dry_run: bool,
        context: &Context,
        attempt: impl Fn() -> F,
    ) -> Result<Outcome, Status> {
        let mut basis = self.basis(dry_run, context).await?;
        let outcome = attempt().await;
        let is_decided = match &outcome {
            Ok(outcome) => outcome.committed,
            Err(status) => is_failure(status) || context.refusal.stands(),
        };
        if basis.is_fresh || is_decided {
            return outcome;
        }
        if self.refresh(&mut basis, context).await? { attempt().await } else { outcome }
    }

    /// What a write begins with: the state at hand, or a fresh one where none other will do. A dry run commits
    /// nothing in any case.
    pub(super) async fn basis(&self, dry_run: bool, context: &Context) -> Result<Basis, Status> {
        let is_fresh = dry_run || !self.store.is_shared();
        if is_fresh {
            self.catch_up().await?;
        }
        Ok(Basis { is_fresh, head: self.cache.head(), warnings: context.warnings.len() })
    }

    /// Makes the state fresh on which a write is decided again; false if the state was fresh already, and the
    /// decision stands. What was said of a decision that does not stand is not said twice.
    pub(super) async fn refresh(
        &self,
        basis: &mut Basis,
        context: &Context,
    ) -> Result<bool, Status> {
        self.catch_up().await?;
        basis.is_fresh = true;
        let is_stale = !self.cache.changed_since(basis.head).is_empty();
        if is_stale {
            context.warnings.truncate(basis.warnings);
        }
        Ok(is_stale)
    }

    /// Waits until readers see every write that was acknowledged before the call, by whichever server on
    /// the same database.
    pub async fn catch_up(&self) -> Result<(), Status> {
        let fresh = self.store.fresh().await.map_err(Status::internal)?;
        if self.cache.wait_for(fresh, list::PATIENCE).await {
            return Ok(());
        }
        Err(Status::too_large_resource_version(fresh.0, self.cache.visible().0))
    }
}

/// Whether a write failed, and was not refused: it may have been committed all the same, so it must not be
/// done again.
pub(super) const fn is_failure(status: &Status) -> bool {
    status.code >= 500
}
