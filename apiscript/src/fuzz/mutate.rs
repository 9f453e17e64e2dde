//! Random changes of bytes and trees.

use serde_json::{Map, Value, json};

use crate::random::Random;

/// Texts that parsers often handle wrongly.
const PIECES: [&str; 34] = [
    "\0",
    "%00",
    "%",
    "%2f",
    "..",
    "//",
    "\\",
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "=",
    "&",
    "+",
    "#",
    "\u{feff}",
    "\u{202e}",
    "é",
    "😀",
    "\t",
    "null",
    "-0",
    "1e999",
    "99999999999999999999",
    "NaN",
    "~",
    "*a",
    "&a ",
    "!!binary ",
    "<<: ",
];

/// Changes a text in a few positions; the result need not be UTF-8.
pub(super) fn spoil(text: &str, random: &mut Random) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + random.below(3) {
        let at = random.below(bytes.len() + 1);
        match random.below(7) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] = u8::try_from(random.below(256)).unwrap_or(0),
            2 => insert(&mut bytes, at, random.pick(&PIECES).as_bytes()),
            3 => {
                let end = (at + random.below(12)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let end = (at + random.below(40)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                insert(&mut bytes, at, &copy);
            }
            5 => {
                let many = random.pick(&PIECES).repeat(1 << random.below(12));
                insert(&mut bytes, at, many.as_bytes());
            }
            _ => insert(&mut bytes, at, random.pick(&PIECES).repeat(2).as_bytes()),
        }
    }
    bytes
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}

/// Replaces a few nodes of a tree by values that do not belong there, or removes or repeats some.
pub(super) fn disturb(tree: &mut Value, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        let depth = random.below(6);
        disturb_one(tree, depth, random);
    }
}

fn disturb_one(tree: &mut Value, depth: usize, random: &mut Random) {
    match tree {
        Value::Object(members) if depth > 0 && !members.is_empty() => {
            let index = random.below(members.len());
            let Some(key) = members.keys().nth(index).cloned() else { return };
            if random.once_in(8) {
                members.remove(&key);
            } else if random.once_in(8) {
                members.insert(format!("{key}x"), hostile_value(random));
            } else if let Some(member) = members.get_mut(&key) {
                disturb_one(member, depth - 1, random);
            }
        }
        Value::Array(items) if depth > 0 && !items.is_empty() => {
            let index = random.below(items.len());
            if random.once_in(6) {
                let copy = items[index].clone();
                items.resize(items.len() + random.below(200), copy);
            } else {
                disturb_one(&mut items[index], depth - 1, random);
            }
        }
        node => *node = hostile_value(random),
    }
}

/// A value that does not belong where it is put.
pub(super) fn hostile_value(random: &mut Random) -> Value {
    match random.below(20) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(i64::MIN),
        4 => json!(i64::MAX),
        5 => json!(u64::MAX),
        6 => json!(1.5e300),
        7 => json!(0.1),
        8 => json!(""),
        9 => json!("\0"),
        10 => json!("x".repeat(1 << random.below(18))),
        11 => json!("é\u{202e}😀\u{feff}"),
        12 => json!([]),
        13 => json!({}),
        14 => json!([[], [[]], {"a": []}]),
        15 => nested(8 + random.below(600)),
        16 => json!({"": {"": ""}}),
        17 => json!("../../etc/passwd"),
        18 => wide(random.below(400)),
        _ => json!(format!("{}{}", random.pick(&PIECES), random.pick(&PIECES))),
    }
}

fn nested(depth: usize) -> Value {
    let mut value = json!(1);
    for level in 0..depth {
        value = if level % 2 == 0 { json!([value]) } else { json!({"a": value}) };
    }
    value
}

fn wide(members: usize) -> Value {
    Value::Object((0..members).map(|n| (format!("k{n}"), json!(n))).collect::<Map<_, _>>())
}
