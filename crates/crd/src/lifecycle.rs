//! The lifecycle of a definition: accepted names, and conditions (upstream:
//! `pkg/controller/{status,establish,apiapproval,nonstructuralschema}`). Pure: the other
//! definitions, the schemas and the time are arguments.

use std::cell::LazyCell;

use pintle_meta::field::{Error, Errors, aggregate};
use pintle_meta::time;
use pintle_value::{Map, Path, Value};

use crate::approval::{Approval, approval_state, is_protected};
use crate::built_in::{self, BuiltIn, UsedNames};
use crate::check::conversion::{bundle_of, is_bundle};
use crate::check::structural;
use crate::definition::{Crd, Names};

#[cfg(test)]
mod tests;

/// The finalizer that keeps a definition until its objects are deleted.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Reads the schema of a version, if the definition has one.
pub type ReadSchema<'s> = dyn Fn(&str) -> Option<Value> + 's;

/// Computes the status of a definition from the built-in resources and the other definitions of its
/// group; `None` if it is up to date. If the definition already has its names, the others are not
/// examined. `schema` reads the schema of a version; it is called only if the definition preserves
/// unknown fields.
pub fn status<'o>(
    (crd, schema): (&Value, &ReadSchema<'_>),
    built_in: &BuiltIn,
    others: impl Iterator<Item = &'o Value>,
    now_micros: i64,
) -> Option<Value> {
    let read = Crd(crd);
    let is_built_in = built_in.has(read.group(), read.names().plural());
    let mut status = crd.get("status").cloned().unwrap_or_else(Value::object);
    // Accepted names that equal the requested ones are kept, even if somebody changed the
    // conditions; but a new release may have built in a name that was free.
    let has_names = built_in.group(read.group()).is_none()
        && read.0.at(&["spec", "names"]) == status.get("acceptedNames");
    let accepted = if has_names {
        read.has("NamesAccepted")
    } else {
        accept_names(&mut status, read, built_in, others, now_micros)
    };
    let mut set = |condition_type: &str, holds: bool, reason: &str, message: &str| {
        set_condition(&mut status, (condition_type, holds, reason, message), now_micros);
    };
    let is_due = !has_names || accepted;
    if is_due && (!read.has("Established") || is_built_in) {
        let (holds, reason, words) = match (accepted, is_bundle(bundle_of(read))) {
            (true, true) => (true, "InitialNamesAccepted", "the initial names have been accepted"),
            (true, false) => {
                (false, "InvalidCABundle", "The conversion webhook CABundle is invalid")
            }
            (false, _) => (false, "NotAccepted", "not all names are accepted"),
        };
        set("Established", holds, reason, words);
    }
    if let Some((holds, reason, message)) = approval(read) {
        set("KubernetesAPIApprovalPolicyConformant", holds, reason, &message);
    }
    match structure(read, schema) {
        Some((holds, reason, message)) => {
            put_condition(&mut status, (NON_STRUCTURAL, holds, reason, &message), now_micros);
        }
        None => remove_condition(&mut status, NON_STRUCTURAL),
    }
    (crd.get("status") != Some(&status)).then_some(status)
}

/// Accepts the free names of a definition, and returns whether those are all requested ones.
fn accept_names<'o>(
    status: &mut Value,
    read: Crd<'_>,
    built_in: &BuiltIn,
    others: impl Iterator<Item = &'o Value>,
    now_micros: i64,
) -> bool {
    let mut names =
        read.names().choose(read.accepted_names(), built_in.group(read.group()), others);
    let categories = read.0.at(&["spec", "names", "categories"]).cloned();
    match categories.filter(|list| list.as_array().is_some_and(|list| !list.is_empty())) {
        Some(categories) => _ = names.accepted_map.insert("categories", categories),
        None => _ = names.accepted_map.remove("categories"),
    }
    status.make_object().insert("acceptedNames", names.accepted_map);
    let accepted = names.conflict.is_none();
    let (reason, message) = names.conflict.unwrap_or(("NoConflicts", "no conflicts found".into()));
    set_condition(status, ("NamesAccepted", accepted, reason, &message), now_micros);
    accepted
}

/// Sets a condition, given by its type, whether it holds, reason and message.
pub fn set_condition(
    status: &mut Value,
    (condition_type, holds, reason, message): (&str, bool, &str, &str),
    now_micros: i64,
) {
    let holds = if holds { "True" } else { "False" };
    put_condition(status, (condition_type, holds, reason, message), now_micros);
}

fn remove_condition(status: &mut Value, condition_type: &str) {
    if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
        conditions.retain(|condition| condition.str_at(&["type"]) != Some(condition_type));
    }
}

/// Sets a condition, given by its type, status, reason and message.
fn put_condition(
    status: &mut Value,
    (condition_type, holds, reason, message): (&str, &str, &str, &str),
    now_micros: i64,
) {
    let list = status.make_object().entry_or("conditions", || Value::Array(Vec::new()));
    if !matches!(list, Value::Array(_)) {
        *list = Value::Array(Vec::new());
    }
    let Value::Array(conditions) = list else { return };
    let is_it = |c: &&mut Value| c.str_at(&["type"]) == Some(condition_type);
    let known = conditions.iter_mut().find(is_it);
    let since = known.as_ref().filter(|c| c.str_at(&["status"]) == Some(holds));
    let since = since.and_then(|c| c.get("lastTransitionTime").filter(|t| !t.is_null()).cloned());
    let since = since.unwrap_or_else(|| time::format(now_micros).into());
    let condition = Value::from([
        ("lastTransitionTime", since),
        ("message", message.into()),
        ("reason", reason.into()),
        ("status", holds.into()),
        ("type", condition_type.into()),
    ]);
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// The accepted names.
struct AcceptedNames {
    accepted_map: Map,
    /// The last conflict, as a reason and a message; one of short names only if there is no other.
    conflict: Option<(&'static str, String)>,
}

impl Names<'_> {
    /// Accepts each requested name that is not built in, and is this definition's already or free.
    fn choose<'o>(
        self,
        accepted: Names<'_>,
        built_in: Option<&built_in::Group>,
        others: impl Iterator<Item = &'o Value>,
    ) -> AcceptedNames {
        let used = LazyCell::new(|| UsedNames::by(others));
        let mut result = AcceptedNames { accepted_map: Map::new(), conflict: None };
        let taken = |name: &str| format!("{} is already in use", pintle_meta::quote::quote(name));
        // Built-in names are in use even if the status claims them for the definition.
        let of_resource = |wanted: &str, had: &str| {
            built_in.is_some_and(|group| group.used.resources.contains(wanted))
                || wanted != had && used.resources.contains(wanted)
        };
        let of_kind = |wanted: &str, had: &str| {
            built_in.is_some_and(|group| group.used.kinds.contains(wanted))
                || wanted != had && used.kinds.contains(wanted)
        };
        let mut give = |key: &'static str,
                        reason,
                        wanted: &str,
                        had: &str,
                        in_use: &dyn Fn(&str, &str) -> bool| {
            let name = if in_use(wanted, had) {
                result.conflict = Some((reason, taken(wanted)));
                if in_use(had, had) { "" } else { had }
            } else {
                wanted
            };
            result.accepted_map.insert(key, name);
        };
        give("plural", "PluralConflict", self.plural(), accepted.plural(), &of_resource);
        give("singular", "SingularConflict", self.singular(), accepted.singular(), &of_resource);
        give("kind", "KindConflict", self.kind(), accepted.kind(), &of_kind);
        give("listKind", "ListKindConflict", self.list_kind(), accepted.list_kind(), &of_kind);
        let (wanted, mut had) = (self.short_names(), accepted.short_names());
        let conflicts: Vec<String> = wanted
            .iter()
            .filter(|name| {
                let had = if had.contains(name) { name.as_str() } else { "" };
                of_resource(name, had)
            })
            .map(|name| taken(name))
            .collect();
        had.retain(|name| !of_resource(name, name));
        let short_names = if conflicts.is_empty() { wanted } else { had };
        // Any other conflict is reported rather than one of short names.
        match conflicts.as_slice() {
            [] => {}
            [one] => _ = result.conflict.get_or_insert(("ShortNamesConflict", one.clone())),
            many => {
                let all = format!("[{}]", many.join(", "));
                result.conflict.get_or_insert(("ShortNamesConflict", all));
            }
        }
        if !short_names.is_empty() {
            result.accepted_map.insert("shortNames", short_names);
        }
        if result.accepted_map.get("singular").and_then(Value::as_str) == Some("") {
            result.accepted_map.remove("singular");
        }
        if result.accepted_map.get("listKind").and_then(Value::as_str) == Some("") {
            result.accepted_map.remove("listKind");
        }
        result
    }
}

/// The condition of definitions whose schemas are not structural.
const NON_STRUCTURAL: &str = "NonStructuralSchema";

/// Returns the status, reason and message of the condition [`NON_STRUCTURAL`]; `None` if the
/// definition must not have it. Validation ensures that schemas are structural unless unknown
/// fields are preserved.
fn structure(
    crd: Crd<'_>,
    schema: &ReadSchema<'_>,
) -> Option<(&'static str, &'static str, String)> {
    if !crd.preserves_unknown() {
        return None;
    }
    let spec = Path::new("spec");
    let preserved = spec.field("preserveUnknownFields");
    let mut errors = Errors::from(Error::invalid(&preserved, &Value::Bool(true), "must be false"));
    for (i, version) in crd.versions().enumerate() {
        let Some(schema) = schema(version.name()) else { continue };
        if let Some(why) = structural::unreadable(&schema) {
            let name = version.name();
            let message = format!("failed to check validation schema for version {name}: {why}");
            return Some(("Unknown", "StructuralError", message));
        }
        let path = spec.field("versions").index(i).field("schema").field("openAPIV3Schema");
        errors.extend(structural::validate(&schema, true, &path));
    }
    Some(("True", "Violations", aggregate(&errors)))
}

fn approval(crd: Crd<'_>) -> Option<(bool, &'static str, String)> {
    if !is_protected(crd.group()) {
        return None;
    }
    let (state, words) = approval_state(crd.0);
    Some(match state {
        Approval::Approved => (true, "ApprovedAnnotation", words),
        Approval::Bypassed => (false, "UnapprovedAnnotation", words),
        Approval::Missing => (false, "MissingAnnotation", words),
        Approval::Invalid => (false, "InvalidAnnotation", words),
    })
}

/// Prepares a definition for deletion: its objects are deleted first (upstream: REST.Delete).
pub fn begin_deletion(crd: &mut Value) {
    let since = crd.str_at(&["metadata", "deletionTimestamp"]).unwrap_or_default();
    let now = time::parse(since).unwrap_or(0);
    let finalizers =
        pintle_meta::object::metadata_mut(crd).entry_or("finalizers", || Value::Array(Vec::new()));
    if let Value::Array(list) = finalizers
        && !list.iter().any(|name| name.as_str() == Some(CLEANUP_FINALIZER))
    {
        list.push(CLEANUP_FINALIZER.into());
    }
    let words =
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    let mut status = crd.get("status").cloned().unwrap_or_else(Value::object);
    set_condition(&mut status, ("Terminating", true, "InstanceDeletionPending", words), now);
    crd.make_object().insert("status", status);
}
