//! The reader.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::major;
use crate::{DEPTH_MAX, Error, Map, Str, Value, number};

/// Reads data items from bytes.
pub(super) struct Reader<'b> {
    rest: &'b [u8],
    /// The number of open lists, maps and tags.
    depth: usize,
}

/// The decoded first bytes of an item.
#[derive(Clone, Copy)]
struct Head {
    major: u8,
    /// `None` for an item of indefinite length.
    number: Option<u64>,
    /// The low five bits of the first byte.
    info: u8,
}

/// The byte that ends an item of indefinite length.
const END: u8 = 0xff;

impl<'b> Reader<'b> {
    pub(super) const fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes, depth: 0 }
    }

    /// The number of bytes left.
    pub(super) const fn left(&self) -> usize {
        self.rest.len()
    }

    /// Checks that the input of `bytes` bytes is consumed.
    pub(super) fn end(&self, bytes: usize) -> Result<(), Error> {
        match self.rest.len() {
            0 => Ok(()),
            left => {
                let index = bytes - left;
                Err(wrong(format!("{left} bytes of extraneous data starting at index {index}")))
            }
        }
    }

    /// Reads the next item.
    pub(super) fn value(&mut self) -> Result<Value, Error> {
        let head = self.head()?;
        match head.major {
            major::UNSIGNED | major::NEGATIVE => integer(head),
            major::BYTES | major::TEXT => Ok(Value::String(self.text(head)?)),
            major::ARRAY => self.nested(|reader| reader.array(head.number)).map(Value::Array),
            major::MAP => self.nested(|reader| reader.map(head.number)).map(Value::Object),
            major::TAG => self.nested(|reader| reader.tagged(head.number)),
            _ => simple(head),
        }
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Error::Depth);
        }
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }

    fn array(&mut self, length: Option<u64>) -> Result<Vec<Value>, Error> {
        // The capacity grows with the items, as the declared length cannot be trusted.
        let (mut items, mut left) = (Vec::new(), length);
        while self.has_more(&mut left)? {
            items.push(self.value()?);
        }
        Ok(items)
    }

    fn map(&mut self, length: Option<u64>) -> Result<Map, Error> {
        let (mut members, mut left) = (Vec::new(), length);
        while self.has_more(&mut left)? {
            let head = self.head()?;
            if !matches!(head.major, major::BYTES | major::TEXT) {
                return Err(wrong("the key of a map is no string"));
            }
            let key = self.text(head)?;
            members.push((key, self.value()?));
        }
        let mut repeated_keys = None;
        let members = Map::from_unsorted(members, |key| repeated_keys = Some(key.clone()));
        match repeated_keys {
            Some(key) => Err(wrong(format!("found duplicate map key {key:?}"))),
            None => Ok(members),
        }
    }

    /// Whether another item follows. `left` counts the remaining items; `None` for an indefinite
    /// length.
    fn has_more(&mut self, left: &mut Option<u64>) -> Result<bool, Error> {
        match left {
            Some(0) => Ok(false),
            Some(left) => {
                *left -= 1;
                Ok(true)
            }
            None => {
                let (&next, rest) = self.rest.split_first().ok_or_else(truncated)?;
                if next == END {
                    self.rest = rest;
                }
                Ok(next != END)
            }
        }
    }

    /// Reads the content of a tag. Most tags have no equivalent in JSON and are dropped.
    fn tagged(&mut self, tag: Option<u64>) -> Result<Value, Error> {
        match tag {
            Some(21..=23) if self.rest.first().is_some_and(|b| b >> 5 == major::BYTES) => {
                let head = self.head()?;
                let bytes = self.bytes(head)?;
                Ok(Value::from(match tag {
                    Some(21) => URL_SAFE_NO_PAD.encode(bytes),
                    Some(22) => STANDARD.encode(bytes),
                    _ => bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
                }))
            }
            Some(tag @ 1..=3) => Err(wrong(format!("tag {tag} is not allowed"))),
            Some(_) => self.value(),
            None => Err(wrong("a tag has no number")),
        }
    }

    fn text(&mut self, head: Head) -> Result<Str, Error> {
        let bytes = self.bytes(head)?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.into()),
            Err(_) if head.major == major::TEXT => Err(wrong("invalid UTF-8 string")),
            // Other readers do not validate byte strings; here every text is UTF-8.
            Err(_) => Ok(String::from_utf8_lossy(&bytes).into()),
        }
    }

    /// Reads the bytes of a string, which may consist of chunks of its own type.
    fn bytes(&mut self, head: Head) -> Result<Vec<u8>, Error> {
        if let Some(length) = head.number {
            return Ok(self.take(length)?.to_vec());
        }
        let mut bytes = Vec::new();
        while self.has_more(&mut None)? {
            let piece = self.head()?;
            match piece.number {
                Some(length) if piece.major == head.major => {
                    bytes.extend_from_slice(self.take(length)?);
                }
                _ => return Err(wrong("wrong piece of a string")),
            }
        }
        Ok(bytes)
    }

    fn head(&mut self) -> Result<Head, Error> {
        let first = self.take(1)?[0];
        let (major, info) = (first >> 5, first & 0x1f);
        let number = match info {
            0..24 => Some(u64::from(info)),
            24..=27 => {
                let bytes = self.take(1 << (info - 24))?;
                Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
            }
            31 if matches!(major, major::BYTES..=major::MAP) => None,
            31 if major == major::SIMPLE => return Err(wrong(r#"unexpected "break" code"#)),
            _ => {
                let name = major::NAMES[usize::from(major & 7)];
                let words = format!("invalid additional information {info} for type {name}");
                return Err(wrong(words));
            }
        };
        Ok(Head { major, number, info })
    }

    fn take(&mut self, length: u64) -> Result<&'b [u8], Error> {
        let length = usize::try_from(length).ok().filter(|length| *length <= self.rest.len());
        let (taken, rest) = self.rest.split_at(length.ok_or_else(truncated)?);
        self.rest = rest;
        Ok(taken)
    }
}

fn integer(head: Head) -> Result<Value, Error> {
    let number = head.number.and_then(|number| i64::try_from(number).ok());
    let number = number.ok_or_else(|| wrong("an integer does not fit 64 bits"))?;
    Ok(Value::Int(if head.major == major::NEGATIVE { -1 - number } else { number }))
}

fn simple(head: Head) -> Result<Value, Error> {
    let number = head.number.unwrap_or_default();
    let x = match (head.info, number) {
        (20, _) => return Ok(Value::Bool(false)),
        (21, _) => return Ok(Value::Bool(true)),
        (22, _) => return Ok(Value::Null),
        (25, bits) => half(bits as u16),
        (26, bits) => f64::from(f32::from_bits(bits as u32)),
        (27, bits) => f64::from_bits(bits),
        (_, number) => return Err(unaccepted(&format!("simple value {number} is not recognized"))),
    };
    let what = if x.is_nan() { "floating-point NaN" } else { "floating-point infinity" };
    number::from_float(x).ok_or_else(|| unaccepted(what))
}

/// The error for valid CBOR that an object cannot contain.
fn unaccepted(what: &str) -> Error {
    let words = "data item of cbor type primitives is not accepted by protocol";
    wrong(format!("{words}: {what}"))
}

/// Decodes a half-precision float.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let size = match bits >> 10 & 0x1f {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction / 1024.0) * 2_f64.powi(i32::from(exponent) - 15),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

pub(super) const fn truncated() -> Error {
    Error::CborEnd
}

fn wrong(why: impl Into<String>) -> Error {
    Error::Cbor(why.into())
}
