//! Validation of owner references.

use std::cell::LazyCell;

use pintle_value::{Path, Value, json};

use crate::{
    GroupVersion, GroupVersionKind,
    field::{Error, Errors, SHOWN_BYTES_MAX, truncated},
};

/// Validates an object's owner references. Upstream's errors name the list, not the item.
pub fn owner_references(owners: &[Value], path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut controller: Option<&Value> = None;
    let all = LazyCell::new(|| all_shown(owners));
    for owner in owners {
        owner_reference(&mut errors, owner, path);
        // Each error shows all references, so none is made in vain.
        if errors.is_full() {
            break;
        }
        if owner.get("controller").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        match controller {
            None => controller = Some(owner),
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {} and {}",
                    named(first),
                    named(owner)
                );
                errors.push(Error::invalid_shown(path, all.clone(), detail));
            }
        }
    }
    errors
}

fn owner_reference(errors: &mut Errors, owner: &Value, path: &Path) {
    let version = GroupVersion::parse(text(owner, "apiVersion"));
    if version.as_ref().is_none_or(|version| version.version.is_empty()) {
        let version = text(owner, "apiVersion").into();
        let path = path.field("apiVersion");
        errors.push(Error::invalid(&path, &version, "version must not be empty"));
    }
    for member in ["kind", "name", "uid"] {
        if text(owner, member).is_empty() {
            errors.push(Error::invalid(&path.field(member), &"".into(), "must not be empty"));
        }
    }
    // Events expire after an hour, so no object may depend on one.
    let is_core = |version: GroupVersion| version.group.is_empty() && version.version == "v1";
    if text(owner, "kind") == "Event" && version.is_some_and(is_core) {
        let gvk = GroupVersionKind::new("", "v1", "Event");
        let detail = format!("{gvk} is disallowed from being an owner");
        errors.push(Error::invalid_shown(path, shown(owner), detail));
    }
}

/// The kind and name of an owner in an error.
fn named(owner: &Value) -> String {
    format!("{}/{}", truncated(text(owner, "kind")), truncated(text(owner, "name")))
}

fn text<'a>(owner: &'a Value, member: &str) -> &'a str {
    owner.str_at(&[member]).unwrap_or_default()
}

/// Formats the references as JSON, as far as an error shows them.
fn all_shown(owners: &[Value]) -> String {
    let mut all = String::from("[");
    for (index, owner) in owners.iter().enumerate() {
        if all.len() > SHOWN_BYTES_MAX {
            break;
        }
        if index > 0 {
            all.push(',');
        }
        all.push_str(&shown(owner));
    }
    all.push(']');
    all
}

/// Formats an owner reference as JSON, members in upstream's order.
fn shown(owner: &Value) -> String {
    let required = ["apiVersion", "kind", "name", "uid"];
    let required = required.map(|member| (member, text(owner, member).into()));
    let optional = ["controller", "blockOwnerDeletion"].map(|m| (m, owner.get(m).cloned()));
    let optional = optional.into_iter().filter_map(|(m, value)| Some((m, value?)));
    let members: Vec<String> = required
        .into_iter()
        .chain(optional)
        .map(|(member, value)| format!("\"{member}\":{}", truncated(&json::to_string(&value))))
        .collect();
    format!("{{{}}}", members.join(","))
}
