//! Writing.

use super::{MAGIC, major};
use crate::{Value, json};

/// Writes a document.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(MAGIC);
    item(value, out);
}

/// Writes an event of a watch: its type, and its object as [`write`] writes it.
pub fn write_event(event_type: &str, object: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(MAGIC);
    head(major::MAP, 2, out);
    text("type", out);
    text(event_type, out);
    text("object", out);
    out.extend_from_slice(object);
}

fn item(value: &Value, out: &mut Vec<u8>) {
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
            items.iter().for_each(|value| item(value, out));
        }
        Value::Object(members) => {
            // Shorter keys have smaller heads.
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| (key.len(), *key));
            head(major::MAP, members.len() as u64, out);
            for (key, value) in members {
                text(key, out);
                item(value, out);
            }
        }
        Value::Unread(text) => item(&json::parse(text.as_bytes()).unwrap_or_default(), out),
    }
}

/// Texts are byte strings: nobody has to check that they are UTF-8.
fn text(text: &str, out: &mut Vec<u8>) {
    head(major::BYTES, text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// Writes the first bytes of an item: its type, and a number as short as it goes.
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

/// Writes a number as the shortest float that holds it.
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

/// The bits of the half-precision float that is this number, if there is one.
fn half(x: f32) -> Option<u16> {
    let bits = x.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let exponent = (bits >> 23 & 0xff).cast_signed() - 127;
    let fraction = bits & 0x7f_ffff;
    match exponent {
        _ if bits << 1 == 0 => Some(sign),
        // 10 of the 23 bits of the fraction are left.
        -14..=15 if fraction.trailing_zeros() >= 13 => {
            Some(sign | ((exponent + 15) << 10) as u16 | (fraction >> 13) as u16)
        }
        // Small numbers lose their leading one, and a bit for each step below -14.
        -24..=-15 => {
            let whole = fraction | 0x80_0000;
            let shift = (-1 - exponent).cast_unsigned();
            (whole.trailing_zeros() >= shift).then(|| sign | (whole >> shift) as u16)
        }
        _ => None,
    }
}
