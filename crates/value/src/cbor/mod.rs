//! CBOR (RFC 8949) to values and back, as upstream's serializer has it.
//!
//! Documents begin with the tag of self-described CBOR, by which they are known. Writing is
//! deterministic: numbers as short as they go, keys in the order of their bytes (but an object's kind and
//! API version may come first, a list's items last); texts are byte strings.
//! Reading takes what JSON could say: of simple values `true`, `false` and `null`, of tags none that
//! stands for a number or a time in numbers.
//!
//! Invariant: nothing is believed about lengths, and nothing is nested deeper than
//! [`DEPTH_MAX`](crate::DEPTH_MAX).

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use write::{
    Rest, write, write_event, write_item, write_list_head, write_map_head, write_object,
};

use crate::{Error, Value};

/// What a document begins with: the head of tag 55799.
pub const MAGIC: &[u8] = &[0xd9, 0xd9, 0xf7];

/// Reads one data item and nothing behind it.
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    if bytes.is_empty() {
        return Err(Error::CborEmpty);
    }
    let mut reader = read::Reader::new(bytes);
    let value = reader.value()?;
    reader.end(bytes.len())?;
    Ok(value)
}

/// Reads the first data item of a sequence (RFC 8742); says how long it is. `None` where it is not whole.
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

    /// What they are called.
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
