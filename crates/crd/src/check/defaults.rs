//! Validation of defaults: they must be valid values without fields that would be pruned (upstream:
//! `pkg/apiserver/schema/defaulting/validation.go`).

use pintle_meta::field::{Error, Errors};
use pintle_value::{Path, Value};

use crate::structural::Structural;
use crate::value::{self, embedded};

/// Validates the defaults of a schema.
pub(super) fn validate(schema: Schema<'_>, path: &Path) -> Errors {
    let mut errors = Errors::new();
    walk(schema, path, false, true, &mut errors);
    errors
}

/// A schema as parsed, and as written.
pub(super) type Schema<'s> = (&'s Structural, &'s Value);

/// `in_meta` is true within the schemas of an object's `metadata`, `apiVersion` and `kind`, and
/// `is_object` is true for the schema of a whole object.
fn walk(schema: Schema<'_>, path: &Path, in_meta: bool, is_object: bool, errors: &mut Errors) {
    let (read, written) = schema;
    let is_object = is_object || read.embedded;
    let in_meta = in_meta && !read.embedded;
    if let Some(default) = &read.default {
        check(schema, default, &path.field("default"), in_meta, errors);
    }
    let below = |path: &[&str]| written.at(path).unwrap_or(&Value::Null);
    if let Some(items) = &read.items {
        walk((items, below(&["items"])), &path.field("items"), in_meta, false, errors);
    }
    for (name, property) in &read.properties {
        let of_object = is_object && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        let path = path.field("properties").key(name);
        let property = (property, below(&["properties", name]));
        walk(property, &path, in_meta || of_object, false, errors);
    }
}

fn check(
    (schema, written): Schema<'_>,
    default: &Value,
    path: &Path,
    in_meta: bool,
    errors: &mut Errors,
) {
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
    // No value matches an unknown type.
    let ty = written.str_at(&["type"]).filter(|ty| !ty.is_empty() && schema.ty.is_none());
    errors.extend(ty.map(|ty| value::wrong_type(path, ty, default)));
    errors.extend(value::validate(schema, default, None, path.as_str()));
}
