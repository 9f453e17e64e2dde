//! Validation of the type and metadata of embedded objects (`x-kubernetes-embedded-resource`).

use pintle_meta::field::{Error, Errors};
use pintle_meta::{names, object, validation};
use pintle_value::{Path, Value};

use crate::structural::Structural;

/// Validates the embedded objects in a value. The value itself is one only if its schema says so.
pub(crate) fn validate(schema: &Structural, value: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    walk(schema, value, &mut path.clone(), &mut errors);
    errors
}

fn walk(schema: &Structural, value: &Value, path: &mut Path, errors: &mut Errors) {
    if errors.is_full() {
        return;
    }
    if schema.embedded && matches!(value, Value::Object(_)) {
        check(value, path, errors);
    }
    schema.each_part(value, path, |schema, part, path| walk(schema, part, path, errors));
}

fn check(value: &Value, path: &Path, errors: &mut Errors) {
    let api_version = path.field("apiVersion");
    match value.get("apiVersion") {
        None => errors.push(Error::required(&api_version, "")),
        Some(Value::String(text)) if text.is_empty() => {
            errors.push(Error::invalid(&api_version, &"".into(), "must not be empty"));
        }
        Some(version @ Value::String(text)) if text.matches('/').count() > 1 => {
            let words = format!("unexpected GroupVersion string: {text}");
            errors.push(Error::invalid(&api_version, version, words));
        }
        Some(Value::String(_)) => {}
        Some(other) => errors.push(Error::invalid(&api_version, other, "must be a string")),
    }
    let kind = path.field("kind");
    match value.get("kind") {
        None => errors.push(Error::required(&kind, "")),
        Some(Value::String(text)) if text.is_empty() => {
            errors.push(Error::invalid(&kind, &"".into(), "must not be empty"));
        }
        Some(given @ Value::String(text)) => {
            let wrong = names::dns1035_label(&text.to_lowercase());
            if !wrong.is_empty() {
                let words =
                    format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
                errors.push(Error::invalid(&kind, given, words));
            }
        }
        Some(other) => errors.push(Error::invalid(&kind, other, "must be a string")),
    }
    if value.get("metadata").is_some() {
        let mut named = value.clone();
        if object::name(value).is_empty() {
            object::set_text(&mut named, "name", "fakename"); // an embedded object needs no name
        }
        let namespaced = !object::namespace(value).is_empty();
        let rule = |name: &str, prefix: bool| names::path_segment_rule(name, prefix);
        let metadata = path.field("metadata");
        errors.extend(validation::object_meta(&named, namespaced, &rule, &metadata));
    }
}
