//! A block: neighbouring records as one value of the database, and the marks of those that were
//! removed (`docs/decisions/0016-blocks.md` has both formats).
//!
//! A row for each record costs a search, a copy of the pages on the way to it, and their writes. A
//! block costs that once for many records. A removed record stays in its block, and the block's
//! marks say so.
//!
//! It must not know what records mean, or where blocks are stored.
//!
//! Invariants:
//! - The records of a block are in the order of their revisions, none of which is below the block's
//!   key.
//! - A block or marks that were damaged, or that are under another key, are an error. The bytes of
//!   records have a checksum of their own ([`crate::encoding`]).

use std::iter;

use super::Failure;
use crate::Revision;

/// The longest block with several records, in bytes: with the database's own fields it fits a page
/// of 32 KiB.
const BYTES_MAX: usize = (32 << 10) - 64;

/// The checksum, and the number of records.
const HEAD: usize = 4 + 4;
/// An item of the directory: a revision, and where its record ends among the records' bytes.
const ITEM: usize = 8 + 4;

/// Returns how many of the first records fit into one block; at least one.
pub(super) fn fitting<'a>(records: impl Iterator<Item = &'a [u8]>) -> usize {
    let lengths = records.scan(HEAD, |length, record| {
        *length += ITEM + record.len();
        Some(*length)
    });
    lengths.take_while(|length| *length <= BYTES_MAX).count().max(1)
}

/// Encodes a block, with big-endian numbers: a checksum of the key, the number of records and the
/// directory; the number of records; the directory; the records.
pub(super) fn encode<'a>(
    key: Revision,
    records: impl Iterator<Item = (Revision, &'a [u8])> + Clone,
) -> Result<Vec<u8>, Failure> {
    let lengths = records.clone().map(|(_, record)| ITEM + record.len());
    let mut block = Vec::with_capacity(HEAD + lengths.sum::<usize>());
    block.extend_from_slice(&[0; HEAD]);
    let too_large = |_| Failure("a block of records is too large".to_owned());
    let (mut count, mut end) = (0_u32, 0);
    for (revision, record) in records.clone() {
        end += record.len();
        count += 1;
        block.extend_from_slice(&revision.0.to_be_bytes());
        block.extend_from_slice(&u32::try_from(end).map_err(too_large)?.to_be_bytes());
    }
    block[4..HEAD].copy_from_slice(&count.to_be_bytes());
    let sum = checksum(key, &block[4..]);
    block[..4].copy_from_slice(&sum);
    for (_, record) in records {
        block.extend_from_slice(record);
    }
    Ok(block)
}

/// A decoded block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    directory: &'a [[u8; ITEM]],
    records: &'a [u8],
}

impl<'a> Block<'a> {
    /// Decodes the block under a key.
    pub(super) fn decode(key: Revision, bytes: &'a [u8]) -> Result<Self, Failure> {
        Self::parse(key, bytes)
            .ok_or_else(|| Failure(format!("the block of records from revision {key} is damaged")))
    }

    fn parse(key: Revision, bytes: &'a [u8]) -> Option<Self> {
        let (sum, rest) = bytes.split_first_chunk::<4>()?;
        let (count, _) = rest.split_first_chunk()?;
        let count = u32::from_be_bytes(*count) as usize;
        let (checked, records) = rest.split_at_checked(4 + count.checked_mul(ITEM)?)?;
        let (directory, _) = checked[4..].as_chunks();
        let block = Self { directory, records };
        let is_ordered = directory
            .is_sorted_by(|one, next| revision(one) < revision(next) && end(one) <= end(next));
        let begins = directory.first().is_some_and(|first| revision(first) >= key);
        let has_all = block.end(count) == records.len();
        (*sum == checksum(key, checked) && begins && is_ordered && has_all).then_some(block)
    }

    /// Returns the number of records, removed ones included.
    pub(super) const fn len(&self) -> usize {
        self.directory.len()
    }

    /// Returns the bytes of all records, removed ones included.
    pub(super) const fn bytes(&self) -> usize {
        self.records.len()
    }

    /// Returns the last revision.
    pub(super) fn last(&self) -> Option<Revision> {
        self.directory.last().map(revision)
    }

    /// Returns the position of a record.
    pub(super) fn position(&self, wanted: Revision) -> Option<usize> {
        self.directory.binary_search_by_key(&wanted, revision).ok()
    }

    /// Returns the record at a position below [`Self::len`].
    pub(super) fn record(&self, position: usize) -> (Revision, &'a [u8]) {
        let (start, end) = (self.end(position), self.end(position + 1));
        (revision(&self.directory[position]), &self.records[start..end])
    }

    /// Returns the records that are not marked.
    pub(super) fn unmarked<'m>(
        &self,
        marks: &'m Marks,
    ) -> impl Iterator<Item = (Revision, &'a [u8])> + Clone + use<'a, 'm> {
        let block = *self;
        let positions = (0..block.len()).filter(|position| !marks.has(*position));
        positions.map(move |position| block.record(position))
    }

    /// Returns where the first `count` records end among the records' bytes.
    fn end(&self, count: usize) -> usize {
        count.checked_sub(1).and_then(|last| self.directory.get(last)).map_or(0, end)
    }
}

/// The marks of a block: which of its records were removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    /// A bit for each record of the block, from the lowest bit of the first byte.
    bits: Vec<u8>,
}

impl Marks {
    /// Makes the marks of a block none of whose records was removed.
    pub(super) fn none(block: &Block<'_>) -> Self {
        Self { bits: vec![0; block.len().div_ceil(8)] }
    }

    /// Decodes the marks of a block under its key.
    pub(super) fn decode(key: Revision, block: &Block<'_>, bytes: &[u8]) -> Result<Self, Failure> {
        let sound = bytes.split_first_chunk::<4>().filter(|(sum, bits)| {
            **sum == checksum(key, bits) && bits.len() == block.len().div_ceil(8)
        });
        let damaged = || Failure(format!("the marks of the block from revision {key} are damaged"));
        let (_, bits) = sound.ok_or_else(damaged)?;
        Ok(Self { bits: bits.to_vec() })
    }

    /// Encodes the marks: a checksum of the key and the bits, and the bits.
    pub(super) fn encode(&self, key: Revision) -> Vec<u8> {
        let sum = checksum(key, &self.bits);
        iter::chain(sum, self.bits.iter().copied()).collect()
    }

    /// Whether the record at a position was removed.
    pub(super) fn has(&self, position: usize) -> bool {
        self.bits[position / 8] & 1 << (position % 8) != 0
    }

    /// Marks the record at a position.
    pub(super) fn add(&mut self, position: usize) {
        self.bits[position / 8] |= 1 << (position % 8);
    }
}

fn revision(item: &[u8; ITEM]) -> Revision {
    let [a, b, c, d, e, f, g, h, ..] = *item;
    Revision(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
}

fn end(item: &[u8; ITEM]) -> usize {
    let [.., a, b, c, d] = *item;
    u32::from_be_bytes([a, b, c, d]) as usize
}

/// The checksum includes the key, so that a value under another key counts as damaged.
fn checksum(key: Revision, bytes: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&key.0.to_be_bytes());
    hasher.update(bytes);
    hasher.finalize().to_be_bytes()
}

#[cfg(test)]
mod tests;
