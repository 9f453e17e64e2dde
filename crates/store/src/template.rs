//! Templates: encoded values with a hole, in which the store writes the revision.
//!
//! An object's bytes contain its resource version, which is known only when the write has its
//! revision. So a writer encodes the object with a hole, and the store fills it while it copies the
//! bytes to their final memory: an object is encoded once, and those bytes are stored, cached and
//! sent.

use std::ops::Range;

use bytes::Bytes;

use crate::Revision;

/// Bytes with a hole for the revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    bytes: Vec<u8>,
    /// The position of the decimal revision; `None` for a value without one.
    hole: Option<usize>,
    /// The part that is stored. The bytes around it are only in records of this process.
    body: Range<usize>,
}

impl Template {
    /// Makes a template of a value without a revision.
    pub fn whole(bytes: Vec<u8>) -> Self {
        Self { body: 0..bytes.len(), hole: None, bytes }
    }

    /// Makes a template of the value `bytes[body]` with bytes around it and a hole inside.
    ///
    /// # Panics
    /// If `body` is not within `bytes`, or `hole` not within `body`.
    pub fn framed(bytes: Vec<u8>, body: Range<usize>, hole: Option<usize>) -> Self {
        assert!(body.start <= body.end && body.end <= bytes.len(), "the body lies in the bytes");
        assert!(hole.is_none_or(|h| body.start <= h && h <= body.end), "the hole lies in the body");
        Self { bytes, hole, body }
    }

    /// Returns the final bytes and the range of the value in them.
    pub fn fill(&self, revision: Revision) -> (Bytes, Range<usize>) {
        let Some(hole) = self.hole else {
            return (Bytes::copy_from_slice(&self.bytes), self.body.clone());
        };
        let digits = revision.to_string();
        let mut filled = Vec::with_capacity(self.bytes.len() + digits.len());
        filled.extend_from_slice(&self.bytes[..hole]);
        filled.extend_from_slice(digits.as_bytes());
        filled.extend_from_slice(&self.bytes[hole..]);
        (filled.into(), self.body.start..self.body.end + digits.len())
    }

    /// Returns the value before it is filled: without its revision.
    pub fn value(&self) -> &[u8] {
        &self.bytes[self.body.clone()]
    }

    /// Returns the size of the value before it is filled, in bytes.
    pub const fn len(&self) -> usize {
        self.body.end - self.body.start
    }

    /// Whether there is no value.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
