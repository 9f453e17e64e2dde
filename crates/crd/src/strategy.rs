//! The strategy of custom resources (upstream: `pkg/registry/customresource/strategy.go`).

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_meta::field::{Error, ErrorType, Errors};
use pintle_meta::{names, object};
use pintle_registry::{Generation, Members, SelectableField, Strategy};
use pintle_value::{Path, Str, Value};

use crate::cel;
use crate::schemas::{Schemas, members};
use crate::structural::Structural;
use crate::value::{self, embedded, lists};

/// The strategy of one version.
pub(crate) struct Custom {
    pub(crate) schema: (Arc<Schemas>, Str),
    pub(crate) fields: Vec<SelectableField>,
    pub(crate) has_status: bool,
    /// `subresources.scale` of the definition.
    pub(crate) scale: Option<Value>,
    pub(crate) is_terminating: bool,
}

impl Custom {
    fn schema(&self) -> Arc<Structural> {
        self.schema.0.of(&self.schema.1)
    }

    /// Validates the members that a Scale shows: the replica counts and the selector.
    fn check_scale(&self, new: &Value, part: &str) -> Errors {
        let Some(scale) = &self.scale else { return Errors::new() };
        let path = |key: &str| scale.str_at(&[key]).filter(|path| !path.is_empty());
        let mut errors = Errors::new();
        let of_spec = path("specReplicasPath").filter(|_| part.is_empty());
        for path in of_spec.into_iter().chain(path("statusReplicasPath")) {
            errors.extend(check_replicas(new, path));
        }
        if let Some(path) = path("labelSelectorPath") {
            let found = new.at(&members(path));
            if let Some(other) = found.filter(|found| found.as_str().is_none()) {
                let words = accessor_error(path, other, "string");
                errors.push(Error::invalid(&Path::new(path), &"".into(), words));
            }
        }
        errors
    }
}

/// Whether no rules are evaluated because of an error: types or sizes may be wrong.
const fn blocks_rules(error: &Error) -> bool {
    use ErrorType::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(error.error_type, NotSupported | Required | TooLong | TooMany | TypeInvalid)
}

fn check_replicas(object: &Value, path: &str) -> Option<Error> {
    let steps = members(path);
    // Upstream's accessor stops at a value that is not an object.
    let mut passed = (1..steps.len()).filter_map(|depth| object.at(&steps[..depth]));
    if let Some(other) = passed.find(|value| value.as_object().is_none()) {
        let words = accessor_error(path, other, "map[string]interface{}");
        return Some(Error::invalid(&Path::new(path), &Value::Int(0), words));
    }
    let count = object.at(&steps)?;
    let words = match count {
        Value::Int(0..=0x7fff_ffff) => return None,
        Value::Int(..0) => "should be a non-negative integer".to_owned(),
        Value::Int(_) => format!("should be less than or equal to {}", i32::MAX),
        other => {
            let words = accessor_error(path, other, "int64");
            return Some(Error::invalid(&Path::new(path), &Value::Int(0), words));
        }
    };
    Some(Error::invalid(&Path::new(path), count, words))
}

/// The error of Go's accessor for a member of another type.
fn accessor_error(path: &str, value: &Value, wanted: &str) -> String {
    let found = pintle_meta::quote::go_type(value);
    let shown = pintle_meta::quote::plain(value);
    format!("{path} accessor error: {shown} is of the type {found}, expected {wanted}")
}

impl Strategy for Custom {
    fn reset_fields(&self) -> Members {
        if self.has_status { &[&["status"]] } else { &[] }
    }

    fn generation(&self) -> Generation {
        if self.has_status { Generation::Spec } else { Generation::Content }
    }

    fn fields(&self) -> &[SelectableField] {
        &self.fields
    }

    fn unknown_field(&self, _: &str, label: &str) -> String {
        format!("field label not supported: {label}")
    }

    fn refuse_create(&self) -> Option<&'static str> {
        self.is_terminating
            .then_some("create not allowed while custom resource definition is terminating")
    }

    fn is_expensive(&self) -> bool {
        self.schema.0.is_expensive(&self.schema.1)
    }

    fn coerce(&self, object: &mut Value) {
        self.schema().drop_nulls(object);
    }

    fn default(&self, object: &mut Value) {
        self.schema().set_defaults(object);
    }

    fn prepare_create(&self, object: &mut Value) {
        let schema = self.schema();
        let status = schema.property("status").filter(|_| self.has_status);
        let default = status.and_then(|status| status.default.as_deref());
        // Clients cannot create a status, but an object that is stored without one is read with its
        // default.
        if let Some(default) = default
            && object.get("status").is_none()
        {
            object.make_object().insert("status", default.clone());
            schema.set_defaults(object);
        }
    }

    fn validate(
        &self,
        new: &Value,
        old: Option<&Value>,
        part: &str,
        warnings: &mut Vec<String>,
    ) -> Errors {
        let schema = self.schema();
        let mut errors = match part {
            "status" => match (schema.property("status"), new.get("status")) {
                (Some(below), Some(status)) => {
                    let old = old.and_then(|old| old.get("status"));
                    value::validate(below, status, old, "status")
                }
                _ => Errors::new(),
            },
            _ => {
                let mut errors = value::validate(&schema, new, old, "");
                errors.extend(embedded::validate(&schema, new, &Path::root()));
                errors
            }
        };
        errors.extend(self.check_scale(new, part));
        let old_was_unique = old.is_none_or(|old| lists::duplicates(&schema, old).is_empty());
        if old_was_unique {
            errors.extend(lists::duplicates(&schema, new));
        }
        if let Some(rules) = self.schema.0.rules(&self.schema.1) {
            if errors.is_full() || errors.iter().any(blocks_rules) {
                let path = Path::new("<nil>");
                let words = "some validation rules were not checked because the object was \
                             invalid; correct the existing errors to complete validation";
                errors.push(Error::invalid(&path, &Value::Null, words));
            } else {
                let input = cel::evaluate(&rules, &schema, new, old);
                errors.extend(input.errors);
                warnings.extend(input.warnings.iter().map(ToString::to_string));
            }
        }
        errors
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let known: BTreeSet<&str> = old.into_iter().flat_map(object::finalizers).collect();
        let added: BTreeSet<&str> =
            object::finalizers(new).filter(|name| !known.contains(name)).collect();
        added.into_iter().flat_map(finalizer_warnings).take(FINALIZER_WARNINGS_MAX).collect()
    }
}

/// The maximum number of warnings about finalizers. An object can have 200,000 of them.
const FINALIZER_WARNINGS_MAX: usize = 100;

/// Kubernetes' own finalizers, which have no domain.
const STANDARD_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

fn finalizer_warnings(name: &str) -> Vec<String> {
    let head = format!("metadata.finalizers: {}", pintle_meta::quote::quote(name));
    let wrong = names::qualified_name(name).into_iter();
    let mut warnings: Vec<String> = wrong.map(|why| format!("{head}: {why}")).collect();
    if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        warnings.push(format!(
            "{head}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts \
             with other finalizer writers"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests;
