//! Validation of definitions (upstream: `pkg/apis/apiextensions/validation`).
//!
//! Paths in errors are those of upstream's internal version, which its clients see: parts that all
//! versions share are at the top (`spec.validation`), others in each version.

pub(crate) mod conversion;
mod defaults;
mod openapi;
mod per_version;
mod spec;
mod strictness;
pub(crate) mod structural;

use std::collections::BTreeSet;

use pintle_meta::field::{Error, Errors};
use pintle_meta::quote::quote;
use pintle_value::{Path, Value};

use crate::approval::{Approval, approval_state, is_protected};
use crate::definition::Crd;
use crate::value::format;

use strictness::Sent;

pub use conversion::check_webhook_url;

/// Validates a definition; `old` is the one that an update replaces.
pub fn validate(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = validate_sent(Sent::V1, new, old);
    errors.extend(approval(new, old));
    if Crd(new).preserves_unknown() && !old.is_some_and(|old| Crd(old).preserves_unknown()) {
        let words = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                     spec.versions[*].schema instead";
        let path = Path::new("spec").field("preserveUnknownFields");
        errors.push(Error::invalid(&path, &Value::Bool(true), words));
    }
    errors
}

/// Validates a definition that was sent in v1beta1 and converted to v1, by the rules of v1.21, the
/// last release with that version.
pub fn validate_v1beta1(new: &Value, old: Option<&Value>) -> Errors {
    validate_sent(Sent::V1Beta1, new, old)
}

fn validate_sent(sent: Sent, new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = spec::validate(sent, Crd(new), old.map(Crd));
    errors.extend(stored_versions(Crd(new)));
    errors
}

/// Validates the status of a definition, which controllers write.
pub fn validate_status(definition: &Value) -> Errors {
    let mut errors = Errors::new();
    if let Some(names) = definition.at(&["status", "acceptedNames"]) {
        spec::check_names(names, &Path::new("status").field("acceptedNames"), &mut errors);
    }
    errors
}

/// The warnings about an accepted definition.
pub fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(|old| unknown_formats(Crd(old))).unwrap_or_default();
    let known: BTreeSet<String> = known.into_iter().collect();
    let formats = unknown_formats(Crd(new)).into_iter().filter(|format| !known.contains(format));
    formats.map(|format| format!("unrecognized format {}", quote(&format))).collect()
}

fn stored_versions(crd: Crd<'_>) -> Errors {
    let path = Path::new("status").field("storedVersions");
    let stored = crd.list(&["status", "storedVersions"]);
    let shown = Value::Array(stored.to_vec());
    if stored.is_empty() {
        let words = "must have at least one stored version";
        return Error::invalid(&path, &Value::Null, words).into();
    }
    let mut errors = Errors::new();
    let is_stored = |name: &str| stored.iter().any(|v| v.as_str() == Some(name));
    for (i, version) in crd.versions().enumerate() {
        // A stored version is matched once: a second version of the same name does not match.
        let is_second = || crd.versions().take(i).any(|other| other.name() == version.name());
        if !version.is_storage() || is_stored(version.name()) && !is_second() {
            continue;
        }
        let words = format!("must have the storage version {}", version.name());
        errors.push(Error::invalid(&path, &shown, words));
    }
    for (i, version) in stored.iter().enumerate() {
        let name = version.as_str().unwrap_or_default();
        if crd.version(name).is_none() {
            let words = format!(
                "missing from spec.versions; {name} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.push(Error::invalid(&path.index(i), version, words));
        }
    }
    errors
}

fn approval(new: &Value, old: Option<&Value>) -> Option<Error> {
    if !is_protected(Crd(new).group()) {
        return None;
    }
    let (state, words) = approval_state(new);
    let same = |old: &Value| {
        std::mem::discriminant(&approval_state(old).0) == std::mem::discriminant(&state)
    };
    if old.is_some_and(same) {
        return None;
    }
    let path = Path::new("metadata").field("annotations").key("api-approved.kubernetes.io");
    match state {
        Approval::Approved | Approval::Bypassed => None,
        Approval::Missing => Some(Error::required(&path, words)),
        Approval::Invalid => {
            let given = new.at(&["metadata", "annotations", "api-approved.kubernetes.io"]);
            Some(Error::invalid(&path, given.unwrap_or(&Value::Null), words))
        }
    }
}

/// Visits a schema and all schemas in it.
pub(crate) fn walk<'s>(schema: &'s Value, visit: &mut dyn FnMut(&'s Value)) {
    if schema.as_object().is_none() {
        return;
    }
    visit(schema);
    for key in ["items", "not", "additionalProperties", "additionalItems"] {
        schema.get(key).into_iter().for_each(|below| walk(below, visit));
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let list = schema.get(key).and_then(Value::as_array).unwrap_or_default();
        list.iter().for_each(|below| walk(below, visit));
    }
    for key in ["properties", "patternProperties", "definitions"] {
        let map = schema.get(key).and_then(Value::as_object);
        map.into_iter().flat_map(pintle_value::Map::values).for_each(|below| walk(below, visit));
    }
}

fn unknown_formats(crd: Crd<'_>) -> Vec<String> {
    let mut formats = Vec::new();
    for schema in crd.versions().filter_map(|version| version.schema()) {
        walk(schema, &mut |schema| {
            let text = |key: &str| schema.str_at(&[key]).unwrap_or_default();
            let (ty, format) = (text("type"), text("format"));
            if !format.is_empty() && !format::is_known(ty, format) {
                formats.push(format.to_owned());
            }
        });
    }
    formats
}
