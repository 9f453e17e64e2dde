//! The encoding of a record on disk: `docs/decisions/0002-storage-format.md` has the table.
//!
//! A checksum detects damaged records.
//!
//! It must not know where the bytes are stored or what the value means.

use std::str;

use bytes::Bytes;

use crate::failure::Failure;
use crate::{Key, Kind, Record, Revision};

const CREATED: u8 = 1;
const UPDATED: u8 = 2;
const DELETED: u8 = 3;

/// The checksum, the kind, and the lengths of the key's two parts.
const HEADER_LEN: usize = 4 + 1 + 4 + 4;

/// Encodes a record without its revision, which is its key on disk; `value` is the stored form of
/// its value.
pub(crate) fn encode(record: &Record, value: &[u8]) -> Result<Vec<u8>, Failure> {
    let Key { collection, item } = &record.key;
    let mut bytes = Vec::with_capacity(HEADER_LEN + collection.len() + item.len() + value.len());
    bytes.extend_from_slice(&[0; 4]);
    bytes.push(match record.kind {
        Kind::Created => CREATED,
        Kind::Updated => UPDATED,
        Kind::Deleted => DELETED,
    });
    bytes.extend_from_slice(&length(collection)?);
    bytes.extend_from_slice(&length(item)?);
    bytes.extend_from_slice(collection.as_bytes());
    bytes.extend_from_slice(item.as_bytes());
    bytes.extend_from_slice(value);
    let checksum = checksum(record.revision, &bytes[4..]);
    bytes[..4].copy_from_slice(&checksum.to_be_bytes());
    Ok(bytes)
}

/// Decodes the record of a revision; its value is in the stored form.
pub(crate) fn decode(revision: Revision, bytes: &[u8]) -> Result<Record, Failure> {
    let sound = bytes
        .split_first_chunk()
        .filter(|(sum, rest)| u32::from_be_bytes(**sum) == checksum(revision, rest))
        .and_then(|(_, rest)| split(rest));
    let damaged = || Failure(format!("the record of revision {revision} is damaged"));
    let (key, kind, value) = sound.ok_or_else(damaged)?;
    let bytes = Bytes::copy_from_slice(value);
    Ok(Record { revision, key, kind, body: 0..bytes.len(), bytes, note: None })
}

/// Returns the size of an encoded record with a plain value.
pub(crate) fn size(record: &Record) -> usize {
    HEADER_LEN + record.key.collection.len() + record.key.item.len() + record.body.len()
}

fn length(part: &str) -> Result<[u8; 4], Failure> {
    let length = u32::try_from(part.len());
    length.map(u32::to_be_bytes).map_err(|_| Failure("a key is longer than 4 GiB".to_owned()))
}

/// The checksum includes the revision, so that a record under another revision counts as damaged.
fn checksum(revision: Revision, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&revision.0.to_be_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

fn split(bytes: &[u8]) -> Option<(Key, Kind, &[u8])> {
    let (&kind, rest) = bytes.split_first()?;
    let kind = match kind {
        CREATED => Kind::Created,
        UPDATED => Kind::Updated,
        DELETED => Kind::Deleted,
        _ => return None,
    };
    let (collection_len, rest) = rest.split_first_chunk()?;
    let (item_len, rest) = rest.split_first_chunk()?;
    let (collection, rest) = rest.split_at_checked(u32::from_be_bytes(*collection_len) as usize)?;
    let (item, value) = rest.split_at_checked(u32::from_be_bytes(*item_len) as usize)?;
    let collection = str::from_utf8(collection).ok()?.into();
    let item = str::from_utf8(item).ok()?.into();
    Some((Key { collection, item }, kind, value))
}

#[cfg(test)]
mod tests;
