//! Reads and writes CBOR (RFC 8949) as upstream's serializer does.
//!
//! A document begins with the tag of self-described CBOR, which identifies it. The encoding is
//! deterministic: the shortest form of numbers, keys ordered by their encoded bytes (except that
//! an object's kind and API version may come first, and a list's items last), and texts as byte
//! strings. The reader accepts only values that JSON can express: of the simple values only `true`,
//! `false` and `null`, and neither numeric times nor big integers (tags 1 to 3).
//!
//! Invariant: declared lengths are not trusted, and nothing is nested deeper than
//! [`DEPTH_MAX`](crate::DEPTH_MAX).

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use write::{
    Rest, write, write_event, write_item, write_list_head, write_map_head, write_object,
};

use crate::{Error, Value};

/// The prefix of a document: the head of tag 55799.
pub const MAGIC: &[u8] = &[0xd9, 0xd9, 0xf7];

/// Parses a single data item.
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    if bytes.is_empty() {
        return Err(Error::CborEmpty);
    }
    let mut reader = read::Reader::new(bytes);
    let value = reader.value()?;
    reader.end(bytes.len())?;
    Ok(value)
}

/// Parses the first data item of a sequence (RFC 8742), and returns it with its length; `None` if
/// it is incomplete.
pub fn first(bytes: &[u8]) -> Result<Option<(Value, usize)>, Error> {
    let mut reader = read::Reader::new(bytes);
    match reader.value() {
        Ok(value) => Ok(Some((value, bytes.len() - reader.left()))),
        Err(why) if why == read::truncated() => Ok(None),
        Err(why) => Err(why),
    }
}

/// The major types, in the upper three bits of an item's first byte.
mod major {
    pub(super) const UNSIGNED: u8 = 0;
    pub(super) const NEGATIVE: u8 = 1;
    pub(super) const BYTES: u8 = 2;
    pub(super) const TEXT: u8 = 3;
    pub(super) const ARRAY: u8 = 4;
    pub(super) const MAP: u8 = 5;
    pub(super) const TAG: u8 = 6;
    pub(super) const SIMPLE: u8 = 7;

    /// The names of the types in errors.
    pub(super) const NAMES: [&str; 8] = [
        "positive integer",
        "negative integer",
        "byte string",
        "UTF-8 text string",
        "array",
        "map",
        "tag",
        "primitives",
    ];
}
