//! Recovery: reads the log of a medium once and makes a store of it.
//!
//! Every record is checked and decoded. The same pass rebuilds the index and feeds the first
//! follower, because reading dominates the start with many objects.
//!
//! It must not know which medium the engine stores on, or what followers do with records.
//!
//! Invariants:
//! - Above the floor the log has every revision: a log with a missing or damaged one is refused.
//! - The garbage that a compaction left when the process crashed is found, and the committer
//!   removes it once the store is open.

use std::sync::Arc;

use crate::committer::Log;
use crate::engine::{Engine, Failure};
use crate::history::History;
use crate::index::Index;
use crate::local::Local;
use crate::replay::Portion;
use crate::threads::on_thread;
use crate::{BoxFuture, Error, Follower, Opening, Record, Revision, Store, damage, encoding};

/// An embedded store of this process whose log is not read yet.
pub struct LocalOpening {
    engine: Box<dyn Engine>,
    floor: Revision,
    history_bytes_max: u64,
}

impl LocalOpening {
    pub(crate) fn of(engine: impl Engine + 'static, history_bytes_max: u64) -> Result<Self, Error> {
        let floor = engine.floor()?;
        Ok(Self { engine: Box::new(engine), floor, history_bytes_max })
    }

    /// Reads the log.
    pub fn read(self) -> Result<Arc<dyn Store>, Error> {
        damage::guard(|| self.recover(None))
    }

    fn recover(self, follower: Option<Arc<dyn Follower>>) -> Result<Arc<dyn Store>, Error> {
        let mut recovery = Recovery::new(self.floor, self.history_bytes_max);
        let mut portion = Portion::default();
        self.engine.scan(Revision(0), &mut |mut record| {
            recovery.take(&mut record)?;
            if let Some(follower) = &follower
                && portion.add(record)
            {
                portion.deliver(&**follower);
            }
            Ok(true)
        })?;
        if let Some(follower) = &follower {
            portion.deliver(&**follower);
        }
        let Recovery { mut index, log, .. } = recovery;
        self.engine.convert()?;
        self.engine.trim(log.record_bytes)?;
        index.pack();
        let followers = follower.into_iter().collect();
        let store = Local::start(self.engine, index, log, followers)?;
        Ok(Arc::new(store))
    }
}

impl Opening for LocalOpening {
    fn floor(&self) -> Revision {
        self.floor
    }

    /// Reads the log on a separate thread.
    fn read_to(
        self: Box<Self>,
        follower: Arc<dyn Follower>,
    ) -> BoxFuture<'static, Result<Arc<dyn Store>, Error>> {
        Box::pin(on_thread("store-recovery", move || {
            damage::guard(|| self.recover(Some(follower)))
        }))
    }
}

/// The state that the records so far make.
struct Recovery {
    floor: Revision,
    index: Index,
    log: Log,
}

/// Reads the log for its index only. Values are not decrypted, so no key is needed.
pub(crate) fn stored_index(engine: &dyn Engine) -> Result<Index, Failure> {
    let mut recovery = Recovery::new(engine.floor()?, u64::MAX);
    engine.scan_stored(Revision(0), &mut |mut record| {
        recovery.take(&mut record)?;
        Ok(true)
    })?;
    Ok(recovery.index)
}

impl Recovery {
    fn new(floor: Revision, history_bytes_max: u64) -> Self {
        let log = Log {
            leftover: Vec::new(),
            record_bytes: 0,
            history: History::new(history_bytes_max),
            floor,
        };
        Self { floor, index: Index::new(floor), log }
    }

    /// Adds the next record; its key becomes that of the index.
    fn take(&mut self, record: &mut Record) -> Result<(), Failure> {
        let bytes = encoding::size(record) as u64;
        self.log.record_bytes += bytes;
        let Record { revision, kind, .. } = *record;
        if revision <= self.floor {
            self.log.leftover.extend(self.index.restore(revision, &mut record.key, kind));
            return Ok(());
        }
        let due = Revision(self.index.newest().0 + 1);
        if revision != due {
            return Err(Failure(format!("the record of revision {due} is missing")));
        }
        self.index.push(&mut record.key, kind);
        self.log.floor = self.log.history.add(revision, bytes).unwrap_or(self.log.floor);
        Ok(())
    }
}
