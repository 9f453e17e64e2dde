//! Compares a body with a script's expectation, and names the differences.
//!
//! Expected members must be present; there may be more, unless the comparison is exact. Lists must
//! have exactly the expected elements, in order. In place of a list the script may have an object
//! with claims about the list: `length`; an index such as `0`; `some`, a list of expectations that
//! each match an element; `every`, which matches every element; and `none`, which matches no
//! element. An expected text can be a pattern (`~…`), or a word such as `<absent>`.

use regex::Regex;
use serde_json::{Map, Value};

use crate::variables::as_text;

/// Whether a body may have more than expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// It may have more members.
    Subset,
    /// It has nothing more.
    Exact,
}

/// Every difference between an expectation and a body, each as a line with its path.
pub fn differences(expected: &Value, actual: Option<&Value>, extent: Extent) -> Vec<String> {
    let mut comparison = Comparison { extent, path: String::new(), found: Vec::new() };
    comparison.value(expected, actual);
    comparison.found
}

/// Whether a text is as expected; `expected` can be a pattern or a word.
pub fn text_matches(expected: &Value, actual: &str) -> bool {
    differences(expected, Some(&Value::String(actual.to_owned())), Extent::Exact).is_empty()
}

struct Comparison {
    extent: Extent,
    path: String,
    found: Vec<String>,
}

impl Comparison {
    fn value(&mut self, expected: &Value, actual: Option<&Value>) {
        match (expected, actual) {
            (Value::String(text), actual) => self.string(text, actual),
            (expected, None) => self.differ(&show(expected), "nothing"),
            (Value::Object(members), Some(Value::Object(actual))) => self.object(members, actual),
            (Value::Object(claims), Some(Value::Array(actual))) => self.claims(claims, actual),
            (Value::Array(items), Some(Value::Array(actual))) => self.array(items, actual),
            (expected, Some(actual)) => {
                if !same_scalar(expected, actual) {
                    self.differ(&show(expected), &show(actual));
                }
            }
        }
    }

    fn string(&mut self, expected: &str, actual: Option<&Value>) {
        let holds = match Word::of(expected) {
            Word::Absent => actual.is_none(),
            Word::Present => actual.is_some(),
            Word::Not(text) => actual.is_some_and(|value| as_text(value) != text),
            Word::Number(least) => actual.and_then(number).is_some_and(|n| n >= least),
            Word::Pattern(text, matches) => match Regex::new(&format!("(?s)^(?:{text})$")) {
                Ok(pattern) => {
                    actual.is_some_and(|value| pattern.is_match(&as_text(value)) == matches)
                }
                Err(error) => return self.found.push(format!("{}: {error}", self.path)),
            },
            Word::Literal => actual.is_some_and(|value| value.as_str() == Some(expected)),
        };
        if !holds {
            self.differ(
                &show(&Value::String(expected.to_owned())),
                &actual.map_or("nothing".into(), show),
            );
        }
    }

    fn object(&mut self, members: &Map<String, Value>, actual: &Map<String, Value>) {
        for (key, expected) in members {
            self.within(&format!(".{key}"), |this| this.value(expected, actual.get(key)));
        }
        if self.extent == Extent::Exact {
            for (key, value) in actual.iter().filter(|(key, _)| !members.contains_key(*key)) {
                self.within(&format!(".{key}"), |this| this.differ("nothing", &show(value)));
            }
        }
    }

    fn array(&mut self, items: &[Value], actual: &[Value]) {
        for (index, expected) in items.iter().enumerate() {
            self.within(&format!("[{index}]"), |this| this.value(expected, actual.get(index)));
        }
        for (index, value) in actual.iter().enumerate().skip(items.len()) {
            self.within(&format!("[{index}]"), |this| this.differ("nothing", &show(value)));
        }
    }

    fn claims(&mut self, claims: &Map<String, Value>, actual: &[Value]) {
        let extent = self.extent;
        for (claim, expected) in claims {
            let fits = |item: &Value| differences(expected, Some(item), extent).is_empty();
            match (claim.as_str(), expected) {
                ("length", expected) => {
                    let length = Value::from(actual.len());
                    self.within(".length", |this| this.value(expected, Some(&length)));
                }
                ("some", Value::Array(wanted)) => {
                    for one in wanted {
                        let fits = |item| differences(one, Some(item), extent).is_empty();
                        if !actual.iter().any(fits) {
                            self.differ(&format!("an element like {}", show(one)), "none such");
                        }
                    }
                }
                ("every", _) => {
                    for (index, item) in actual.iter().enumerate().filter(|(_, item)| !fits(item)) {
                        self.within(&format!("[{index}]"), |this| this.value(expected, Some(item)));
                    }
                }
                ("none", _) => {
                    if let Some(index) = actual.iter().position(fits) {
                        self.differ(
                            &format!("no element like {}", show(expected)),
                            &format!("[{index}]"),
                        );
                    }
                }
                (index, expected) => match index.parse::<usize>() {
                    Ok(at) => {
                        self.within(&format!("[{at}]"), |this| this.value(expected, actual.get(at)))
                    }
                    Err(_) => self.differ(&format!("an object with {index:?}"), "a list"),
                },
            }
        }
    }

    fn within(&mut self, step: &str, inner: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        inner(self);
        self.path.truncate(length);
    }

    fn differ(&mut self, expected: &str, actual: &str) {
        let path = self.path.trim_start_matches('.');
        let path = if path.is_empty() { "body" } else { path };
        self.found.push(format!("{path}: expected {expected}, got {actual}"));
    }
}

/// The meaning of an expected text.
enum Word<'a> {
    Absent,
    Present,
    Not(&'a str),
    /// At least this number.
    Number(u64),
    /// A pattern, and whether the text must match it.
    Pattern(&'a str, bool),
    Literal,
}

impl<'a> Word<'a> {
    fn of(text: &'a str) -> Self {
        if let Some(pattern) = text.strip_prefix('~') {
            return Self::Pattern(pattern, true);
        }
        let Some(word) = text.strip_prefix('<').and_then(|t| t.strip_suffix('>')) else {
            return Self::Literal;
        };
        let bound = |prefix: &str| word.strip_prefix(prefix).and_then(|n| n.parse::<u64>().ok());
        match word {
            "absent" => Self::Absent,
            "present" => Self::Present,
            _ => match (word.strip_prefix("not "), bound("at least "), bound("above ")) {
                (Some(text), ..) => match text.strip_prefix('~') {
                    Some(pattern) => Self::Pattern(pattern, false),
                    None => Self::Not(text),
                },
                (_, Some(least), _) => Self::Number(least),
                (_, _, Some(below)) => Self::Number(below.saturating_add(1)),
                _ => Self::Literal, // tables contain texts such as `<none>`
            },
        }
    }
}

/// A number, or a text with a number, such as a resource version.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn same_scalar(expected: &Value, actual: &Value) -> bool {
    match (expected.as_f64(), actual.as_f64()) {
        (Some(_), Some(_)) if expected.is_i64() && actual.is_i64() => expected == actual,
        (Some(a), Some(b)) => (a - b).abs() < f64::EPSILON,
        _ => expected == actual,
    }
}

fn show(value: &Value) -> String {
    const LIMIT: usize = 240;
    let text = value.to_string();
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(expected: &Value, actual: &Value, extent: Extent, found: &[&str]) {
        assert_eq!(differences(expected, Some(actual), extent), found, "{expected} ~ {actual}");
    }

    #[test]
    fn subsets_match_and_differences_name_their_path() {
        let body = json!({"kind": "L", "items": [{"n": "a", "rv": "12"}, {"n": "b"}], "x": null});
        for (expected, found) in [
            (json!({"kind": "L"}), vec![]),
            (json!({"kind": "M"}), vec![r#"kind: expected "M", got "L""#]),
            (json!({"items": [{"n": "a"}, {}]}), vec![]),
            (json!({"items": [{"n": "a"}]}), vec![r#"items[1]: expected nothing, got {"n":"b"}"#]),
            (json!({"items": {"length": 2, "1": {"n": "b"}}}), vec![]),
            (json!({"items": {"length": 3}}), vec!["items.length: expected 3, got 2"]),
            (json!({"items": {"some": [{"n": "b"}, {"n": "a"}]}}), vec![]),
            (
                json!({"items": {"some": [{"n": "c"}]}}),
                vec![r#"items: expected an element like {"n":"c"}, got none such"#],
            ),
            (json!({"items": {"every": {"n": "~[ab]"}}}), vec![]),
            (json!({"items": {"every": {"n": "a"}}}), vec![r#"items[1].n: expected "a", got "b""#]),
            (json!({"items": {"none": {"n": "c"}}}), vec![]),
            (
                json!({"items": {"none": {"n": "b"}}}),
                vec![r#"items: expected no element like {"n":"b"}, got [1]"#],
            ),
            (json!({"x": null, "y": "<absent>", "kind": "<present>"}), vec![]),
            (json!({"kind": "<absent>"}), vec![r#"kind: expected "<absent>", got "L""#]),
            (json!({"items": {"0": {"rv": "<above 11>"}}}), vec![]),
            (json!({"items": {"0": {"rv": "<at least 12>"}}}), vec![]),
            (
                json!({"items": {"0": {"rv": "<above 12>"}}}),
                vec![r#"items[0].rv: expected "<above 12>", got "12""#],
            ),
            (json!({"kind": "<not M>"}), vec![]),
            (json!({"kind": "<not L>"}), vec![r#"kind: expected "<not L>", got "L""#]),
            (json!({"kind": "<not ~M.*>"}), vec![]),
            (json!({"kind": "<not ~L|M>"}), vec![r#"kind: expected "<not ~L|M>", got "L""#]),
            (json!({"kind": "<none>"}), vec![r#"kind: expected "<none>", got "L""#]),
            (json!({"kind": "~L|M"}), vec![]),
            (json!({"kind": "~L.+"}), vec![r#"kind: expected "~L.+", got "L""#]),
        ] {
            check(&expected, &body, Extent::Subset, &found);
        }
    }

    #[test]
    fn an_exact_comparison_allows_nothing_more() {
        check(&json!({"a": {}}), &json!({"a": {}}), Extent::Exact, &[]);
        let found = ["a.b: expected nothing, got 1"];
        check(&json!({"a": {}}), &json!({"a": {"b": 1}}), Extent::Exact, &found);
        check(&json!(1), &json!(1.5), Extent::Exact, &["body: expected 1, got 1.5"]);
        check(&json!("1"), &json!(1), Extent::Exact, &[r#"body: expected "1", got 1"#]);
    }
}
