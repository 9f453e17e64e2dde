//! The rules for pods and pod templates that users meet at once. The full set is yet to come.
//!
//! What the table of types declares (required members, enums) is checked there and not here, but for
//! names, which have to be looked at anyway.

use std::collections::BTreeSet;

use pintle_meta::{field::Error, names, validation};
use pintle_value::{Path, Value};

use crate::checks::{invalid_text, items, members, required};

/// What upstream says where a workload does not select its own pods.
pub(crate) const LABELS_MISMATCH: &str = "`selector` does not match template `labels`";

const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

/// What is wrong with a Pod.
pub(crate) fn validate_pod(pod: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    validate_spec(pod.get("spec").unwrap_or(&Value::Null), &Path::new("spec"), &mut errors);
    errors
}

/// What is wrong with a PodTemplateSpec.
pub(crate) fn validate_template(template: &Value, path: &Path, errors: &mut Vec<Error>) {
    validate_template_metadata(template, path, errors);
    validate_spec(template.get("spec").unwrap_or(&Value::Null), &path.field("spec"), errors);
}

/// What is wrong with the metadata of a PodTemplateSpec.
pub(crate) fn validate_template_metadata(template: &Value, path: &Path, errors: &mut Vec<Error>) {
    let metadata = |member| template.at(&["metadata", member]).and_then(Value::as_object);
    // Upstream leaves `metadata` out of these two paths.
    errors.extend(validation::labels(metadata("labels"), &path.field("labels")));
    errors.extend(validation::annotations(metadata("annotations"), &path.field("annotations")));
}

/// What is wrong with a PodSpec.
fn validate_spec(spec: &Value, path: &Path, errors: &mut Vec<Error>) {
    let mut volumes = BTreeSet::new();
    for (i, volume) in items(spec, &["volumes"]).iter().enumerate() {
        validate_named(volume, &path.field("volumes").index(i), &mut volumes, errors);
    }
    let mut containers = BTreeSet::new();
    let lists = ["containers", "initContainers"];
    for list in lists {
        let path = path.field(list);
        let found = items(spec, &[list]);
        if list == "containers" && found.is_empty() {
            errors.push(Error::required(&path, ""));
        }
        for (i, container) in found.iter().enumerate() {
            let path = path.index(i);
            validate_named(container, &path, &mut containers, errors);
            validate_container(container, &path, &volumes, errors);
        }
    }
}

/// Containers and volumes have names, which are labels and differ.
fn validate_named<'a>(
    named: &'a Value,
    path: &Path,
    seen: &mut BTreeSet<&'a str>,
    errors: &mut Vec<Error>,
) {
    let name = named.str_at(&["name"]).unwrap_or_default();
    let path = path.field("name");
    let wrong = names::dns1123_label(name);
    if name.is_empty() {
        errors.push(Error::required(&path, ""));
    } else if !wrong.is_empty() {
        invalid_text(&path, name, wrong, errors);
    } else if !seen.insert(name) {
        errors.push(Error::duplicate(&path, &Value::from(name)));
    }
}

fn validate_container(
    container: &Value,
    path: &Path,
    volumes: &BTreeSet<&str>,
    errors: &mut Vec<Error>,
) {
    required(container, path, "image", errors);
    for (i, port) in items(container, &["ports"]).iter().enumerate() {
        let path = path.field("ports").index(i);
        let number = port.get("containerPort").and_then(Value::as_int).unwrap_or(0);
        if number == 0 {
            errors.push(Error::required(&path.field("containerPort"), ""));
        } else if !(1..=65535).contains(&number) {
            errors.push(Error::invalid(&path.field("containerPort"), &number.into(), PORT_RANGE));
        }
    }
    for (i, mount) in items(container, &["volumeMounts"]).iter().enumerate() {
        let name = mount.str_at(&["name"]).unwrap_or_default();
        if !name.is_empty() && !volumes.contains(name) {
            let path = path.field("volumeMounts").index(i).field("name");
            errors.push(Error::not_found(&path, &Value::from(name)));
        }
    }
    validate_resources(container, path, errors);
}

/// A request may not be above its limit; upstream says so of the request.
fn validate_resources(container: &Value, path: &Path, errors: &mut Vec<Error>) {
    let limits = members(container, &["resources", "limits"]);
    for (name, request) in members(container, &["resources", "requests"]).iter() {
        let Some(limit) = limits.get(name).and_then(Value::as_str) else { continue };
        let Some(text) = request.as_str() else { continue };
        if super::quality::above(text, limit) {
            let path = path.field("resources").field("requests");
            let words = format!("must be less than or equal to {name} limit of {limit}");
            errors.push(Error::invalid(&path, request, words));
        }
    }
}
