//! The difference between two objects as readable text, in the form of the library that upstream
//! uses: members have Go's names, and equal members are only counted.

use std::fmt::Write;

use pintle_meta::field::shown;
use pintle_value::{Map, Value};

/// Returns the difference between two values of Go's type `name`.
pub(crate) fn difference(name: &str, old: &Value, new: &Value) -> String {
    let mut text = format!("  {name}{{\n");
    write_changes(&mut text, old, new, 1);
    text.push_str("  }\n");
    text
}

/// Writes one line: the sign of a change, the indentation, and the value.
fn line(text: &mut String, sign: char, depth: usize, what: &str) {
    let indent = "\t".repeat(depth);
    writeln!(text, "{sign} {indent}{what}").expect("writing to a String cannot fail");
}

/// Writes the members or items that differ, and the numbers of equal ones between them.
fn write_changes(text: &mut String, old: &Value, new: &Value, depth: usize) {
    let entries = match (old, new) {
        (Value::Object(old), Value::Object(new)) => member_pairs(old, new),
        (Value::Array(old), Value::Array(new)) => item_pairs(old, new),
        _ => return,
    };
    let unit = if matches!(old, Value::Array(_)) { "elements" } else { "fields" };
    let mut same = 0;
    for (label, old, new) in entries {
        if old == new {
            same += 1;
            continue;
        }
        write_count(text, &mut same, unit, depth);
        match (old, new) {
            (Some(old @ (Value::Object(_) | Value::Array(_))), Some(new))
                if std::mem::discriminant(old) == std::mem::discriminant(new) =>
            {
                line(text, ' ', depth, &format!("{label}{{"));
                write_changes(text, old, new, depth + 1);
                line(text, ' ', depth, "},");
            }
            _ => {
                for (sign, value) in [('-', old), ('+', new)] {
                    let value = value.map_or_else(|| "nil".to_owned(), shown);
                    line(text, sign, depth, &format!("{label}{value},"));
                }
            }
        }
    }
    write_count(text, &mut same, unit, depth);
}

fn write_count(text: &mut String, same: &mut usize, unit: &str, depth: usize) {
    if *same > 0 {
        line(text, ' ', depth, &format!("... // {same} identical {unit}"));
        *same = 0;
    }
}

/// A label, with the old and the new value.
type Pair<'a> = (String, Option<&'a Value>, Option<&'a Value>);

fn member_pairs<'a>(old: &'a Map, new: &'a Map) -> Vec<Pair<'a>> {
    let mut keys: Vec<&str> = old.keys().chain(new.keys()).map(|key| key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
        .map(|key| (format!("{}: ", go_name(key)), old.get(key), new.get(key)))
        .collect()
}

fn item_pairs<'a>(old: &'a [Value], new: &'a [Value]) -> Vec<Pair<'a>> {
    let pair = |i| (String::new(), old.get(i), new.get(i));
    (0..old.len().max(new.len())).map(pair).collect()
}

/// Go's name of a member has an initial capital; keys of maps stay as they are.
fn go_name(member: &str) -> String {
    let mut letters = member.chars();
    match letters.next() {
        Some(first) if member.chars().all(|c| c.is_ascii_alphanumeric()) => {
            first.to_uppercase().chain(letters).collect()
        }
        _ => format!("{member:?}"),
    }
}
