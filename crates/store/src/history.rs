//! The bound on past states, in bytes.
//!
//! A bound on time is not enough: five minutes of writes may be gigabytes.
//!
//! It must not know records, the medium, or readers.

use std::collections::VecDeque;

use crate::Revision;

/// Past states are divided into this many parts and dropped part by part.
const PARTS: u64 = 16;

/// The sizes of past changes in bytes.
#[derive(Debug)]
pub(crate) struct History {
    bytes_max: u64,
    /// The size of everything counted: the parts, and the changes after them.
    bytes: u64,
    /// The size of the changes after the last part.
    rest: u64,
    /// The last revision of each part, and its bytes.
    parts: VecDeque<(Revision, u64)>,
}

impl History {
    /// Makes an empty history with a bound.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, bytes: 0, rest: 0, parts: VecDeque::new() }
    }

    /// Counts changes up to a revision; if the bound is exceeded, returns the floor below which
    /// states must be dropped.
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
