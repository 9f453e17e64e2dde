//! The rules for the metadata that every object has, in the words and the order of
//! `k8s.io/apimachinery/pkg/api/validation`.
//!
//! Objects come here decoded against their schema, so that members have the types they should have.

mod conditions;
mod owners;
mod selector;
#[cfg(test)]
mod tests;

pub use conditions::conditions;
pub use owners::owner_references;
pub use selector::{field_requirement, label_requirement, label_selector};

use std::collections::BTreeSet;

use pintle_value::{Map, Path, Value};

use crate::{
    field::{Error, Errors},
    names, object, quote,
};

/// All annotations' keys and values together may be so long, in bytes (META-09).
pub const ANNOTATIONS_LENGTH_MAX: usize = 256 * 1024;
const MANAGER_LENGTH_MAX: usize = 128;
const SUBRESOURCE_LENGTH_MAX: usize = 256;

/// What is wrong with the metadata of an object to be created, after its name was generated. `path`
/// is where the metadata is: `metadata`.
pub fn object_meta(
    object: &Value,
    namespaced: bool,
    name_rule: &dyn Fn(&str, bool) -> Vec<String>,
    path: &Path,
) -> Errors {
    let mut errors = Errors::new();
    let base = object::text(object, "generateName");
    if !base.is_empty() {
        all_invalid(&mut errors, &path.field("generateName"), base, name_rule(base, true));
    }
    let name = object::name(object);
    if name.is_empty() {
        errors.push(Error::required(&path.field("name"), "name or generateName is required"));
    } else {
        all_invalid(&mut errors, &path.field("name"), name, name_rule(name, false));
    }
    namespace(&mut errors, object::namespace(object), namespaced, &path.field("namespace"));
    let generation = object::generation(object);
    if generation < 0 {
        const DETAIL: &str = "must be greater than or equal to 0";
        errors.push(Error::invalid(&path.field("generation"), &generation.into(), DETAIL));
    }
    described(&mut errors, object, path);
    errors.extend(finalizers(object, &path.field("finalizers")));
    errors.extend(managed_fields(object, &path.field("managedFields")));
    errors
}

/// What is wrong with the metadata of an object to be updated, given what is stored.
pub fn object_meta_update(new: &Value, old: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    if object::is_terminating(old) {
        no_new_finalizers(&mut errors, new, old, &path.field("finalizers"));
    }
    if object::resource_version(new).is_empty() {
        const DETAIL: &str = "must be specified for an update";
        errors.push(Error::invalid(&path.field("resourceVersion"), &"".into(), DETAIL));
    }
    let generation = object::generation(new);
    if generation < object::generation(old) {
        const DETAIL: &str = "must not be decremented";
        errors.push(Error::invalid(&path.field("generation"), &generation.into(), DETAIL));
    }
    for (member, missing) in [
        ("name", Value::from("")),
        ("namespace", Value::from("")),
        ("uid", Value::from("")),
        ("creationTimestamp", Value::Null),
        ("deletionTimestamp", Value::Null),
        ("deletionGracePeriodSeconds", Value::Null),
    ] {
        let [new, old] = [new, old].map(|o| o.at(&["metadata", member]).unwrap_or(&missing));
        errors.extend(immutable(new, old, &path.field(member)));
    }
    described(&mut errors, new, path);
    errors.extend(managed_fields(new, &path.field("managedFields")));
    errors
}

/// What is wrong with a value that must not change.
pub fn immutable(new: &Value, old: &Value, path: &Path) -> Option<Error> {
    (new != old).then(|| Error::invalid(path, new, "field is immutable"))
}

fn namespace(errors: &mut Errors, namespace: &str, namespaced: bool, path: &Path) {
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(Error::required(path, "")),
        (true, false) => all_invalid(errors, path, namespace, names::dns1123_label(namespace)),
        (false, true) => {}
        (false, false) => errors.push(Error::forbidden(path, "not allowed on this type")),
    }
}

/// Labels, annotations and owner references: what is checked on create and on update alike.
fn described(errors: &mut Errors, object: &Value, path: &Path) {
    errors.extend(labels(object::labels(object), &path.field("labels")));
    errors.extend(annotations(object::annotations(object), &path.field("annotations")));
    let owners = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array);
    errors.extend(owner_references(owners.unwrap_or_default(), &path.field("ownerReferences")));
}

/// What is wrong with a set of labels (META-08).
pub fn labels(labels: Option<&Map>, path: &Path) -> Errors {
    let mut errors = Errors::new();
    for (key, value) in labels.into_iter().flat_map(Map::iter) {
        all_invalid(&mut errors, path, key, names::qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        all_invalid(&mut errors, path, value, names::label_value(value));
    }
    errors
}

/// What is wrong with a set of annotations (META-09).
pub fn annotations(annotations: Option<&Map>, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut length = 0;
    for (key, value) in annotations.into_iter().flat_map(Map::iter) {
        // The rule is that of labels' keys, but for the case of the letters.
        all_invalid(&mut errors, path, key, names::qualified_name(&key.to_lowercase()));
        length += key.len() + value.as_str().map_or(0, str::len);
    }
    if length > ANNOTATIONS_LENGTH_MAX {
        errors.push(Error::too_long(path, ANNOTATIONS_LENGTH_MAX));
    }
    errors
}

fn finalizers(object: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    for finalizer in object::finalizers(object) {
        all_invalid(&mut errors, path, finalizer, names::qualified_name(finalizer));
    }
    let has = |wanted: &str| object::finalizers(object).any(|finalizer| finalizer == wanted);
    if has("orphan") && has("foregroundDeletion") {
        const DETAIL: &str = "finalizer orphan and foregroundDeletion cannot be both set";
        let all: Vec<Value> = object::finalizers(object).map(Value::from).collect();
        errors.push(Error::invalid(path, &all.into(), DETAIL));
    }
    errors
}

/// Nothing may begin to hold an object that is being deleted (DEL-12).
fn no_new_finalizers(errors: &mut Errors, new: &Value, old: &Value, path: &Path) {
    let old: BTreeSet<&str> = object::finalizers(old).collect();
    let added: BTreeSet<&str> = object::finalizers(new).filter(|f| !old.contains(f)).collect();
    if !added.is_empty() {
        let added: Vec<String> = added.into_iter().map(quote::quote).collect();
        errors.push(Error::forbidden(
            path,
            format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                added.join(", ")
            ),
        ));
    }
}

fn managed_fields(object: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    for (i, entry) in entries.unwrap_or_default().iter().enumerate() {
        let path = path.index(i);
        let text = |member: &str| entry.str_at(&[member]).unwrap_or_default();
        let operation = text("operation");
        if !matches!(operation, "Apply" | "Update") {
            const DETAIL: &str = "must be `Apply` or `Update`";
            errors.push(Error::invalid(&path.field("operation"), &operation.into(), DETAIL));
        }
        let fields_type = text("fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            const DETAIL: &str = "must be `FieldsV1`";
            errors.push(Error::invalid(&path.field("fieldsType"), &fields_type.into(), DETAIL));
        }
        errors.extend(field_manager(text("manager"), &path.field("manager")));
        if text("subresource").len() > SUBRESOURCE_LENGTH_MAX {
            errors.push(Error::too_long(&path.field("subresource"), SUBRESOURCE_LENGTH_MAX));
        }
    }
    errors
}

/// What is wrong with the name of a field manager.
pub fn field_manager(manager: &str, path: &Path) -> Errors {
    let mut errors = Errors::new();
    if manager.len() > MANAGER_LENGTH_MAX {
        errors.push(Error::too_long(path, MANAGER_LENGTH_MAX));
    }
    for (at, c) in manager.char_indices().filter(|(_, c)| !quote::is_print(*c)) {
        if errors.is_full() {
            break;
        }
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        errors.push(Error::invalid(path, &manager.into(), detail));
    }
    errors
}

/// What is wrong with a path that has a domain before it, such as `acme.io/foo`.
pub fn domain_prefixed_path(text: &str, path: &Path) -> Errors {
    if text.is_empty() {
        return Error::required(path, "").into();
    }
    let mut errors = Errors::new();
    let mut refuse = |part: &str, why: &str| {
        errors.push(Error::invalid(path, &Value::from(part), why));
    };
    match text.split_once('/') {
        None | Some(("", _) | (_, "")) => {
            refuse(text, "must be a domain-prefixed path (such as \"acme.io/foo\")");
        }
        Some((host, rest)) => {
            names::dns1123_subdomain(host).iter().for_each(|why| refuse(host, why));
            let is_fit = |b: u8| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b);
            if !rest.bytes().all(is_fit) {
                let why = "Invalid path (regex used for validation is \
                           '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
                refuse(rest, why);
            }
        }
    }
    errors
}

/// One error for each of the things that are wrong with `text`.
fn all_invalid(errors: &mut Errors, path: &Path, text: &str, wrong: Vec<String>) {
    errors.extend(wrong.into_iter().map(|detail| Error::invalid(path, &text.into(), detail)));
}
