//! How much of the past there is, in bytes.
//!
//! Purpose: a bound on what is kept for those who look back: time alone is none, for what is written in
//! five minutes may be gigabytes.
//!
//! Must not know: records, the medium, who looks back.

use std::collections::VecDeque;

use crate::Revision;

/// Into how many parts the past is divided; it is forgotten part by part.
const PARTS: u64 = 16;

/// The bytes of the changes of the past.
#[derive(Debug)]
pub(crate) struct History {
    bytes_max: u64,
    /// All that is counted: the parts, and what came after them.
    bytes: u64,
    /// What came after the last part.
    rest: u64,
    /// The last revision of each part, and its bytes.
    parts: VecDeque<(Revision, u64)>,
}

impl History {
    /// No past, of which so much is to be kept at most.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, bytes: 0, rest: 0, parts: VecDeque::new() }
    }

    /// Counts changes up to a revision; returns the revision before which all must be forgotten, if
    /// there is too much now.
    pub(crate) fn add(&mut self, newest: Revision, bytes: u64) -> Option<Revision> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.rest = self.rest.saturating_add(bytes);
        if self.rest > self.bytes_max / PARTS {
            self.parts.push_back((newest, self.rest));
            self.rest = 0;
        }
        let mut floor = None;
        while self.bytes > self.bytes_max
            && let Some((last, bytes)) = self.parts.pop_front()
        {
            self.bytes -= bytes;
            floor = Some(last);
        }
        floor
    }
}

#[cfg(test)]
mod tests;
