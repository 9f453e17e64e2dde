//! What is in the log already, on its way to a follower.
//!
//! Purpose: bounds. A follower gets the log in portions, so that no call of it takes longer than one
//! for a batch of writes, and no more of the log is in memory than what the follower keeps.
//!
//! Must not know: where the records come from.

use crate::{Follower, Record};

/// Records that a follower is given at once, and the bytes of their values after which there are no
/// more: what one call must not take longer for than a batch of writes.
const RECORDS_MAX: usize = 256;
const BYTES_MAX: usize = 4 << 20;

/// The next records for a follower.
#[derive(Default)]
pub(crate) struct Portion {
    pub(crate) records: Vec<Record>,
    bytes: usize,
}

impl Portion {
    /// Adds a record; true when there are enough.
    pub(crate) fn add(&mut self, record: Record) -> bool {
        self.bytes += record.body.len();
        self.records.push(record);
        self.records.len() >= RECORDS_MAX || self.bytes >= BYTES_MAX
    }

    /// Gives the follower what there is, and is empty then.
    pub(crate) fn give(&mut self, follower: &dyn Follower) {
        if let Some(last) = self.records.last() {
            follower.apply(&self.records, last.revision);
        }
        self.records.clear();
        self.bytes = 0;
    }
}
