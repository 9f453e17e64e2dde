//! `generated.proto` files: messages and their fields, nothing else.

use std::collections::BTreeMap;

use crate::generate::sources::{Message, MessageField};

/// Adds the messages of one file, by full name.
pub(crate) fn read(text: &str, messages: &mut BTreeMap<String, Message>) {
    let mut package = String::new();
    let mut current: Option<(String, Message)> = None;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or("").trim();
        if let Some(name) = line.strip_prefix("package ") {
            package = name.trim_end_matches(';').to_owned();
        } else if let Some(name) = line.strip_prefix("message ") {
            let name = name.trim_end_matches('{').trim();
            current = Some((format!("{package}.{name}"), Message::new()));
        } else if line == "}" {
            messages.extend(current.take());
        } else if let Some((_, message)) = &mut current {
            message.extend(field(line));
        }
    }
}

/// Parses `optional string name = 1;`.
fn field(line: &str) -> Option<(String, MessageField)> {
    let (left, tag) = line.trim_end_matches(';').split_once(" = ")?;
    let (kind, name) = left.rsplit_once(' ')?;
    let (repeated, kind) = match kind.strip_prefix("repeated ") {
        Some(kind) => (true, kind),
        None => (false, kind.strip_prefix("optional ").unwrap_or(kind)),
    };
    let field =
        MessageField { tag: tag.trim().parse().ok()?, kind: kind.replace(' ', ""), repeated };
    Some((name.to_owned(), field))
}
