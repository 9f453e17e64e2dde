//! Replay of the log to a follower, in bounded portions.
//!
//! No `apply` call takes longer than one for a batch of writes, and no more of the log is in memory
//! than the follower stores.
//!
//! It must not know where the records come from.

use crate::{Follower, Record};

/// The most records in one portion, and the bytes of values after which it takes no more.
const RECORDS_MAX: usize = 256;
const BYTES_MAX: usize = 4 << 20;

/// The next records for a follower.
#[derive(Default)]
pub(crate) struct Portion {
    pub(crate) records: Vec<Record>,
    bytes: usize,
}

impl Portion {
    /// Adds a record; returns true if the portion is full.
    pub(crate) fn add(&mut self, record: Record) -> bool {
        self.bytes += record.body.len();
        self.records.push(record);
        self.records.len() >= RECORDS_MAX || self.bytes >= BYTES_MAX
    }

    /// Passes the records to the follower and clears the portion.
    pub(crate) fn deliver(&mut self, follower: &dyn Follower) {
        if let Some(last) = self.records.last() {
            follower.apply(&self.records, last.revision);
        }
        self.records.clear();
        self.bytes = 0;
    }
}
