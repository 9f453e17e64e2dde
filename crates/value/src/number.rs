//! Numbers in JSON's syntax, as Go's `encoding/json` reads and writes them.

use std::io::Write as _;

use crate::{Error, Value};

/// Parses a number in JSON's syntax. A number that fits 64 bits becomes an integer, even if it is
/// written `1.0` or `1e3`: Go's encoder writes those as `1` and `1000`, so equal objects stay equal
/// trees.
pub fn parse(text: &str) -> Result<Value, Error> {
    if let Ok(n) = text.parse() {
        return Ok(Value::Int(n));
    }
    match text.parse::<f64>() {
        Ok(x) => from_float(x).ok_or_else(|| Error::NumberRange(text.to_owned())),
        Err(_) => Err(Error::NumberRange(text.to_owned())),
    }
}

/// The value of a floating-point number; `None` if it is not finite.
pub(crate) fn from_float(x: f64) -> Option<Value> {
    x.is_finite().then(|| integral(x).map_or(Value::Float(x), Value::Int))
}

/// The integer as which Go would write the number, if any.
fn integral(x: f64) -> Option<i64> {
    if x.fract() != 0.0 {
        return None;
    }
    let mut text = Vec::new();
    write(x, &mut text);
    std::str::from_utf8(&text).ok()?.parse().ok()
}

/// Writes a finite number with the fewest digits that round-trip, and an exponent only where Go
/// uses one.
pub fn write(x: f64, out: &mut Vec<u8>) {
    let size = x.abs();
    let result = if size != 0.0 && size < 1e-6 {
        write!(out, "{x:e}")
    } else if size >= 1e21 {
        let text = format!("{x:e}");
        write!(out, "{}", text.replace('e', "e+"))
    } else {
        write!(out, "{x}")
    };
    result.expect("writing to a Vec cannot fail");
}
