//! The basis: the state of the object on which a write is decided.
//!
//! On a shared database the cache may lack writes that other processes acknowledged a moment ago. A
//! commit checks the revisions of the object and of everything that the write depends on: if it
//! succeeds, the cached state was current. So a write starts with the cached state. A write that
//! commits nothing (a refusal, or a write without effect) is decided again on a fresh state if the
//! cache was behind (upstream: `GuaranteedUpdate` repeats on a fresh read what it refused or
//! skipped on a stale cached state).
//!
//! Invariants:
//! - A refusal, or a result without a commit, is based on a fresh state, unless the refusal is
//!   final whatever the state is.
//! - A write whose outcome is unknown is not repeated: it may have been committed.

use pintle_meta::Status;

use crate::request::Context;
use crate::results::Outcome;
use crate::{Head, Registry, list};

/// How current the cached state was when a write was decided.
pub(super) struct Basis {
    is_fresh: bool,
    /// The head of the cache before the decision.
    head: Head,
    /// The number of warnings before the decision.
    warnings: usize,
}

impl Basis {
    /// Whether the state includes every write that was acknowledged before the request arrived.
    pub(super) const fn is_fresh(&self) -> bool {
        self.is_fresh
    }
}

impl Registry {
    /// Runs a write on the cached state. If the run commits nothing and the cached state was
    /// behind, runs the write again on a fresh state.
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
            Err(status) => is_failure(status) || context.refusal.is_final(),
        };
        if basis.is_fresh || is_decided {
            return outcome;
        }
        if self.refresh(&mut basis, context).await? { attempt().await } else { outcome }
    }

    /// Begins a write on the cached state. A dry run begins on a fresh state, because it commits
    /// nothing.
    pub(super) async fn basis(&self, dry_run: bool, context: &Context) -> Result<Basis, Status> {
        let is_fresh = dry_run || !self.is_shared();
        if is_fresh {
            self.catch_up().await?;
        }
        Ok(Basis { is_fresh, head: self.cache.head(), warnings: context.warnings.len() })
    }

    /// Makes the state fresh for a second decision and drops the warnings of the first. Returns
    /// false if the cached state was current, so that the first decision stands.
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

    /// Whether other servers write to the same database, so that the cache may lack what they wrote.
    pub fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    /// Waits until readers see every write that was acknowledged before the call, by any server on
    /// the same database.
    pub async fn catch_up(&self) -> Result<(), Status> {
        let fresh = self.store.fresh().await.map_err(Status::internal)?;
        if self.cache.wait_for(fresh, list::FRESH_TIMEOUT).await {
            return Ok(());
        }
        Err(Status::too_large_resource_version(fresh.0, self.cache.visible().0))
    }
}

/// Whether a write failed instead of being refused. It may have been committed, so it must not be
/// repeated.
pub(super) const fn is_failure(status: &Status) -> bool {
    status.code >= 500
}
