//! Formats texts and values as Go does in messages. Rust's `{:?}` differs for control and combining
//! characters.

use std::fmt::Write;

use pintle_value::Value;

/// Quotes text as Go's `%q`.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            c if is_print(c) => out.push(c),
            c => push_escape(&mut out, c),
        }
    }
    out.push('"');
    out
}

fn push_escape(out: &mut String, c: char) {
    let code = u32::from(c);
    let written = match code {
        0..=0x7f => write!(out, "\\x{code:02x}"),
        0x80..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
    written.expect("writing to a String cannot fail");
}

/// Quotes text as Go's `time` package does: control bytes (except DEL) and bytes beyond ASCII are
/// escaped.
pub fn quote_ascii(text: &str) -> String {
    let mut out = String::from('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' | 0x7f => out.push(char::from(byte)),
            _ => write!(out, "\\x{byte:02x}").expect("writing to a String cannot fail"),
        }
    }
    out.push('"');
    out
}

/// Formats a value as Go's `%v` does for decoded JSON: `map[a:1 b:[x <nil>]]`.
pub fn plain(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Float(x) => plain_float(*x),
        Value::String(s) => s.to_string(),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(plain).collect())),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| format!("{key}:{}", plain(value)));
            format!("map[{}]", joined(members.collect()))
        }
        Value::Raw(json) => json.to_string(),
    }
}

/// The type of decoded JSON in the notation of Go's `%T`.
pub const fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) | Value::Raw(_) => "map[string]interface {}",
    }
}

fn plain_float(x: f64) -> String {
    const EXPONENTS: std::ops::Range<i32> = -4..6;
    let scientific = format!("{x:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if x == 0.0 || EXPONENTS.contains(&exponent) {
        return x.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// Whether Go's `unicode.IsPrint` holds: letters, marks, numbers, punctuation, symbols and the
/// ASCII space.
pub fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    // The standard library's table of printable characters is private, but `escape_debug` leaves
    // exactly those unchanged. The letter before `c` prevents it from escaping a combining mark.
    ['x', c].iter().collect::<String>().escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_match_go() {
        for (text, quoted) in [
            ("", r#""""#),
            ("it's \"x\" \\", r#""it's \"x\" \\""#),
            ("a\0b\u{1f}\u{7f}", r#""a\x00b\x1f\x7f""#),
            ("\u{7}\u{8}\u{c}\n\r\t\u{b}", r#""\a\b\f\n\r\t\v""#),
            ("é 日本 🙂", r#""é 日本 🙂""#),
            ("e\u{301}\u{301}", "\"e\u{301}\u{301}\""),
            ("\u{301}", "\"\u{301}\""),
            ("\u{a0}\u{200b}\u{e000}\u{10ffff}", r#""\u00a0\u200b\ue000\U0010ffff""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn values_match_go() {
        for (json, text) in [
            ("null", "<nil>"),
            ("true", "true"),
            ("\"a b\"", "a b"),
            (r#"{"b":null,"a":["x",1,2.5,{}]}"#, "map[a:[x 1 2.5 map[]] b:<nil>]"),
            (
                "[123456.5,1234567.5,1e20,1e-4,1e-5,-1.5e300]",
                "[123456.5 1.2345675e+06 1e+20 0.0001 1e-05 -1.5e+300]",
            ),
        ] {
            let value = pintle_value::json::parse(json.as_bytes()).unwrap();
            assert_eq!(plain(&value), text);
        }
    }

    #[test]
    fn quotes_match_go_time() {
        assert_eq!(quote_ascii("a\"\\é\n"), r#""a\"\\\xc3\xa9\x0a""#);
    }
}
