//! The wire format: numbered fields, each a number or a run of bytes.

use crate::Error;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wire<'b> {
    Varint(u64),
    Fixed64(u64),
    /// Text, bytes, a message, or packed numbers.
    Bytes(&'b [u8]),
    Fixed32(u32),
}

/// The wire type numbers.
pub(crate) mod wire_type {
    pub(crate) const VARINT: u8 = 0;
    pub(crate) const FIXED64: u8 = 1;
    pub(crate) const BYTES: u8 = 2;
    pub(crate) const START_GROUP: u8 = 3;
    pub(crate) const END_GROUP: u8 = 4;
    pub(crate) const FIXED32: u8 = 5;
}

/// Iterates over the fields of a message in the order of the bytes: number and value. Groups, which
/// Kubernetes does not use, are skipped. After an error the iterator ends.
pub(super) struct Fields<'b> {
    rest: &'b [u8],
}

impl<'b> Fields<'b> {
    pub(super) const fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Reads a field whose key and length take a byte each, which is the most common case.
    #[inline]
    fn short_field(&mut self) -> Option<(u32, Wire<'b>)> {
        let (&[key, len], rest) = self.rest.split_first_chunk()?;
        if !(8..0x80).contains(&key) || key & 7 != wire_type::BYTES || len >= 0x80 {
            return None;
        }
        let (run, rest) = rest.split_at_checked(usize::from(len))?;
        self.rest = rest;
        Some((u32::from(key >> 3), Wire::Bytes(run)))
    }

    fn field(&mut self) -> Result<Option<(u32, Wire<'b>)>, Error> {
        // The number of open groups, whose fields are skipped.
        let mut groups = 0_usize;
        while !self.rest.is_empty() {
            let (tag, wire_type) = self.key()?;
            let wire = match wire_type {
                wire_type::VARINT => Wire::Varint(self.varint()?),
                wire_type::FIXED64 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
                wire_type::FIXED32 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
                wire_type::BYTES => Wire::Bytes(self.run()?),
                wire_type::START_GROUP => {
                    groups += 1;
                    continue;
                }
                wire_type::END_GROUP if groups == 0 => {
                    return Err(broken("proto: wiretype end group for non-group"));
                }
                wire_type::END_GROUP => {
                    groups -= 1;
                    continue;
                }
                other => {
                    return Err(Error::Protobuf(format!("proto: illegal wireType {other}").into()));
                }
            };
            if groups == 0 {
                return Ok(Some((tag, wire)));
            }
        }
        if groups == 0 { Ok(None) } else { Err(truncated()) }
    }

    /// Reads a field's number and wire type.
    fn key(&mut self) -> Result<(u32, u8), Error> {
        let key = self.varint()?;
        let wire_type = (key & 7) as u8;
        // Go truncates the number to an int32.
        let tag = (key >> 3) as u32;
        if i32::try_from(tag).is_ok_and(|tag| tag > 0) {
            return Ok((tag, wire_type));
        }
        let tag = tag.cast_signed();
        Err(Error::Protobuf(format!("proto: illegal tag {tag} (wire type {key})").into()))
    }

    pub(super) fn varint(&mut self) -> Result<u64, Error> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or_else(truncated)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(broken("proto: integer overflow"))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn run(&mut self) -> Result<&'b [u8], Error> {
        let len = self.varint()?;
        if i64::try_from(len).is_err() {
            return Err(broken("proto: negative length found during unmarshaling"));
        }
        let len = usize::try_from(len).map_err(|_| truncated())?;
        let (run, rest) = self.rest.split_at_checked(len).ok_or_else(truncated)?;
        self.rest = rest;
        Ok(run)
    }

    /// Iterates over packed numbers: the remaining bytes, without field numbers.
    pub(super) fn packed(mut self, double: bool) -> impl Iterator<Item = Result<Wire<'b>, Error>> {
        std::iter::from_fn(move || {
            if self.rest.is_empty() {
                return None;
            }
            let number = if double {
                self.array().map(|bytes| Wire::Fixed64(u64::from_le_bytes(bytes)))
            } else {
                self.varint().map(Wire::Varint)
            };
            if number.is_err() {
                self.rest = &[];
            }
            Some(number)
        })
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = Result<(u32, Wire<'b>), Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(field) = self.short_field() {
            return Some(Ok(field));
        }
        let field = self.field().transpose()?;
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

impl<'b> Wire<'b> {
    /// The bytes of the field `name`.
    #[inline]
    pub(super) fn bytes(self, name: &str) -> Result<&'b [u8], Error> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.unexpected(name)),
        }
    }

    /// The number of the field `name`.
    pub(super) fn varint(self, name: &str) -> Result<u64, Error> {
        match self {
            Self::Varint(number) => Ok(number),
            other => Err(other.unexpected(name)),
        }
    }

    /// The error for a value whose wire type does not fit the field `name`.
    #[cold]
    pub(super) fn unexpected(self, name: &str) -> Error {
        let wire_type = match self {
            Self::Varint(_) => wire_type::VARINT,
            Self::Fixed64(_) => wire_type::FIXED64,
            Self::Bytes(_) => wire_type::BYTES,
            Self::Fixed32(_) => wire_type::FIXED32,
        };
        // Go's field names begin with a capital letter.
        let mut letters = name.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase());
        let name: String = first.into_iter().chain(letters).collect();
        Error::Protobuf(format!("proto: wrong wireType = {wire_type} for field {name}").into())
    }
}

fn truncated() -> Error {
    broken("unexpected EOF")
}

fn broken(why: &'static str) -> Error {
    Error::Protobuf(why.into())
}

/// Writes the head of a field that is text, bytes or a message: its number and its length.
pub(crate) fn head(tag: u32, length: usize, out: &mut Vec<u8>) {
    let mut backwards = Backwards::default();
    backwards.number(length as u64);
    backwards.key(tag, wire_type::BYTES);
    backwards.finish(out);
}

/// The size of the head that [`head`] writes.
pub(crate) const fn head_bytes(tag: u32, length: usize) -> usize {
    groups((tag as u64) << 3) + groups(length as u64)
}

/// The size of a varint.
const fn groups(number: u64) -> usize {
    let groups = (64 - number.leading_zeros()).div_ceil(7) as usize;
    if groups == 0 { 1 } else { groups }
}

/// Writes a message backwards, from its end to its beginning, because the length of a nested
/// message precedes its content.
#[derive(Default)]
pub(crate) struct Backwards {
    /// The bytes, the last one first.
    bytes: Vec<u8>,
}

/// The end of a message that is being written.
#[derive(Clone, Copy)]
pub(crate) struct End(usize);

impl End {
    /// The number of bytes after the message's end.
    pub(crate) const fn bytes(self) -> usize {
        self.0
    }
}

impl Backwards {
    /// Appends the message to `out`, in the right order.
    pub(crate) fn finish(self, out: &mut Vec<u8>) {
        out.extend(self.bytes.iter().rev());
    }

    /// Writes a field that is text, bytes, or an encoded message.
    pub(crate) fn bytes(&mut self, tag: u32, bytes: &[u8]) {
        let end = self.begin();
        self.bytes.extend(bytes.iter().rev());
        self.end(tag, end);
    }

    /// Writes a field that is a number.
    pub(crate) fn varint(&mut self, tag: u32, number: u64) {
        self.number(number);
        self.key(tag, wire_type::VARINT);
    }

    /// Writes a field that is a floating-point number.
    pub(crate) fn double(&mut self, tag: u32, number: f64) {
        self.bytes.extend(number.to_bits().to_be_bytes());
        self.key(tag, wire_type::FIXED64);
    }

    /// Begins a nested message at its end.
    pub(crate) const fn begin(&self) -> End {
        End(self.bytes.len())
    }

    /// Completes a nested message with its head.
    pub(crate) fn end(&mut self, tag: u32, end: End) {
        self.number((self.bytes.len() - end.0) as u64);
        self.key(tag, wire_type::BYTES);
    }

    fn key(&mut self, tag: u32, wire_type: u8) {
        self.number(u64::from(tag) << 3 | u64::from(wire_type));
    }

    fn number(&mut self, number: u64) {
        let groups = groups(number);
        for group in (0..groups).rev() {
            let more = if group + 1 < groups { 0x80 } else { 0 };
            self.bytes.push((number >> (7 * group)) as u8 & 0x7f | more);
        }
    }
}
