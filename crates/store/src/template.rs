//! A value that is complete but for its own revision.
//!
//! An object's bytes hold its resource version, which is known only once the write has its revision.
//! So a writer encodes the object with a hole, and the store fills the hole in while it copies the bytes to
//! their final memory: an object is encoded once, and those bytes are stored, cached, and sent.

use std::ops::Range;

use bytes::Bytes;

use crate::Revision;

/// Bytes with a hole for the revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    bytes: Vec<u8>,
    /// Where the decimal revision goes; `None` for a value that does not hold it.
    hole: Option<usize>,
    /// The part that is stored; what stands around it comes back in this process's own records only.
    body: Range<usize>,
}

impl Template {
    /// A value that holds no revision.
    pub fn whole(bytes: Vec<u8>) -> Self {
        Self { body: 0..bytes.len(), hole: None, bytes }
    }

    /// A value `bytes[body]` with something around it, and a hole inside.
    ///
    /// # Panics
    /// If `body` is not within `bytes`, or `hole` not within `body`.
    pub fn framed(bytes: Vec<u8>, body: Range<usize>, hole: Option<usize>) -> Self {
        assert!(body.start <= body.end && body.end <= bytes.len(), "the body lies in the bytes");
        assert!(hole.is_none_or(|h| body.start <= h && h <= body.end), "the hole lies in the body");
        Self { bytes, hole, body }
    }

    /// The final bytes and where the value is in them.
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

    /// The value before it is filled: without its revision.
    pub fn value(&self) -> &[u8] {
        &self.bytes[self.body.clone()]
    }

    /// The size of the value before it is filled, in bytes.
    pub const fn len(&self) -> usize {
        self.body.end - self.body.start
    }

    /// Whether there is no value.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
