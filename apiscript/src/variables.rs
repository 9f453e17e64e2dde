//! Replaces variables (`$name`) in scripts.
//!
//! A string that is only `$name` becomes the variable's value, of any type. In other strings
//! `$name` and `${name}` are replaced by the value as text. `$$` is a dollar sign, and so is a `$`
//! before anything that is not a name. In the keys of objects only `${name}` is replaced, because
//! strategic merge patches have keys such as `$patch`. In a pattern (`~…`) the text of a variable
//! is escaped.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use serde_json::Value;

/// The variables that a step sees.
pub trait Scope {
    /// The value of a variable.
    fn get(&self, name: &str) -> Result<Value>;
}

impl Scope for BTreeMap<String, Value> {
    fn get(&self, name: &str) -> Result<Value> {
        BTreeMap::get(self, name).cloned().ok_or_else(|| anyhow!("there is no variable ${name}"))
    }
}

/// Replaces the variables in a tree.
pub fn fill(value: &Value, scope: &dyn Scope) -> Result<Value> {
    Ok(match value {
        Value::String(text) => fill_string(text, scope)?,
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill(item, scope)).collect::<Result<_>>()?)
        }
        Value::Object(members) => {
            let mut filled = serde_json::Map::new();
            for (key, member) in members {
                filled.insert(expand(key, scope, Braces::Required)?, fill(member, scope)?);
            }
            Value::Object(filled)
        }
        other => other.clone(),
    })
}

/// Replaces the variables in a text.
pub fn fill_text(text: &str, scope: &dyn Scope) -> Result<String> {
    expand(text, scope, Braces::Optional)
}

/// A value as it is inserted into a text.
pub fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn fill_string(text: &str, scope: &dyn Scope) -> Result<Value> {
    if let Some(name) = whole_name(text) {
        return scope.get(name);
    }
    let escape = text.starts_with('~');
    expand(text, scope, if escape { Braces::Pattern } else { Braces::Optional }).map(Value::String)
}

/// The variable that is the whole text.
fn whole_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    (name_length(name) == name.len() && !name.is_empty()).then_some(name)
}

fn name_length(text: &str) -> usize {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts {
        return 0;
    }
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// How a variable is written, and how its text is inserted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Braces {
    Required,
    Optional,
    /// Like `Optional`, in a regular expression.
    Pattern,
}

fn expand(text: &str, scope: &dyn Scope, braces: Braces) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let braced = rest.strip_prefix('{').and_then(|r| r.split_once('}'));
        if let Some((name, after)) = braced.filter(|(name, _)| name_length(name) == name.len()) {
            put(&mut out, &scope.get(name)?, braces);
            rest = after;
            continue;
        }
        let length = name_length(rest);
        if braces == Braces::Required || length == 0 {
            out.push('$');
            rest = if braces == Braces::Required {
                rest
            } else {
                rest.strip_prefix('$').unwrap_or(rest)
            };
            continue;
        }
        put(&mut out, &scope.get(&rest[..length])?, braces);
        rest = &rest[length..];
    }
    out.push_str(rest);
    Ok(out)
}

fn put(out: &mut String, value: &Value, braces: Braces) {
    let text = as_text(value);
    match braces {
        Braces::Pattern => out.push_str(&regex::escape(&text)),
        Braces::Required | Braces::Optional => out.push_str(&text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variables_are_filled() {
        let scope: BTreeMap<String, Value> = [
            ("ns".to_owned(), json!("t-1.x")),
            ("n".to_owned(), json!(7)),
            ("o".to_owned(), json!({"a": 1})),
        ]
        .into();
        for (text, filled) in [
            (json!("$ns"), json!("t-1.x")),
            (json!("$n"), json!(7)),
            (json!("${n}"), json!("7")),
            (json!("$o"), json!({"a": 1})),
            (json!("a/$ns/b$n"), json!("a/t-1.x/b7")),
            (json!("${n}0"), json!("70")),
            (json!("~$ns$"), json!("~t\\-1\\.x$")),
            (json!("$$ns"), json!("$ns")),
            (json!("5$ a$"), json!("5$ a$")),
            (json!({"$patch": "delete", "k${n}": ["$n"]}), json!({"$patch": "delete", "k7": [7]})),
            (json!(true), json!(true)),
        ] {
            assert_eq!(fill(&text, &scope).unwrap(), filled, "{text}");
        }
        assert!(fill(&json!("$nobody"), &scope).is_err());
    }
}
