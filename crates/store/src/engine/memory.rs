//! The medium of a store in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use parking_lot::RwLock;

use super::{Batch, Engine, Failure, Moved, Visitor};
use crate::{Record, Revision, encoding};

/// A log in memory. Readers get its bytes without a copy.
#[derive(Debug, Default)]
pub(crate) struct MemoryEngine {
    log: RwLock<Log>,
}

#[derive(Debug, Default)]
struct Log {
    records: BTreeMap<Revision, Record>,
    floor: Revision,
}

impl Engine for MemoryEngine {
    fn commit(&self, batch: &Batch) -> Result<Moved, Failure> {
        let mut log = self.log.write();
        let mut moved = Moved::default();
        for record in &batch.records {
            moved.written += encoding::size(record) as u64;
            log.records.insert(record.revision, without_note(record));
        }
        for revision in &batch.garbage {
            let record = log.records.remove(revision);
            moved.removed += record.map_or(0, |record| encoding::size(&record) as u64);
        }
        if let Some(floor) = batch.floor {
            log.floor = floor;
        }
        Ok(moved)
    }

    fn read(&self, revision: Revision) -> Result<Option<Record>, Failure> {
        Ok(self.log.read().records.get(&revision).cloned())
    }

    fn scan(&self, after: Revision, visitor: &mut Visitor<'_>) -> Result<(), Failure> {
        let log = self.log.read();
        for (_, record) in log.records.range((Bound::Excluded(after), Bound::Unbounded)) {
            if !visitor(record.clone())? {
                break;
            }
        }
        Ok(())
    }

    fn scan_stored(&self, after: Revision, visitor: &mut Visitor<'_>) -> Result<(), Failure> {
        self.scan(after, visitor)
    }

    fn floor(&self) -> Result<Revision, Failure> {
        Ok(self.log.read().floor)
    }

    fn trim(&self, _: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn reopen(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Returns a record as a medium stores it: without note, and without bytes around the value.
fn without_note(record: &Record) -> Record {
    let bytes = record.value();
    Record { body: 0..bytes.len(), bytes, note: None, key: record.key.clone(), ..*record }
}
