//! JSON pointers (RFC 6901): find the location in a document that an operation names.

use pintle_value::Value;

use super::quote;
use crate::lazy;

/// Returns the object or list that contains the target of `path`, and the target's key or index in
/// it.
pub(super) fn container<'v>(root: &'v mut Value, path: &str) -> Option<(&'v mut Value, String)> {
    // The text before the first slash is ignored. A path without a slash has no key.
    let (_, path) = path.split_once('/')?;
    let (parents, key) = path.rsplit_once('/').map_or((None, path), |(p, key)| (Some(p), key));
    let mut node = root;
    for parent in parents.into_iter().flat_map(|parents| parents.split('/')) {
        let key = unescaped(parent);
        node = match node {
            Value::Object(members) => members.get_mut(&key)?,
            Value::Array(items) => {
                let i = index(&key, items.len()).ok()?;
                &mut items[i]
            }
            _ => return None,
        };
        lazy::open(node);
    }
    matches!(node, Value::Object(_) | Value::Array(_)).then(|| (node, unescaped(key)))
}

fn unescaped(key: &str) -> String {
    // Both escapes are decoded in one pass: `~01` is `~1`, not `/`.
    let mut out = String::with_capacity(key.len());
    let mut rest = key;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        let (c, length) = match rest.as_bytes().get(at + 1) {
            Some(b'1') => ('/', 2),
            Some(b'0') => ('~', 2),
            _ => ('~', 1),
        };
        out.push(c);
        rest = &rest[at + length..];
    }
    out + rest
}

/// Parses `key` as an index into a list of `length` items. Negative numbers count from the end.
pub(super) fn index(key: &str, length: usize) -> Result<usize, String> {
    let number = number(key)?;
    let index = if number < 0 { number.checked_add_unsigned(length as u64) } else { Some(number) };
    index.and_then(|index| usize::try_from(index).ok()).filter(|&index| index < length).ok_or_else(
        || format!("Unable to access invalid index: {number}: invalid index referenced"),
    )
}

/// Parses a decimal integer, with the errors of Go's `strconv.Atoi`.
pub(super) fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let why = if is_number { "value out of range" } else { "invalid syntax" };
        format!("strconv.Atoi: parsing {}: {why}", quote(text))
    })
}

/// The number of path segments.
pub(super) fn segments(path: &str) -> usize {
    path.matches('/').count()
}

/// The nesting depth of lists and objects in a value.
pub(super) fn depth(value: &Value) -> usize {
    extent(value).0
}

/// The nesting depth of lists and objects in a value, and the number of values in it.
pub(super) fn extent(value: &Value) -> (usize, usize) {
    let add = |(depth, count): (usize, usize), below: &Value| {
        let (depth_below, count_below) = extent(below);
        (depth.max(1 + depth_below), count + count_below)
    };
    match value {
        Value::Object(members) => members.values().fold((1, 1), add),
        Value::Array(items) => items.iter().fold((1, 1), add),
        _ => (0, 1),
    }
}
