//! Validation of owner references.

use pintle_value::{Path, Value, json};

use crate::{
    GroupVersion, GroupVersionKind,
    field::{Error, Errors},
};

/// Validates an object's owner references. Upstream's errors name the list, not the item.
pub fn owner_references(owners: &[Value], path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut controller: Option<String> = None;
    for owner in owners {
        owner_reference(&mut errors, owner, path);
        if owner.get("controller").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        let this = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
        match &controller {
            None => controller = Some(this),
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {first} and {this}"
                );
                let all: Vec<String> = owners.iter().map(shown).collect();
                let all = format!("[{}]", all.join(","));
                errors.push(Error::invalid_shown(path, all, detail));
            }
        }
    }
    errors
}

fn owner_reference(errors: &mut Errors, owner: &Value, path: &Path) {
    let kind = text(owner, "kind");
    let gvk = match GroupVersion::parse(text(owner, "apiVersion")) {
        Some(gv) => GroupVersionKind::new(gv.group, gv.version, kind),
        None => GroupVersionKind::new("", "", kind),
    };
    if gvk.version.is_empty() {
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
    if gvk == GroupVersionKind::new("", "v1", "Event") {
        let detail = format!("{gvk} is disallowed from being an owner");
        errors.push(Error::invalid_shown(path, shown(owner), detail));
    }
}

fn text<'a>(owner: &'a Value, member: &str) -> &'a str {
    owner.str_at(&[member]).unwrap_or_default()
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
        .map(|(member, value)| format!("\"{member}\":{}", json::to_string(&value)))
        .collect();
    format!("{{{}}}", members.join(","))
}
