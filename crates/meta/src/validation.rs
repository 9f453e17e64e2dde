//! Validation of object metadata, with the messages and in the order of
//! `k8s.io/apimachinery/pkg/api/validation`.
//!
//! Objects are decoded against their schema before, so members have their declared types.

mod conditions;
mod owners;
mod selector;
#[cfg(test)]
mod tests;

pub use conditions::conditions;
pub use owners::owner_references;
pub use selector::{field_requirement, label_requirement, label_selector};

use std::collections::BTreeSet;

use pintle_value::{Map, Path, Str, Value};

use crate::{
    field::{Error, Errors},
    names, object, quote,
};

/// The maximum total size of all annotations' keys and values in bytes (META-09).
pub const ANNOTATIONS_LENGTH_MAX: usize = 256 * 1024;
const MANAGER_LENGTH_MAX: usize = 128;
const SUBRESOURCE_LENGTH_MAX: usize = 256;

/// A rule for names; the flag says whether the text is a `generateName`.
pub type NameRule<'a> = &'a dyn Fn(&str, bool) -> Vec<String>;

/// Validates the metadata of an object to be created, after its name was generated. `path` is the
/// path of the metadata.
pub fn object_meta(
    object: &Value,
    namespaced: bool,
    name_rule: NameRule<'_>,
    path: &Path,
) -> Errors {
    let mut errors = object_names(object, name_rule, path);
    errors.extend(object_meta_but_names(object, namespaced, path));
    errors
}

/// Validates `generateName` and the name of an object.
pub fn object_names(object: &Value, name_rule: NameRule<'_>, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let base = object::text(object, "generateName");
    if !base.is_empty() {
        member_invalid(&mut errors, (path, "generateName"), base, name_rule(base, true));
    }
    let name = object::name(object);
    if name.is_empty() {
        errors.push(Error::required(&path.field("name"), "name or generateName is required"));
    } else {
        member_invalid(&mut errors, (path, "name"), name, name_rule(name, false));
    }
    errors
}

/// Validates the rest of the metadata, for which all kinds have the same rules.
pub fn object_meta_but_names(object: &Value, namespaced: bool, path: &Path) -> Errors {
    let mut errors = Errors::new();
    namespace(&mut errors, object::namespace(object), namespaced, path);
    let generation = object::generation(object);
    if generation < 0 {
        const DETAIL: &str = "must be greater than or equal to 0";
        errors.push(Error::invalid(&path.field("generation"), &generation.into(), DETAIL));
    }
    labels_annotations_and_owners(&mut errors, object, path);
    if object::finalizers(object).next().is_some() {
        errors.extend(finalizers(object, &path.field("finalizers")));
    }
    errors.extend(managed_fields(object, path));
    errors
}

/// The members that no update changes, each with the value that counts when it is absent.
static IMMUTABLE: [(&str, Value); 6] = [
    ("name", EMPTY),
    ("namespace", EMPTY),
    ("uid", EMPTY),
    ("creationTimestamp", Value::Null),
    ("deletionTimestamp", Value::Null),
    ("deletionGracePeriodSeconds", Value::Null),
];
const EMPTY: Value = Value::String(Str::const_new(""));

/// Validates the metadata of an update against the stored object. `errors_of_new` are the errors
/// that [`object_meta_but_names`] found in the new object: if there are none, the rules that both
/// functions have are not checked again.
pub fn object_meta_update(
    new: &Value,
    old: &Value,
    errors_of_new: &[Error],
    path: &Path,
) -> Errors {
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
    for (member, absent) in &IMMUTABLE {
        let [new, old] = [new, old].map(|o| o.at(&["metadata", member]).unwrap_or(absent));
        if new != old {
            errors.extend(immutable(new, old, &path.field(member)));
        }
    }
    if !errors_of_new.is_empty() {
        labels_annotations_and_owners(&mut errors, new, path);
        errors.extend(managed_fields(new, path));
    }
    errors
}

/// Returns an error if an immutable value changed.
pub fn immutable(new: &Value, old: &Value, path: &Path) -> Option<Error> {
    (new != old).then(|| Error::invalid(path, new, "field is immutable"))
}

fn namespace(errors: &mut Errors, namespace: &str, namespaced: bool, path: &Path) {
    const MEMBER: &str = "namespace";
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(Error::required(&path.field(MEMBER), "")),
        (true, false) => {
            let wrong = names::dns1123_label(namespace);
            member_invalid(errors, (path, MEMBER), namespace, wrong);
        }
        (false, true) => {}
        (false, false) => {
            errors.push(Error::forbidden(&path.field(MEMBER), "not allowed on this type"));
        }
    }
}

/// Validates labels, annotations and owner references, on create and on update.
fn labels_annotations_and_owners(errors: &mut Errors, object: &Value, path: &Path) {
    if let given @ Some(_) = object::labels(object) {
        errors.extend(labels(given, &path.field("labels")));
    }
    if let given @ Some(_) = object::annotations(object) {
        errors.extend(annotations(given, &path.field("annotations")));
    }
    if let Some(owners) = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array) {
        errors.extend(owner_references(owners, &path.field("ownerReferences")));
    }
}

/// Validates labels (META-08).
pub fn labels(labels: Option<&Map>, path: &Path) -> Errors {
    let mut errors = Errors::new();
    for (key, value) in labels.into_iter().flat_map(Map::iter) {
        all_invalid(&mut errors, path, key, names::qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        all_invalid(&mut errors, path, value, names::label_value(value));
    }
    errors
}

/// Validates annotations (META-09).
pub fn annotations(annotations: Option<&Map>, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut length = 0;
    for (key, value) in annotations.into_iter().flat_map(Map::iter) {
        // The rule is that of label keys, except that upper case is allowed in the prefix.
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

/// Rejects new finalizers on an object that is being deleted (DEL-12).
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

/// Validates the managers' entries; `path` is the path of the metadata. The paths of entries are
/// made for errors only, because the server itself has written nearly all entries.
fn managed_fields(object: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    for (i, entry) in entries.unwrap_or_default().iter().enumerate() {
        let path = |member: &str| path.field("managedFields").index(i).field(member);
        let text = |member: &str| entry.str_at(&[member]).unwrap_or_default();
        let operation = text("operation");
        if !matches!(operation, "Apply" | "Update") {
            const DETAIL: &str = "must be `Apply` or `Update`";
            errors.push(Error::invalid(&path("operation"), &operation.into(), DETAIL));
        }
        let fields_type = text("fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            const DETAIL: &str = "must be `FieldsV1`";
            errors.push(Error::invalid(&path("fieldsType"), &fields_type.into(), DETAIL));
        }
        let manager = text("manager");
        if !is_plain_manager(manager) {
            errors.extend(field_manager(manager, &path("manager")));
        }
        if text("subresource").len() > SUBRESOURCE_LENGTH_MAX {
            errors.push(Error::too_long(&path("subresource"), SUBRESOURCE_LENGTH_MAX));
        }
    }
    errors
}

/// Whether the name of a field manager is short and has graphic ASCII characters only, and so is
/// valid.
fn is_plain_manager(manager: &str) -> bool {
    manager.len() <= MANAGER_LENGTH_MAX && manager.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Validates the name of a field manager.
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

/// Validates a path with a domain prefix, such as `acme.io/foo`.
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

/// Adds an error about `text` for each message.
fn all_invalid(errors: &mut Errors, path: &Path, text: &str, wrong: Vec<String>) {
    if !wrong.is_empty() {
        errors.extend(wrong.into_iter().map(|detail| Error::invalid(path, &text.into(), detail)));
    }
}

/// Adds an error about the text of a member for each message.
fn member_invalid(
    errors: &mut Errors,
    (path, member): (&Path, &str),
    text: &str,
    wrong: Vec<String>,
) {
    if !wrong.is_empty() {
        all_invalid(errors, &path.field(member), text, wrong);
    }
}
