//! The writer.

use std::ops::Range;

use super::{MAGIC, major};
use crate::{Value, json};

/// Writes a document.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(MAGIC);
    write_item(value, out);
}

/// The part of an encoded object after its kind and API version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The number of members. After a head of its own ([`write_map_head`]) the part is a map.
    pub members: usize,
    /// The range of bytes.
    pub range: Range<usize>,
}

/// Writes an object as a document with the members `kind` and `apiVersion` first. Returns the part
/// after them.
pub fn write_object(object: &Value, out: &mut Vec<u8>) -> Rest {
    const TYPE: [&str; 2] = ["kind", "apiVersion"];
    let members = sorted(object);
    let typed = TYPE.iter().filter_map(|key| Some((*key, object.get(key)?)));
    let typed: Vec<_> = typed.collect();
    out.extend_from_slice(MAGIC);
    write_map_head(members.len(), out);
    for (key, value) in &typed {
        text(key, out);
        write_item(value, out);
    }
    let begin = out.len();
    for (key, value) in members.iter().filter(|(key, _)| !TYPE.contains(key)) {
        text(key, out);
        write_item(value, out);
    }
    Rest { members: members.len() - typed.len(), range: begin..out.len() }
}

/// Writes a document up to the items of its list member `key`, which comes last. `around` has all
/// other members. The caller writes the items.
pub fn write_list_head(around: &Value, key: &str, items: usize, out: &mut Vec<u8>) {
    let members = sorted(around);
    out.extend_from_slice(MAGIC);
    write_map_head(members.len() + 1, out);
    for (key, value) in members {
        text(key, out);
        write_item(value, out);
    }
    text(key, out);
    head(major::ARRAY, items as u64, out);
}

/// Writes the head of a map.
pub fn write_map_head(members: usize, out: &mut Vec<u8>) {
    head(major::MAP, members as u64, out);
}

/// Writes a watch event: its type, and its object as [`write()`] encoded it.
pub fn write_event(event_type: &str, object: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(MAGIC);
    head(major::MAP, 2, out);
    text("type", out);
    text(event_type, out);
    text("object", out);
    out.extend_from_slice(object);
}

/// Writes a data item without the prefix of a document.
pub fn write_item(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(false) => out.push(0xf4),
        Value::Bool(true) => out.push(0xf5),
        Value::Null => out.push(0xf6),
        Value::Int(n) if *n < 0 => head(major::NEGATIVE, n.unsigned_abs() - 1, out),
        Value::Int(n) => head(major::UNSIGNED, n.unsigned_abs(), out),
        Value::Float(x) => float(*x, out),
        Value::String(s) => text(s, out),
        Value::Array(items) => {
            head(major::ARRAY, items.len() as u64, out);
            items.iter().for_each(|value| write_item(value, out));
        }
        Value::Object(_) => {
            let members = sorted(value);
            write_map_head(members.len(), out);
            for (key, value) in members {
                text(key, out);
                write_item(value, out);
            }
        }
        Value::Raw(text) => write_item(&json::parse(text.as_bytes()).unwrap_or_default(), out),
    }
}

/// The members of an object ordered by their encoded keys: shorter ones come first, as their heads
/// are smaller.
fn sorted(object: &Value) -> Vec<(&str, &Value)> {
    let members = object.as_object().into_iter().flat_map(crate::Map::iter);
    let mut members: Vec<_> = members.map(|(key, value)| (key.as_str(), value)).collect();
    members.sort_by_key(|(key, _)| (key.len(), *key));
    members
}

/// Writes a text as a byte string, which readers need not validate as UTF-8.
fn text(text: &str, out: &mut Vec<u8>) {
    head(major::BYTES, text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// Writes the head of an item: its type, and a number in the shortest form.
fn head(major: u8, number: u64, out: &mut Vec<u8>) {
    let major = major << 5;
    let bytes = number.to_be_bytes();
    match number {
        0..24 => out.push(major | bytes[7]),
        24..0x100 => out.extend_from_slice(&[major | 24, bytes[7]]),
        0x100..0x1_0000 => {
            out.push(major | 25);
            out.extend_from_slice(&bytes[6..]);
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(major | 26);
            out.extend_from_slice(&bytes[4..]);
        }
        _ => {
            out.push(major | 27);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Writes the shortest float that represents the number exactly.
fn float(x: f64, out: &mut Vec<u8>) {
    let single = x as f32;
    if f64::from(single) != x {
        out.push(0xfb);
        out.extend_from_slice(&x.to_be_bytes());
    } else if let Some(half) = half(single) {
        out.push(0xf9);
        out.extend_from_slice(&half.to_be_bytes());
    } else {
        out.push(0xfa);
        out.extend_from_slice(&single.to_be_bytes());
    }
}

/// The bits of the half-precision float that equals this number, if there is one.
fn half(x: f32) -> Option<u16> {
    let bits = x.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let exponent = (bits >> 23 & 0xff).cast_signed() - 127;
    let fraction = bits & 0x7f_ffff;
    match exponent {
        _ if bits << 1 == 0 => Some(sign),
        // A half has 10 of the fraction's 23 bits.
        -14..=15 if fraction.trailing_zeros() >= 13 => {
            Some(sign | ((exponent + 15) << 10) as u16 | (fraction >> 13) as u16)
        }
        // Subnormal numbers lose the implicit leading one, and a bit for each step below -14.
        -24..=-15 => {
            let whole = fraction | 0x80_0000;
            let shift = (-1 - exponent).cast_unsigned();
            (whole.trailing_zeros() >= shift).then(|| sign | (whole >> shift) as u16)
        }
        _ => None,
    }
}
