//! Builds the request of a step.

use anyhow::{Result, anyhow};
use serde_json::{Map, Value};

use crate::binary;
use crate::http::Request;
use crate::script::Step;
use crate::target::Target;
use crate::variables::{Scope, as_text, fill, fill_text};

/// Short words for media types, in `type`, `accept` and expected headers.
const MEDIA_TYPES: [(&str, &str); 13] = [
    ("json", "application/json"),
    ("yaml", "application/yaml"),
    ("protobuf", binary::PROTOBUF),
    ("protobuf-watch", "application/vnd.kubernetes.protobuf;stream=watch"),
    ("cbor", "application/cbor"),
    ("json-patch", "application/json-patch+json"),
    ("merge-patch", "application/merge-patch+json"),
    ("strategic-merge-patch", "application/strategic-merge-patch+json"),
    ("apply", "application/apply-patch+yaml"),
    ("table", "application/json;as=Table;v=v1;g=meta.k8s.io"),
    ("metadata", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
    ("metadata-list", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
    ("discovery", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
];

/// The media type that a word stands for, or the text itself.
pub(crate) fn media_type(word: &str) -> &str {
    MEDIA_TYPES.iter().find(|(short, _)| *short == word).map_or(word, |(_, long)| long)
}

/// The request of a step, with its variables replaced.
pub(crate) fn build(step: &Step, target: &Target, scope: &dyn Scope) -> Result<Request> {
    let (method, path) = step.request().ok_or_else(|| anyhow!("the step has no request"))?;
    let mut request = Request {
        method: method.to_owned(),
        target: fill_text(path, scope)?,
        headers: Vec::new(),
        body: body(step, scope)?,
    };
    for (name, value) in &step.query {
        request.target.push(if request.target.contains('?') { '&' } else { '?' });
        request.target.push_str(&percent_encode(name));
        request.target.push('=');
        request.target.push_str(&percent_encode(&as_text(&fill(value, scope)?)));
    }
    header(&mut request, "Accept", step.accept.as_deref().unwrap_or("json"), scope)?;
    let default_type = if request.body.is_some() { "json" } else { "none" };
    header(
        &mut request,
        "Content-Type",
        step.content_type.as_deref().unwrap_or(default_type),
        scope,
    )?;
    for (name, value) in &step.headers {
        let values = match value {
            Value::Array(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            let name = fill_text(name, scope)?;
            request.headers.push((name, as_text(&fill(value, scope)?)));
        }
    }
    if let Some(token) = &step.token {
        let token = fill_text(token, scope)?;
        request.headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
    }
    if let Some(user) = &step.acts_as {
        request.headers.extend(impersonation(&fill(user, scope)?));
    }
    if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
        request.headers.push(("User-Agent".to_owned(), "apiscript/1".to_owned()));
    }
    let named = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    if !step.is_a_stranger() && !named {
        request.headers.extend(target.authorization());
    }
    Ok(request)
}

/// The impersonation headers.
fn impersonation(user: &Value) -> Vec<(String, String)> {
    let header = |name: &str, value: &Value| (format!("Impersonate-{name}"), as_text(value));
    let Value::Object(parts) = user else { return vec![header("User", user)] };
    let mut headers = Vec::new();
    for (part, value) in parts {
        let values = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
        match (part.as_str(), value) {
            ("user", _) => headers.push(header("User", value)),
            ("uid", _) => headers.push(header("Uid", value)),
            ("groups", _) => headers.extend(values.iter().map(|group| header("Group", group))),
            (_, Value::Object(extra)) => {
                for (key, value) in extra {
                    headers.push(header(&format!("Extra-{}", percent_encode(key)), value));
                }
            }
            _ => {}
        }
    }
    headers
}

fn body(step: &Step, scope: &dyn Scope) -> Result<Option<Vec<u8>>> {
    if let Some(tree) = &step.send {
        let mut tree = fill(tree, scope)?;
        if let Some(patch) = &step.but {
            merge(&mut tree, fill(patch, scope)?);
        }
        return match step.content_type.as_deref() {
            Some("protobuf") => binary::write(&tree).map(Some),
            Some("cbor" | "application/apply-patch+cbor") => binary::write_cbor(&tree).map(Some),
            _ => Ok(Some(tree.to_string().into_bytes())),
        };
    }
    if let Some(text) = &step.raw {
        return Ok(Some(fill_text(text, scope)?.into_bytes()));
    }
    let Some(filler) = &step.filler else { return Ok(None) };
    let mut text = fill_text(&filler.before, scope)?;
    text.push_str(&filler.unit.repeat(filler.times));
    text.push_str(&fill_text(&filler.after, scope)?);
    Ok(Some(text.into_bytes()))
}

/// Patches a tree (RFC 7386).
pub(crate) fn merge(tree: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *tree = patch;
        return;
    };
    if !tree.is_object() {
        *tree = Value::Object(Map::new());
    }
    if let Value::Object(members) = tree {
        for (key, value) in patch {
            match value {
                Value::Null => drop(members.remove(&key)),
                value => merge(members.entry(key).or_insert(Value::Null), value),
            }
        }
    }
}

/// Adds a header whose value may be a short word, or `none`.
fn header(request: &mut Request, name: &str, word: &str, scope: &dyn Scope) -> Result<()> {
    let word = fill_text(word, scope)?;
    if word != "none" {
        request.headers.push((name.to_owned(), media_type(&word).to_owned()));
    }
    Ok(())
}

/// The request with which the runner itself creates an object.
pub(crate) fn create(target: &Target, path: &str, object: &Value) -> Request {
    let mut request = Request {
        method: "POST".to_owned(),
        target: path.to_owned(),
        headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
        body: Some(object.to_string().into_bytes()),
    };
    request.headers.extend(target.authorization());
    request
}

/// The request with which the runner itself reads an object.
pub(crate) fn read(target: &Target, path: &str) -> Request {
    let mut headers = vec![("Accept".to_owned(), "application/json".to_owned())];
    headers.extend(target.authorization());
    Request { method: "GET".to_owned(), target: path.to_owned(), headers, body: None }
}

/// The request with which the runner itself deletes an object: without a grace period, with its
/// dependents in the background.
pub(crate) fn delete(target: &Target, path: &str) -> Request {
    Request {
        method: "DELETE".to_owned(),
        target: format!("{path}?gracePeriodSeconds=0&propagationPolicy=Background"),
        headers: target.authorization().into_iter().collect(),
        body: None,
    }
}

/// The request as a line for messages.
pub(crate) fn in_words(request: &Request) -> String {
    const LIMIT: usize = 400;
    let mut line = format!("{} {}", request.method, request.target);
    for (name, value) in &request.headers {
        if !["Authorization", "User-Agent"].contains(&&**name) && value != "application/json" {
            line.push_str(&format!(" {name}: {value}"));
        }
    }
    if let Some(body) = &request.body {
        line.push(' ');
        line.push_str(&String::from_utf8_lossy(body));
    }
    line.chars().take(LIMIT).collect()
}

/// The request as a shell command; `$AUTH` stands for the credentials.
pub(crate) fn curl(target: &Target, request: &Request) -> String {
    const LIMIT: usize = 600;
    let mut line = format!("curl -isk $AUTH -X {}", request.method);
    for (name, value) in &request.headers {
        if name != "Authorization" {
            line.push_str(&format!(" -H {}", quote(&format!("{name}: {value}"))));
        }
    }
    if let Some(body) = &request.body {
        let text = String::from_utf8_lossy(body);
        let end = text.char_indices().nth(LIMIT).map_or(text.len(), |(end, _)| end);
        line.push_str(&format!(" --data-raw {}", quote(&text[..end])));
    }
    let end = request.target.char_indices().nth(LIMIT).map_or(request.target.len(), |(end, _)| end);
    line.push_str(&format!(
        " {}",
        quote(&format!("{}{}", target.server(), &request.target[..end]))
    ));
    line
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn percent_encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
