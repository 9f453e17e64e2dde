//! Blocks, the parts of a snapshot, and the records in them.
//!
//! A block is a head of 5 bytes (the length of its content, its type), the content, and a checksum.
//! The checksum includes the number of the block in the file, so that a block out of place counts
//! as damaged.
//!
//! It must not know where the bytes come from or go to.

use bytes::{Buf, BufMut, Bytes};
use pintle_store::{Key, Kind, Record, Revision};

/// The first line of every snapshot.
pub(crate) const MAGIC: &str = "pintle-snapshot ";
/// The format that this version writes, and the newest that it reads.
pub(crate) const FORMAT: u32 = 1;
/// The length of the first line: the magic, ten digits and a line end.
pub(crate) const FIRST_LINE_LEN: usize = MAGIC.len() + 10 + 1;

/// A block is closed before its content has more bytes than this. A larger record has a block of
/// its own.
pub(crate) const CONTENT_BYTES: usize = 256 << 10;
/// The largest content of a block. Objects are a few megabytes at most.
pub(crate) const CONTENT_BYTES_MAX: usize = 64 << 20;

/// The length of a block's head and of its checksum.
pub(crate) const HEAD_LEN: usize = 5;
pub(crate) const CHECKSUM_LEN: usize = 4;

/// The types of blocks.
pub(crate) const HEADER: u8 = 1;
pub(crate) const RECORDS: u8 = 2;
pub(crate) const END: u8 = 3;

/// The length of the end's content: revision, number of records, SHA-256.
pub(crate) const END_LEN: usize = 8 + 8 + 32;

const CREATED: u8 = 1;
const UPDATED: u8 = 2;

/// The length of a record's fixed part: revision, kind, and three lengths.
const RECORD_LEN: usize = 8 + 1 + 3 * 4;

/// Returns the first line of a snapshot in a format.
pub(crate) fn first_line(format: u32) -> String {
    format!("{MAGIC}{format:010}\n")
}

/// Parses the first line; `None` if the file is no snapshot.
pub(crate) fn parse_first_line(line: &[u8]) -> Option<u32> {
    let line = std::str::from_utf8(line).ok()?;
    let digits = line.strip_prefix(MAGIC)?.strip_suffix('\n')?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    digits.parse().ok()
}

/// Appends a block.
pub(crate) fn write(number: u64, kind: u8, content: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(content.len()).expect("content has a bound far below 4 GiB");
    out.put_u32(length);
    out.put_u8(kind);
    out.put_slice(content);
    out.put_u32(checksum(number, kind, content));
}

/// The checksum of a block.
pub(crate) fn checksum(number: u64, kind: u8, content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_be_bytes());
    hasher.update(&[kind]);
    hasher.update(content);
    hasher.finalize()
}

/// Returns the length of an encoded record.
pub(crate) fn record_len(record: &Record) -> usize {
    let Key { collection, item } = &record.key;
    RECORD_LEN + collection.len() + item.len() + record.body.len()
}

/// Appends a record. The record must have a value, because a snapshot has no deletions.
pub(crate) fn write_record(record: &Record, out: &mut Vec<u8>) {
    let Key { collection, item } = &record.key;
    let value = &record.bytes[record.body.clone()];
    out.put_u64(record.revision.0);
    out.put_u8(if record.kind == Kind::Updated { UPDATED } else { CREATED });
    for part in [collection.as_bytes(), item.as_bytes(), value] {
        out.put_u32(u32::try_from(part.len()).expect("records have a bound far below 4 GiB"));
    }
    for part in [collection.as_bytes(), item.as_bytes(), value] {
        out.put_slice(part);
    }
}

/// Reads the records of a block; `None` if the content is invalid.
pub(crate) fn read_records(mut content: Bytes) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    while content.has_remaining() {
        (content.remaining() >= RECORD_LEN).then_some(())?;
        let revision = Revision(content.get_u64());
        let kind = match content.get_u8() {
            CREATED => Kind::Created,
            UPDATED => Kind::Updated,
            _ => return None,
        };
        let lengths = [content.get_u32(), content.get_u32(), content.get_u32()];
        let mut part = |length: u32| {
            let length = usize::try_from(length).ok()?;
            (content.remaining() >= length).then(|| content.split_to(length))
        };
        let [collection, item, value] = [part(lengths[0])?, part(lengths[1])?, part(lengths[2])?];
        let text = |part: &Bytes| std::str::from_utf8(part).ok().map(Into::into);
        let key = Key { collection: text(&collection)?, item: text(&item)? };
        let body = 0..value.len();
        records.push(Record { revision, key, kind, bytes: value, body, note: None });
    }
    Some(records)
}
