//! Validation by example: a valid object, one change to it, and the errors and warnings.
//!
//! The rows are YAML files under `cases`:
//!
//! ```yaml
//! resource: apps/v1/deployments
//! base: {metadata: {name: a}, spec: …}       # a valid object
//! rows:
//! - set: {spec.replicas: -1}                 # the change; null removes a member
//!   says: ['FieldValueInvalid spec.replicas: Invalid value: -1: must be …']
//! - was: {spec.paused: true}                 # an update: the stored object, as a change to base
//!   set: {spec.paused: false}
//!   part: status                             # the subresource that is written, if there is one
//! - set: {metadata.name: a.b}
//!   warns: [metadata.name: …]
//! ```
//!
//! A row without `says` must be accepted. A test decodes, defaults and prepares objects as the
//! engine does.

use std::{fmt::Write, fs, path::PathBuf};

use pintle_meta::{GroupVersionResource, field};
use pintle_registry::ResourceDefinition;
use pintle_schema::{decode, default};
use pintle_value::{Value, yaml};

use crate::{RuntimeConfig, definitions};

/// The minimum number of rows, so that a file which is not read fails the test.
const ROWS_MIN: usize = 300;

#[test]
fn objects_get_upstreams_errors_and_warnings() {
    let definitions = definitions(&RuntimeConfig::everything());
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/tests/cases");
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder).expect("rows").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let (mut count, mut wrong) = (0, String::new());
    for file in files {
        let bytes = fs::read(&file).expect("a file");
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let documents = yaml::parse_documents(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        for document in documents {
            let resource = document.str_at(&["resource"]).unwrap_or_default();
            let definition = find(&definitions, resource);
            let base = document.get("base").expect("a base");
            let rows = document.get("rows").and_then(Value::as_array).expect("rows");
            count += rows.len();
            for (i, row) in rows.iter().enumerate() {
                check(&format!("{name} {resource} {i}"), definition, base, row, &mut wrong);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= ROWS_MIN, "{count} rows");
}

fn find<'a>(definitions: &'a [ResourceDefinition], name: &str) -> &'a ResourceDefinition {
    let parts: Vec<&str> = name.split('/').collect();
    let wanted = match *parts.as_slice() {
        [version, resource] => GroupVersionResource::new("", version, resource),
        [group, version, resource] => GroupVersionResource::new(group, version, resource),
        _ => panic!("no resource: {name}"),
    };
    let mut found = definitions.iter().filter(|definition| definition.resource == wanted);
    found.next().unwrap_or_else(|| panic!("no resource: {name}"))
}

/// Checks a row; `name` has its file, its resource and its index in the document.
fn check(
    name: &str,
    definition: &ResourceDefinition,
    base: &Value,
    row: &Value,
    wrong: &mut String,
) {
    let set = row.get("set");
    let (errors, warnings) = match (row.get("was"), row.str_at(&["part"])) {
        (None, None) => {
            let new = created(definition, edited(base.clone(), set));
            let strategy = &definition.strategy;
            (strategy.validate(&new, None, "", &mut Vec::new()), strategy.warnings(&new, None))
        }
        (was, part) => {
            let stored = edited(base.clone(), was);
            update(definition, &stored, set, part.unwrap_or_default())
        }
    };
    let found: Vec<String> = errors.iter().map(cause).collect();
    let quiet = row.get("warns").is_none();
    if found != texts(row, "says") || (!quiet && warnings != texts(row, "warns")) {
        let shown = |texts: &[String]| {
            texts.iter().fold(String::new(), |mut shown, text| {
                let text = text.replace('\'', "''");
                write!(shown, "\n  - '{text}'").expect("writing to a String cannot fail");
                shown
            })
        };
        let row = pintle_value::json::to_string(row);
        writeln!(wrong, "{name}: {row}\n  says:{}\n  warns:{}", shown(&found), shown(&warnings))
            .expect("writing to a String cannot fail");
    }
}

/// Returns the object as the engine passes it to validation.
fn created(definition: &ResourceDefinition, mut tree: Value) -> Value {
    complete(definition, &mut tree);
    for member in definition.strategy.reset_fields() {
        assert_eq!(member.len(), 1, "a member of the object is reset");
        tree.make_object().remove(member[0]);
    }
    definition.strategy.prepare_create(&mut tree);
    tree
}

/// Decodes and defaults an object, and sets the members that the server sets.
fn complete(definition: &ResourceDefinition, tree: &mut Value) {
    decode::conform(&definition.schema, definition.ty, tree)
        .unwrap_or_else(|error| panic!("{error}: {}", pintle_value::json::to_string(tree)));
    default::apply(&definition.schema, definition.ty, tree);
    definition.strategy.default(tree);
    let metadata = tree.object_entry("metadata");
    metadata.insert("namespace", "n");
    metadata.insert("uid", "u");
}

fn update(
    definition: &ResourceDefinition,
    stored: &Value,
    set: Option<&Value>,
    part: &str,
) -> (field::Errors, Vec<String>) {
    let mut old = created(definition, stored.clone());
    // A status in a test is already stored.
    if let Some(status) = stored.get("status") {
        let mut status = Value::from([("status", status.clone())]);
        decode::conform(&definition.schema, definition.ty, &mut status).expect("of the type");
        let members = status.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
        let own = old.object_entry("status");
        members.into_iter().for_each(|(member, value)| {
            own.insert(member, value);
        });
    }
    let mut new = edited(old.clone(), set);
    complete(definition, &mut new);
    let strategy = &definition.strategy;
    if part.is_empty() {
        strategy.prepare_update(&mut new, &old);
    } else {
        strategy.prepare_part(&mut new, &old, part);
    }
    let warnings = match part {
        "" => strategy.warnings(&new, Some(&old)),
        part => strategy.part_warnings(&new, &old, part),
    };
    (strategy.validate(&new, Some(&old), part, &mut Vec::new()), warnings)
}

fn cause(error: &field::Error) -> String {
    format!("{} {}: {}", error.error_type.reason(), error.field, error.body())
}

fn texts(row: &Value, member: &str) -> Vec<String> {
    let texts = row.get(member).and_then(Value::as_array).unwrap_or_default();
    texts.iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
}

/// The object with some fields changed. A field is `spec.ports[0].name` or
/// `metadata.labels[a.b/c]`.
fn edited(mut object: Value, changes: Option<&Value>) -> Value {
    for (field, value) in changes.and_then(Value::as_object).into_iter().flat_map(|m| m.iter()) {
        let steps: Vec<String> = steps(field);
        let (last, parents) = steps.split_last().expect("a field");
        let parent = parents.iter().fold(&mut object, |node, step| enter(node, step));
        if value.is_null() {
            parent.make_object().remove(last);
        } else {
            *enter(parent, last) = value.clone();
        }
    }
    object
}

fn steps(field: &str) -> Vec<String> {
    let mut steps = vec![String::new()];
    let mut rest = field.chars();
    while let Some(c) = rest.next() {
        match c {
            '.' => steps.push(String::new()),
            '[' => steps.push(rest.by_ref().take_while(|c| *c != ']').collect()),
            c => steps.last_mut().expect("a step").push(c),
        }
    }
    steps.retain(|step| !step.is_empty());
    steps
}

fn enter<'a>(node: &'a mut Value, step: &str) -> &'a mut Value {
    match (node, step.parse::<usize>()) {
        (Value::Array(items), Ok(index)) => {
            if index == items.len() {
                items.push(Value::Null);
            }
            &mut items[index]
        }
        (node, _) => node.make_object().entry_or(step, || Value::Null),
    }
}
