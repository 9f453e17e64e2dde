//! Generates requests from the objects of a kind. Each request removes or changes one part of an
//! object, or adds one or two fields of the kind's schema.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::kinds::Kind;
use crate::http::Request;
use crate::random::Random;
use crate::schemas::{Schemas, Step, parts, type_of};

/// The depth of the deepest parents whose fields are searched.
const DEPTH_MAX: usize = 9;
/// Fields whose parents are at most this deep are tried in every kind; deeper ones only in the
/// first kind with their type.
const EVERY_KIND_DEPTH: usize = 3;
/// The largest number of items of a list that are changed.
const ITEMS: usize = 3;

/// The length to which a request's name is cut.
const QUESTION_LENGTH: usize = 160;
/// One pair of values is tried per this many single values.
const PAIRS_ONE_IN: usize = 10;

/// The path of a part of an object: `spec`, `ports`, `0`.
pub(super) type FieldPath = Vec<Part>;

/// A step into an object.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Part {
    Member(String),
    Item(usize),
}

/// A request with its name: the verb, the path, and the value at the path.
pub(super) type Question = (String, Request);

/// Requests that create the kind's objects, each with one part absent or one wrong value.
pub(super) fn mutants(kind: &Kind) -> Vec<Question> {
    let mut questions = Vec::new();
    let mut seen = BTreeSet::new();
    for object in [&kind.rich, &kind.small] {
        for (field_path, value) in inside(object) {
            let name = name(&field_path);
            if name.starts_with("metadata.labels.") || !seen.insert(name.clone()) {
                continue;
            }
            let post = |value: Option<Value>| {
                let shown = value.as_ref().map_or("absent".to_owned(), Value::to_string);
                let mut mutant = object.clone();
                set(&mut mutant, &field_path, value);
                create(kind, &format!("POST {name} = {shown}"), "&fieldValidation=Strict", &mutant)
            };
            questions.push(post(None));
            questions.extend(wrong(value).into_iter().map(|value| post(Some(value))));
        }
    }
    questions
}

/// Updates of a stored object that each change one part, to find immutable fields.
pub(super) fn updates(kind: &Kind) -> Vec<Question> {
    let path = format!("{}/{}", kind.collection, kind.name);
    let mut questions =
        vec![request(kind, "POST the object", "POST", &kind.collection, None, &kind.rich)];
    for (field_path, value) in inside(&kind.rich) {
        if matches!(
            &field_path[0],
            Part::Member(name) if ["apiVersion", "kind", "metadata", "status"].contains(&&**name)
        ) {
            continue;
        }
        let pointer: String = field_path.iter().map(|part| format!("/{}", escaped(part))).collect();
        for other in others(value) {
            let question = format!("PATCH {} = {}", name(&field_path), other);
            let patch = json!([{"op": "replace", "path": pointer, "value": other}]);
            let path = format!("{path}?dryRun=All");
            let media = Some("application/json-patch+json");
            questions.push(request(kind, &question, "PATCH", &path, media, &patch));
        }
    }
    let free = json!({"metadata": {"finalizers": null}});
    let path = format!("{path}?gracePeriodSeconds=0");
    questions.push(request(kind, "DELETE the object", "DELETE", &path, None, &json!({})));
    let media = Some("application/merge-patch+json");
    questions.push(request(kind, "PATCH the finalizers", "PATCH", &path, media, &free));
    questions
}

/// A value to insert at a path.
pub(super) type Graft = (FieldPath, Value);

/// Every field of a schema with valid and invalid values for its type. Fields whose parents are
/// deeper than `EVERY_KIND_DEPTH` are included only if `seen` lacks them.
pub(super) fn grafts(schemas: &Schemas, schema: &Value, seen: &mut BTreeSet<String>) -> Vec<Graft> {
    let mut grafts = Vec::new();
    walk(schemas, schema, &mut Vec::new(), &mut Vec::new(), seen, &mut grafts);
    grafts
}

/// The kind's minimal object with each graft, then with pairs of grafts that the seed selects.
pub(super) fn fields(kind: &Kind, grafts: &[Graft], seed: u64) -> Vec<Question> {
    let ask = |question: String, some: &[&Graft]| {
        let mut object = kind.small.clone();
        for (field_path, value) in some {
            set(&mut object, field_path, Some(value.clone()));
        }
        create(kind, &question, "", &object)
    };
    let one = |(field_path, value): &Graft| format!("{} = {value}", name(field_path));
    let mut questions: Vec<Question> =
        grafts.iter().map(|graft| ask(format!("POST {}", one(graft)), &[graft])).collect();
    let mut random = Random::of(seed, grafts.len() as u64);
    for _ in 0..grafts.len() / PAIRS_ONE_IN {
        let (a, b) = (random.pick(grafts), random.pick(grafts));
        questions.push(ask(format!("POST both {} and {}", one(a), one(b)), &[a, b]));
    }
    questions
}

fn walk<'s>(
    schemas: &'s Schemas,
    schema: &'s Value,
    field_path: &mut FieldPath,
    above: &mut Vec<&'s str>,
    seen: &mut BTreeSet<String>,
    found: &mut Vec<(FieldPath, Value)>,
) {
    let (schema, type_name) = schemas.resolved(schema);
    if field_path.len() > DEPTH_MAX || type_name.is_some_and(|name| above.contains(&name)) {
        return;
    }
    let depth = above.len();
    above.extend(type_name);
    for (step, part) in parts(schema) {
        let next = match step {
            Step::Field(field) => {
                let skipped = ["apiVersion", "kind", "metadata", "status"].contains(&&*field);
                if field_path.is_empty() && skipped {
                    continue;
                }
                let key = format!("{} {field}", type_name.unwrap_or_default());
                let is_new = type_name.is_none() || seen.insert(key);
                if !is_new && field_path.len() > EVERY_KIND_DEPTH {
                    continue;
                }
                Part::Member(field)
            }
            Step::Item => Part::Item(0),
            Step::Entry => continue,
        };
        let is_field = matches!(next, Part::Member(_));
        field_path.push(next);
        if is_field {
            let values = schema_values(schemas, part);
            found.extend(values.into_iter().map(|value| (field_path.clone(), value)));
        }
        walk(schemas, part, field_path, above, seen, found);
        field_path.pop();
    }
    above.truncate(depth);
}

/// Values for a field: ordinary and extreme ones of its type, and values of other types.
fn schema_values(schemas: &Schemas, schema: &Value) -> Vec<Value> {
    let (schema, name) = schemas.resolved(schema);
    let name = name.and_then(|name| name.rsplit('.').next()).unwrap_or_default();
    let values = match (name, type_of(schema), schema["format"].as_str()) {
        ("IntOrString", ..) => json!([-1, "150%", "x y", {}]),
        ("Quantity", ..) => json!(["-1", "x", 1.5]),
        (_, "string", Some("date-time")) => json!(["x", "2020-01-01T00:00:00Z", 5]),
        (_, "string", Some("byte")) => json!(["%", "eA==", 5]),
        (_, "string", _) => json!(["", "x", "Bad Value!", "é".repeat(300), 12]),
        (_, "integer", _) => json!([-1, 0, 70_000, 1_u64 << 40, "x"]),
        (_, "number", _) => json!([-1.5, "x"]),
        (_, "boolean", _) => json!([true, "x"]),
        (_, "array", _) => match type_of(schemas.resolved(&schema["items"]).0) {
            "string" => json!([{}, [], ["x", "x"], [""]]),
            "integer" => json!([[5, 5], [-1], ["x"]]),
            _ => json!([[{}], [{}, {}], "x"]),
        },
        _ if schema["additionalProperties"].is_object() => {
            json!([
                {"k": "v"}, {"Bad Key!": "bad value!"}, {"cpu": "-1"}, {"x.io/y": "0.5"}, {"k": 1},
                [], {}
            ])
        }
        _ => json!([{}, [], "x", null]),
    };
    values.as_array().cloned().unwrap_or_default()
}

/// Wrong values in place of a value.
fn wrong(value: &Value) -> Vec<Value> {
    let values = match value {
        Value::Bool(_) => json!(["yes", 1]),
        Value::Number(_) => json!([-1, 0, 1_u64 << 33, "x", 1.5]),
        Value::String(_) => json!(["", "Bad Name!", "x".repeat(300), 7]),
        Value::Array(items) if items.is_empty() => json!([[{}]]),
        Value::Array(items) => {
            let mut twice = items.clone();
            twice.extend(items.first().cloned());
            json!([twice, [], {}, null])
        }
        Value::Object(members) => {
            let mut more = members.clone();
            more.insert("bogusField".to_owned(), json!(1));
            json!([{}, more, "x", []])
        }
        Value::Null => json!([]),
    };
    values.as_array().cloned().unwrap_or_default()
}

/// Other values of the same type, or null.
fn others(value: &Value) -> Vec<Value> {
    let values = match value {
        Value::Bool(is_true) => json!([!is_true]),
        Value::Number(n) => json!([n.as_i64().unwrap_or_default() + 1]),
        Value::String(text) if text.parse::<i64>().is_ok() => json!(["7"]),
        Value::String(text) => json!([format!("{text}-x")]),
        Value::Array(items) if !items.is_empty() => {
            let mut twice = items.clone();
            twice.extend(items.first().cloned());
            json!([twice, []])
        }
        Value::Object(_) => json!([{}, null]),
        _ => json!([]),
    };
    values.as_array().cloned().unwrap_or_default()
}

/// All paths in a tree, with their values.
fn inside(tree: &Value) -> Vec<(FieldPath, &Value)> {
    fn visit<'v>(
        value: &'v Value,
        field_path: &mut FieldPath,
        found: &mut Vec<(FieldPath, &'v Value)>,
    ) {
        let members = value.as_object().into_iter().flatten();
        let members = members.map(|(name, value)| (Part::Member(name.clone()), value));
        let items = value.as_array().into_iter().flatten().take(ITEMS).enumerate();
        let items = items.map(|(i, value)| (Part::Item(i), value));
        for (part, value) in members.chain(items) {
            field_path.push(part);
            found.push((field_path.clone(), value));
            visit(value, field_path, found);
            field_path.pop();
        }
    }
    let mut found = Vec::new();
    visit(tree, &mut Vec::new(), &mut found);
    found
}

/// Sets the value at a path, and creates missing parents; `None` removes it.
fn set(tree: &mut Value, field_path: &[Part], value: Option<Value>) {
    let Some((part, rest)) = field_path.split_first() else { return };
    let last = rest.is_empty();
    match part {
        Part::Member(name) => {
            if !tree.is_object() {
                *tree = json!({});
            }
            match value {
                None if last => drop(tree.as_object_mut().and_then(|members| members.remove(name))),
                Some(value) if last => tree[name] = value,
                value => set(&mut tree[name], rest, value),
            }
        }
        Part::Item(index) => {
            if !tree.is_array() {
                *tree = json!([]);
            }
            let Some(items) = tree.as_array_mut() else { return };
            match value {
                None if last => drop(items.remove(*index)),
                value => {
                    if items.len() <= *index {
                        items.resize(index + 1, json!({}));
                    }
                    match value {
                        Some(value) if last => items[*index] = value,
                        value => set(&mut items[*index], rest, value),
                    }
                }
            }
        }
    }
}

/// Formats a path: `spec.ports[0].name`.
fn name(field_path: &[Part]) -> String {
    let mut name = String::new();
    for part in field_path {
        match part {
            Part::Member(member) if name.is_empty() => name.push_str(member),
            Part::Member(member) => name.push_str(&format!(".{member}")),
            Part::Item(index) => name.push_str(&format!("[{index}]")),
        }
    }
    name
}

fn escaped(part: &Part) -> String {
    match part {
        Part::Member(name) => name.replace('~', "~0").replace('/', "~1"),
        Part::Item(index) => index.to_string(),
    }
}

fn create(kind: &Kind, question: &str, query: &str, object: &Value) -> Question {
    let path = format!("{}?dryRun=All{query}", kind.collection);
    request(kind, question, "POST", &path, None, object)
}

pub(super) fn request(
    kind: &Kind,
    question: &str,
    method: &str,
    path: &str,
    media: Option<&str>,
    body: &Value,
) -> Question {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers = vec![
        header("Accept", "application/json"),
        header("Content-Type", media.unwrap_or("application/json")),
        header("User-Agent", "apiscript/1"),
    ];
    // The run's suffix and network are replaced before the name is cut, so that a request has the
    // same name in every run.
    let question = question.replace(&kind.unique, "$unique").replace(&kind.net, "$net");
    let question = question.chars().take(QUESTION_LENGTH).collect();
    let body = Some(body.to_string().into_bytes());
    (question, Request { method: method.to_owned(), target: path.to_owned(), headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_set_at_paths() {
        let part = |text: &str| match text.parse() {
            Ok(index) => Part::Item(index),
            Err(_) => Part::Member(text.to_owned()),
        };
        for (before, field_path, value, after) in [
            (json!({}), "a.b", Some(json!(1)), json!({"a": {"b": 1}})),
            (json!({}), "a.0.b", Some(json!(1)), json!({"a": [{"b": 1}]})),
            (json!({"a": [1, 2]}), "a.0", None, json!({"a": [2]})),
            (json!({"a": {"b": 1}}), "a.b", None, json!({"a": {}})),
            (json!({"a": 7}), "a.b", Some(json!(1)), json!({"a": {"b": 1}})),
        ] {
            let mut tree = before;
            let field_path: FieldPath = field_path.split('.').map(part).collect();
            set(&mut tree, &field_path, value);
            assert_eq!(tree, after);
        }
    }
}
