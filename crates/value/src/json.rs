//! JSON text to tokens and back.

use crate::Value;

/// Writes a value as compact JSON, members in the order of their keys.
pub fn to_string(value: &Value) -> String {
    let mut out = Vec::new();
    write(value, &mut out);
    String::from_utf8(out).expect("the writer writes UTF-8")
}

/// Writes a value as compact JSON, members in the order of their keys.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    let _ = (value, out);
    todo!("written with the codecs")
}
