//! Defaults are valid values, and say nothing that would be dropped (upstream:
//! `pkg/apiserver/schema/defaulting/validation.go`).

use pintle_meta::field::{Error, Errors};
use pintle_value::{Path, Value};

use crate::structural::Structural;
use crate::value::{self, embedded};

/// What is wrong with the defaults of a schema.
pub(super) fn validate(schema: &Structural, path: &Path) -> Errors {
    let mut errors = Errors::new();
    walk(schema, path, false, true, &mut errors);
    errors
}

/// `in_meta` where the schema is of an object's own metadata, `is_object` where it is of an object.
fn walk(schema: &Structural, path: &Path, in_meta: bool, is_object: bool, errors: &mut Errors) {
    let is_object = is_object || schema.embedded;
    let in_meta = in_meta && !schema.embedded;
    if let Some(default) = &schema.default {
        check(schema, default, &path.field("default"), in_meta, errors);
    }
    if let Some(items) = &schema.items {
        walk(items, &path.field("items"), in_meta, false, errors);
    }
    for (name, below) in &schema.properties {
        let of_object = is_object && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        let path = path.field("properties").key(name);
        walk(below, &path, in_meta || of_object, false, errors);
    }
}

fn check(schema: &Structural, default: &Value, path: &Path, in_meta: bool, errors: &mut Errors) {
    if !in_meta {
        let mut pruned = default.clone();
        schema.prune(&mut pruned);
        if pruned != *default {
            errors.push(Error::invalid(path, default, "must not have unknown fields"));
        }
        let wrong = embedded::validate(schema, default, path);
        if !wrong.is_empty() {
            errors.extend(wrong);
            return;
        }
    }
    errors.extend(value::validate(schema, default, None, path.as_str()));
}
