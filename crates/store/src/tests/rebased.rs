//! A store that starts at another revision, shown as one that starts at 0.

use std::sync::Arc;

use crate::{
    At, BoxFuture, Error, Expect, Follower, Group, Grouping, Key, Record, Revision, Store,
    StoredState, Write,
};

/// A store whose head at the start is shown as revision 0.
pub struct Rebased {
    store: Arc<dyn Store>,
    base: Base,
}

/// The revision that is shown as 0.
#[derive(Clone, Copy)]
struct Base(u64);

impl Rebased {
    /// Adapts a store; its current head is shown as 0.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let base = Base(store.head().0);
        Self { store, base }
    }
}

impl Base {
    const fn shown(self, revision: Revision) -> Revision {
        Revision(revision.0.saturating_sub(self.0))
    }

    const fn inner(self, revision: Revision) -> Revision {
        Revision(revision.0.saturating_add(self.0))
    }

    const fn inner_at(self, at: At) -> At {
        match at {
            At::Head => At::Head,
            At::Revision(revision) => At::Revision(self.inner(revision)),
        }
    }

    fn record(self, record: Record) -> Record {
        Record { revision: self.shown(record.revision), ..record }
    }

    fn write(self, write: Write) -> Write {
        let expect = match write.expect {
            // No key is ever written at revision 0, in either numbering.
            Expect::At(Revision(0)) => Expect::At(Revision(0)),
            Expect::At(revision) => Expect::At(self.inner(revision)),
            other => other,
        };
        Write { expect, ..write }
    }

    fn error(self, error: Error) -> Error {
        // A revision that is too large for the sum is shown as it was requested.
        let requested = |requested: Revision| {
            if requested.0 == u64::MAX { requested } else { self.shown(requested) }
        };
        match error {
            Error::Conflict { current } => {
                Error::Conflict { current: current.map(|current| Box::new(self.record(*current))) }
            }
            Error::Compacted { requested: revision, floor } => {
                Error::Compacted { requested: requested(revision), floor: self.shown(floor) }
            }
            Error::Future { requested: revision, head } => {
                Error::Future { requested: requested(revision), head: self.shown(head) }
            }
            other => other,
        }
    }
}

struct RebasedFollower {
    follower: Arc<dyn Follower>,
    base: Base,
}

impl Follower for RebasedFollower {
    fn apply(&self, records: &[Record], head: Revision) {
        let records: Vec<_> = records.iter().map(|r| self.base.record(r.clone())).collect();
        self.follower.apply(&records, self.base.shown(head));
    }

    fn reset(&self, state: &[Record], head: Revision) {
        let state: Vec<_> = state.iter().map(|r| self.base.record(r.clone())).collect();
        self.follower.reset(&state, self.base.shown(head));
    }
}

impl Store for Rebased {
    fn head(&self) -> Revision {
        self.base.shown(self.store.head())
    }

    fn floor(&self) -> Revision {
        self.base.shown(self.store.floor())
    }

    fn fresh(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        Box::pin(async { self.store.fresh().await.map(|revision| self.base.shown(revision)) })
    }

    fn commit(&self, group: Group) -> BoxFuture<'_, Result<Vec<Record>, Error>> {
        let base = self.base;
        let group = Group {
            first: base.write(group.first),
            rest: group.rest.into_iter().map(|write| base.write(write)).collect(),
            unchanged: group.unchanged.into_iter().map(|(k, at)| (k, base.inner(at))).collect(),
        };
        Box::pin(async move {
            let committed = self.store.commit(group).await;
            let records = committed.map_err(|e| base.error(e))?;
            Ok(records.into_iter().map(|r| base.record(r)).collect())
        })
    }

    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    fn grouping(&self) -> Grouping {
        self.store.grouping()
    }

    fn get(&self, key: &Key, at: At) -> BoxFuture<'_, Result<Option<Record>, Error>> {
        let key = key.clone();
        Box::pin(async move {
            let found = self.store.get(&key, self.base.inner_at(at)).await;
            found.map(|r| r.map(|r| self.base.record(r))).map_err(|e| self.base.error(e))
        })
    }

    fn list(
        &self,
        collection: &str,
        prefix: &str,
        at: At,
    ) -> BoxFuture<'_, Result<Vec<Record>, Error>> {
        let (collection, prefix) = (collection.to_owned(), prefix.to_owned());
        Box::pin(async move {
            let listed = self.store.list(&collection, &prefix, self.base.inner_at(at)).await;
            let records = listed.map_err(|e| self.base.error(e))?;
            Ok(records.into_iter().map(|r| self.base.record(r)).collect())
        })
    }

    fn is_current(&self, key: &Key) -> BoxFuture<'_, Result<bool, Error>> {
        self.store.is_current(key)
    }

    fn follow(&self, follower: Arc<dyn Follower>) -> BoxFuture<'_, Result<(), Error>> {
        let follower = RebasedFollower { follower, base: self.base };
        self.store.follow(Arc::new(follower))
    }

    fn compact(&self, floor: Revision) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let compacted = self.store.compact(self.base.inner(floor)).await;
            compacted.map_err(|e| self.base.error(e))
        })
    }

    fn stored_state(&self) -> BoxFuture<'_, Result<Box<dyn StoredState>, Error>> {
        self.store.stored_state()
    }

    fn check(&self) -> Result<(), Error> {
        self.store.check()
    }

    fn disk_bytes(&self) -> Option<u64> {
        self.store.disk_bytes()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.store.close()
    }
}
