//! Finds the differences between two responses, and classifies them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value, json};

use super::alike;
use crate::answer::Answer;

/// Response headers that are compared; for `ETag` and `Audit-Id`, only their presence.
const HEADERS: [&str; 14] = [
    "Content-Type",
    "Warning",
    "Allow",
    "Retry-After",
    "Cache-Control",
    "Vary",
    "Location",
    "WWW-Authenticate",
    "Content-Encoding",
    "Accept-Patch",
    "X-Content-Type-Options",
    "Access-Control-Allow-Origin",
    "Upgrade",
    "Deprecation",
];
const PRESENT: [&str; 2] = ["ETag", "Audit-Id"];
/// Members that identify the program and not its behaviour.
const BUILD: [&str; 7] =
    ["gitVersion", "gitCommit", "gitTreeState", "goVersion", "compiler", "buildDate", "platform"];

/// Lists whose order has no meaning: managed fields are ordered by time; causes and rules come from
/// Go's maps, which have no order.
const WITHOUT_ORDER: [&str; 4] = ["managedFields", "causes", "resourceRules", "nonResourceRules"];

/// The class of a difference, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Only one server responded, or the recorded verdicts are of other requests.
    Lost,
    /// The status code.
    Status,
    /// The body of a success.
    Body,
    /// `Warning` headers.
    Warning,
    /// Other headers.
    Header,
    /// Field ownership.
    ManagedFields,
    /// OpenAPI and discovery documents.
    Document,
    /// An error's reason and causes.
    Causes,
    /// The text of an error.
    Text,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "lost",
            Self::Status => "status code",
            Self::Body => "body",
            Self::Warning => "warning",
            Self::Header => "header",
            Self::ManagedFields => "managedFields",
            Self::Document => "document",
            Self::Causes => "causes",
            Self::Text => "error text",
        })
    }
}

/// A difference at one path of two responses.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Its class.
    pub class: Class,
    /// `status`, `header Vary`, `body spec.ports[0].port`.
    pub path: String,
    /// The reference's value.
    pub reference: String,
    /// Pintle's value.
    pub ours: String,
}

/// The differences between Pintle's response and the reference's; only the status if the status
/// codes differ.
pub(super) fn answers(
    question: &str,
    reference: &Result<Answer, String>,
    ours: &Result<Answer, String>,
) -> Vec<Difference> {
    let (reference, ours) = match (reference, ours) {
        (Ok(reference), Ok(ours)) => (reference, ours),
        (Err(_), Err(_)) => return Vec::new(),
        (reference, ours) => {
            let shown = |answer: &Result<Answer, String>| match answer {
                Ok(answer) => answer.status().to_string(),
                Err(error) => error.clone(),
            };
            let path = "answer".to_owned();
            let (reference, ours) = (shown(reference), shown(ours));
            return vec![Difference { class: Class::Lost, path, reference, ours }];
        }
    };
    let status = reference.status();
    if status != ours.status() {
        let shown = |answer: &Answer| match answer.body()["message"].as_str() {
            Some(message) => format!("{} {message}", answer.status()),
            None => answer.status().to_string(),
        };
        let (reference, ours) = (shown(reference), shown(ours));
        return vec![Difference {
            class: Class::Status,
            path: "status".to_owned(),
            reference,
            ours,
        }];
    }
    let mut found = Found::default();
    found.headers(reference, ours);
    found.values("body", "", &reference.body(), &ours.body());
    let is_document =
        ["/openapi", "/api ", "/apis ", "/.well-known"].iter().any(|w| question.contains(w));
    let classify = |(path, reference, ours): (String, String, String)| {
        let class = match &*path {
            "header Warning" => Class::Warning,
            _ if path.starts_with("header") => Class::Header,
            _ if path.contains("managedFields") => Class::ManagedFields,
            "body message" if status >= 400 => Class::Text,
            _ if status >= 400 && path.ends_with(".message") => Class::Text,
            _ if status >= 400 => Class::Causes,
            _ if is_document => Class::Document,
            _ => Class::Body,
        };
        Difference { class, path, reference, ours }
    };
    found.0.into_iter().map(classify).collect()
}

/// Paths with the reference's value and Pintle's.
#[derive(Default)]
struct Found(Vec<(String, String, String)>);

impl Found {
    fn add(&mut self, path: &str, a: Option<&Value>, b: Option<&Value>) {
        let shown = |value: Option<&Value>| value.map_or("absent".to_owned(), Value::to_string);
        self.0.push((path.to_owned(), shown(a), shown(b)));
    }

    fn headers(&mut self, a: &Answer, b: &Answer) {
        for name in HEADERS {
            let values = |answer: &Answer| -> Vec<String> {
                let mut values: Vec<String> =
                    answer.head().all(name).into_iter().map(alike::normal).collect();
                if name == "Vary" {
                    values = vec![values.join(", ")];
                }
                values
            };
            let (a, b) = (values(a), values(b));
            if a != b {
                self.add(&format!("header {name}"), Some(&json!(a)), Some(&json!(b)));
            }
        }
        for name in PRESENT {
            let (a, b) = (a.head().get(name).is_some(), b.head().get(name).is_some());
            if a != b {
                self.add(&format!("header {name}"), Some(&json!(a)), Some(&json!(b)));
            }
        }
    }

    fn values(&mut self, path: &str, key: &str, a: &Value, b: &Value) {
        if a == b {
            return;
        }
        match (a, b) {
            (Value::Object(a), Value::Object(b)) => self.objects(path, a, b),
            (Value::Array(a), Value::Array(b)) => self.lists(path, key, a, b),
            (Value::String(x), Value::String(y)) => match (alike::claims(x), alike::claims(y)) {
                (Some(x), Some(y)) => self.values(&format!("{path}(claims)"), key, &x, &y),
                _ if alike::texts(key, x, y) => {}
                _ => self.add(path, Some(a), Some(b)),
            },
            (Value::Number(_), Value::Number(_)) if alike::numbers(key, a, b) => {}
            _ => self.add(path, Some(a), Some(b)),
        }
    }

    fn objects(&mut self, path: &str, a: &Map<String, Value>, b: &Map<String, Value>) {
        let (a, b) = (&named_alike(a, b), &named_alike(b, a));
        let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for key in keys {
            let simple = key.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_$".contains(&c));
            let dot = if path == "body" { " " } else { "." };
            let part = if simple { format!("{path}{dot}{key}") } else { format!("{path}[{key}]") };
            if BUILD.contains(&&**key) {
                continue;
            }
            match (a.get(key), b.get(key)) {
                (Some(x), Some(y)) if key == "name" && are_generated(a, x, y) => {}
                (Some(x), Some(y)) => self.values(&part, key, x, y),
                (x, y) => self.add(&part, x, y),
            }
        }
    }

    fn lists(&mut self, path: &str, key: &str, a: &[Value], b: &[Value]) {
        if WITHOUT_ORDER.contains(&key) {
            let (a, b) = (in_order(a), in_order(b));
            return self.pairs(path, key, &a, &b);
        }
        let names = |list: &[Value]| -> Option<Vec<String>> {
            list.iter().map(|item| Some(item["name"].as_str()?.to_owned())).collect()
        };
        if let (Some(m), Some(n)) = (names(a), names(b))
            && m != n
            && m.iter().collect::<BTreeSet<_>>() != n.iter().collect()
        {
            // By name, so that one missing item does not make all following ones differ.
            let by_name = |names: &[String], list: &[Value]| -> Map<String, Value> {
                names.iter().cloned().zip(list.iter().cloned()).collect()
            };
            return self.objects(path, &by_name(&m, a), &by_name(&n, b));
        }
        let first = self.0.len();
        self.pairs(path, key, a, b);
        if self.0.len() > first && a.len() == b.len() && in_order(a) == in_order(b) {
            self.0.truncate(first);
            self.add(&format!("{path}(order)"), Some(&json!(a)), Some(&json!(b)));
        }
    }

    fn pairs(&mut self, path: &str, key: &str, a: &[Value], b: &[Value]) {
        for i in 0..a.len().max(b.len()) {
            let part = format!("{path}[{i}]");
            match (a.get(i), b.get(i)) {
                (Some(x), Some(y)) => self.values(&part, key, x, y),
                (x, y) => self.add(&part, x, y),
            }
        }
    }
}

/// The members, with generated names matched to those of the other map.
fn named_alike<'a>(
    members: &'a Map<String, Value>,
    other: &Map<String, Value>,
) -> Cow<'a, Map<String, Value>> {
    if members.keys().all(|key| other.contains_key(key) || alike::normal(key) == *key) {
        return Cow::Borrowed(members);
    }
    let named = |(key, value): (&String, &Value)| match other.contains_key(key) {
        true => (key.clone(), value.clone()),
        false => (alike::normal(key), value.clone()),
    };
    Cow::Owned(members.iter().map(named).collect())
}

/// Whether two names were generated from the same prefix.
fn are_generated(metadata: &Map<String, Value>, x: &Value, y: &Value) -> bool {
    let Some(beginning) = metadata.get("generateName").and_then(Value::as_str) else {
        return false;
    };
    [x, y].iter().all(|name| name.as_str().is_some_and(|name| name.starts_with(beginning)))
}

/// The items in an order that does not depend on the run.
fn in_order(items: &[Value]) -> Vec<Value> {
    let mut items = items.to_vec();
    items.sort_by_cached_key(|item| {
        let name = |member: &str| item[member].as_str().unwrap_or_default().to_owned();
        let manager =
            ["operation", "manager", "subresource", "apiVersion", "field", "reason"].map(name);
        (manager, alike::normal(&item.to_string()))
    });
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(a: &Value, b: &Value) -> Vec<String> {
        let mut found = Found::default();
        found.values("body", "", a, b);
        found.0.into_iter().map(|(path, ..)| path).collect()
    }

    #[test]
    fn differences_name_their_paths() {
        for (a, b, expected) in [
            (json!({"a": {"b": [1, 2]}}), json!({"a": {"b": [1, 3]}}), vec!["body a.b[1]"]),
            (json!({"a": 1, "b/c": 1}), json!({"a": 1}), vec!["body[b/c]"]),
            (json!([{"name": "a"}, {"name": "b"}]), json!([{"name": "b"}]), vec!["body a"]),
            (json!(["a", "b"]), json!(["b", "a"]), vec!["body(order)"]),
            (
                json!({"causes": [{"field": "a"}, {"field": "b"}]}),
                json!({"causes": [{"field": "b"}, {"field": "a"}]}),
                vec![],
            ),
            (
                json!({"causes": [{"field": "a"}, {"field": "a"}]}),
                json!({"causes": [{"field": "a"}]}),
                vec!["body causes[1]"],
            ),
            (
                json!([{"name": "kube-api-access-aaaaa", "b": 1}]),
                json!([{"name": "kube-api-access-bbbbb", "b": 2}]),
                vec!["body[kube-api-access-<suffix>].b"],
            ),
            (
                json!({"name": "g-1", "generateName": "g-"}),
                json!({"name": "g-2", "generateName": "g-"}),
                vec![],
            ),
        ] {
            assert_eq!(paths(&a, &b), expected, "{a} and {b}");
        }
    }
}
