//! A response, and the expectation of a step.

use std::io::Read as _;

use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};

use crate::binary;
use crate::http::{Head, Response};
use crate::matching::{Extent, differences, text_matches};
use crate::request::media_type;
use crate::script::{Row, Step};
use crate::variables::{Scope, as_text, fill};

/// A response whose body has been read.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    head: Head,
    text: String,
    /// The body as a tree, if it is JSON, YAML, Protobuf or CBOR.
    tree: Option<Value>,
}

impl Answer {
    /// Decompresses and parses the body.
    pub(crate) fn read(response: Response) -> Result<Self> {
        let Response { head, mut body } = response;
        if head.get("content-encoding").is_some_and(|coding| coding == "gzip") && !body.is_empty() {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(body.as_slice()).read_to_end(&mut plain)?;
            body = plain;
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        let media = head.get("content-type").unwrap_or_default();
        let tree = if text.is_empty() {
            None
        } else if media.starts_with("application/json") {
            Some(
                serde_json::from_str(&text)
                    .map_err(|e| anyhow!("the body is not JSON: {e}\n{text}"))?,
            )
        } else if media.starts_with("application/yaml") {
            Some(
                serde_saphyr::from_str(&text)
                    .map_err(|e| anyhow!("the body is not YAML: {e}\n{text}"))?,
            )
        } else if media.starts_with(binary::CBOR) {
            Some(binary::read_cbor(&body)?)
        } else if media.starts_with(binary::PROTOBUF) {
            Some(binary::read(&body)?)
        } else {
            serde_json::from_str(&text).ok() // a kube-apiserver calls some of its JSON plain text
        };
        Ok(Self { head, text, tree })
    }

    /// A watch event, so that variables can be saved from it.
    pub(crate) fn of_event(event: Value) -> Self {
        Self { head: Head::default(), text: String::new(), tree: Some(event) }
    }

    /// The events of a stream, as a list.
    pub(crate) fn of_events(head: Head, events: Vec<Value>) -> Self {
        Self { head, text: String::new(), tree: Some(Value::Array(events)) }
    }

    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    pub(crate) const fn head(&self) -> &Head {
        &self.head
    }

    /// The body: a tree if its type is known, else its lines.
    pub(crate) fn body(&self) -> Value {
        self.tree.clone().unwrap_or_else(|| self.text.lines().collect())
    }

    /// A value by its path: `metadata.name`, `items.0.kind`, a JSON pointer, or `header Name`.
    pub(crate) fn find(&self, path: &str) -> Result<Value> {
        let lost = || anyhow!("there is nothing at {path} to save");
        if let Some(name) = path.strip_prefix("header ") {
            return self.head.get(name).map(|value| json!(value)).ok_or_else(lost);
        }
        let tree = self.tree.as_ref().ok_or_else(lost)?;
        let found = if path.starts_with('/') || path.is_empty() {
            tree.pointer(path)
        } else {
            tree.pointer(&format!("/{}", path.replace('.', "/")))
        };
        found.cloned().ok_or_else(lost)
    }

    /// The response for messages, shortened.
    pub(crate) fn show(&self) -> String {
        const LIMIT: usize = 3_000;
        let body = match &self.tree {
            Some(tree) => format!("{:#}", shortened(tree)),
            None => self.text.clone(),
        };
        let end = body.char_indices().nth(LIMIT).map_or(body.len(), |(end, _)| end);
        let headers: Vec<String> =
            self.head.headers.iter().map(|(name, value)| format!("< {name}: {value}")).collect();
        format!("< {}\n{}\n{}", self.head.status, headers.join("\n"), &body[..end])
    }
}

/// A tree without members that are long and rarely of interest.
fn shortened(tree: &Value) -> Value {
    const LIMIT: usize = 300;
    match tree {
        Value::Object(members) => members
            .iter()
            .filter(|(key, _)| *key != "managedFields" && *key != "description")
            .map(|(key, value)| (key.clone(), shortened(value)))
            .collect(),
        Value::Array(items) => items.iter().map(shortened).collect(),
        Value::String(text) => match text.char_indices().nth(LIMIT) {
            Some((end, _)) => json!(format!("{}…", &text[..end])),
            None => tree.clone(),
        },
        _ => tree.clone(),
    }
}

/// The expectation of a step, with its variables replaced.
pub(crate) struct Expectation {
    status: Vec<u16>,
    headers: Row,
    body: Option<(Value, Extent)>,
    text: Option<Value>,
}

impl Expectation {
    /// The expectation of a step; the default status is that of the method.
    pub(crate) fn of(step: &Step, method: &str, scope: &dyn Scope) -> Result<Self> {
        let status = match &step.status {
            None if method == "POST" => vec![201],
            None => vec![200],
            Some(status) => numbers(&fill(status, scope)?)?,
        };
        let mut headers = Row::new();
        for (name, value) in &step.response_headers {
            headers.insert(name.clone(), fill(value, scope)?);
        }
        let body = match (&step.body, &step.exact) {
            (Some(body), _) => Some((fill(body, scope)?, Extent::Subset)),
            (None, Some(body)) => Some((fill(body, scope)?, Extent::Exact)),
            (None, None) => None,
        };
        let text = step.text.as_ref().map(|text| fill(text, scope)).transpose()?;
        Ok(Self { status, headers, body, text })
    }

    /// Compares; the error lists every difference.
    pub(crate) fn check(&self, answer: &Answer) -> Result<()> {
        let mut found = Vec::new();
        let status = answer.status();
        if !self.status.contains(&status) {
            let wanted: Vec<String> = self.status.iter().map(u16::to_string).collect();
            found.push(format!("status: expected {}, got {status}", wanted.join(" or ")));
        }
        for (name, expected) in &self.headers {
            check_header(name, expected, &answer.head, &mut found);
        }
        if let Some((expected, extent)) = &self.body {
            match &answer.tree {
                Some(tree) => found.extend(differences(expected, Some(tree), *extent)),
                None => found.push("body: expected JSON or YAML, got another type".to_owned()),
            }
        }
        if let Some(expected) = &self.text
            && !text_matches(expected, &answer.text)
        {
            let text: String = answer.text.chars().take(1_000).collect();
            found.push(format!("text: expected {expected}, got {text:?}"));
        }
        if found.is_empty() { Ok(()) } else { bail!("{}", found.join("\n")) }
    }
}

fn check_header(name: &str, expected: &Value, head: &Head, found: &mut Vec<String>) {
    let values = head.all(name);
    let differ = match expected {
        Value::Array(_) => differences(expected, Some(&json!(values)), Extent::Exact),
        expected => {
            let word = Value::String(media_type(&as_text(expected)).to_owned());
            differences(&word, values.first().map(|value| json!(value)).as_ref(), Extent::Exact)
        }
    };
    found.extend(differ.into_iter().map(|line| format!("header {name}, {line}")));
}

fn numbers(status: &Value) -> Result<Vec<u16>> {
    let one = |value: &Value| {
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        number
            .and_then(|n| u16::try_from(n).ok())
            .ok_or_else(|| anyhow!("status {value} is no number"))
    };
    match status {
        Value::Array(items) => items.iter().map(one).collect(),
        other => Ok(vec![one(other)?]),
    }
}
