//! Entries as sectors: which of them are whole, torn, old or damaged.
//!
//! A disk writes a sector wholly or not at all, and each sector names its entry. So an entry some
//! of whose sectors are missing was being written when the power failed, and one that has all its
//! sectors, but not its checksum, is damaged.

use std::collections::BTreeMap;
use std::iter;

use super::{Found, failure};
use crate::engine::{Entry, Failure};

/// The smallest unit that disks write atomically.
pub(super) const SECTOR: usize = 512;

/// The bytes of a sector before its part of the contents: the entry's number (8) and length (4),
/// the sector's index in the entry (4), and the checksum of these fields (4).
const HEADER: usize = 20;
const PART: usize = SECTOR - HEADER;

/// The encoded form of an entry.
pub(super) struct Sectors {
    pub(super) bytes: Vec<u8>,
}

/// The header of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    number: u64,
    /// The length of the entry's contents in bytes, checksum included.
    length: u32,
    index: u32,
}

/// Returns the length of an entry in the file, in bytes.
pub(super) fn length(entry: &Entry) -> u64 {
    (count(4 + entry.size()) * SECTOR) as u64
}

const fn count(length: usize) -> usize {
    length.div_ceil(PART)
}

impl Sectors {
    /// Encodes an entry under its number.
    pub(super) fn of(number: u64, entry: &Entry) -> Result<Self, Failure> {
        let mut contents = Vec::with_capacity(4 + entry.size());
        contents.extend_from_slice(&[0; 4]);
        entry.encode(&mut contents)?;
        let sum = checksum(number, &contents[4..]);
        contents[..4].copy_from_slice(&sum.to_be_bytes());
        let length = u32::try_from(contents.len()).map_err(|_| failure("an entry is too long"))?;
        let mut bytes = Vec::with_capacity(count(contents.len()) * SECTOR);
        for (index, part) in (0..).zip(contents.chunks(PART)) {
            bytes.extend_from_slice(&Header { number, length, index }.encode());
            bytes.extend_from_slice(part);
        }
        bytes.resize(bytes.len().next_multiple_of(SECTOR), 0);
        Ok(Self { bytes })
    }
}

impl Header {
    fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.number.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.index.to_be_bytes());
        let sum = crc32fast::hash(&bytes[..16]);
        bytes[16..].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Decodes the header of a sector; `None` if the sector is of zeros: it was never written.
    fn decode(sector: &[u8]) -> Result<Option<Self>, Failure> {
        let damaged = || failure("a sector is damaged");
        let (header, part) = sector.split_first_chunk::<HEADER>().ok_or_else(damaged)?;
        if header == &[0; HEADER] {
            let is_unused = part.iter().all(|byte| *byte == 0);
            return if is_unused { Ok(None) } else { Err(damaged()) };
        }
        let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|n| header[at + n]));
        let number = u64::from(word(0)) << 32 | u64::from(word(4));
        let header = Self { number, length: word(8), index: word(12) };
        if header.encode() == sector[..HEADER] { Ok(Some(header)) } else { Err(damaged()) }
    }
}

/// Finds the entries in a journal's file that follow the entry `applied`.
///
/// # Errors
/// The file is damaged: it lacks an entry that was written before another one, a whole entry does
/// not have its checksum, or the header of a sector does not.
pub(super) fn read(bytes: &[u8], applied: u64) -> Result<Found, Failure> {
    let sectors: Vec<&[u8]> = bytes.chunks_exact(SECTOR).collect();
    let headers = sectors.iter().map(|sector| Header::decode(sector));
    let headers: Vec<Option<Header>> = headers.collect::<Result<_, _>>()?;
    let mut new = BTreeMap::new();
    let mut at = 0;
    while at < headers.len() {
        match headers[at] {
            Some(first) if is_whole(first, &headers[at..]) => {
                let end = at + count(first.length as usize);
                let contents = contents(first, &sectors[at..end])?;
                if first.number > applied {
                    let entry = Entry::decode(&contents).ok_or_else(|| damaged(first))?;
                    new.insert(first.number, entry);
                }
                at = end;
            }
            _ => at += 1, // unused, torn, or what a later entry left of an old one
        }
    }
    if let Some((_, due)) = iter::zip(new.keys(), applied + 1..).find(|(found, due)| *found != due)
    {
        return Err(missing(due));
    }
    let last = applied + new.len() as u64;
    let mut entries: Vec<Entry> = new.into_values().collect();
    // The entry after the last whole one may be torn. No later one was begun, unless an entry is
    // damaged.
    let begun = headers.iter().flatten().map(|header| header.number).max().unwrap_or(0).max(last);
    if begun > last + 1 {
        return Err(missing(last + 1));
    }
    entries.extend((begun > last).then(Entry::default));
    Ok(Found { entries, last: begun })
}

/// Returns the contents of a whole entry, without their checksum.
fn contents(first: Header, sectors: &[&[u8]]) -> Result<Vec<u8>, Failure> {
    let mut contents = Vec::with_capacity(sectors.len() * PART);
    sectors.iter().for_each(|sector| contents.extend_from_slice(&sector[HEADER..]));
    contents.truncate(first.length as usize);
    let (sum, contents) = contents.split_first_chunk().ok_or_else(|| damaged(first))?;
    if u32::from_be_bytes(*sum) != checksum(first.number, contents) {
        return Err(damaged(first));
    }
    Ok(contents.to_vec())
}

fn damaged(entry: Header) -> Failure {
    failure(format!("its entry {} is damaged", entry.number))
}

/// Whether all sectors of an entry are there, judged by their headers.
fn is_whole(first: Header, headers: &[Option<Header>]) -> bool {
    let expected = (0..).map(|index| Some(Header { index, ..first }));
    let count = count(first.length as usize);
    headers.len() >= count
        && iter::zip(&headers[..count], expected).all(|(&have, want)| have == want)
}

fn missing(number: u64) -> Failure {
    failure(format!("its entry {number} is missing or damaged, though later ones are there"))
}

/// The checksum includes the number, so that an entry under another number counts as damaged.
fn checksum(number: u64, contents: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_be_bytes());
    hasher.update(contents);
    hasher.finalize()
}
