//! The life of a definition: which names it is given, and what its conditions say (upstream:
//! `pkg/controller/{status,establish,apiapproval,nonstructuralschema}`). Pure: the other definitions
//! and the time come in.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::HashSet;

use pintle_meta::time;
use pintle_value::{Map, Value};

use crate::built_in::{self, BuiltIn};
use crate::check::conversion::{bundle_of, is_bundle};
use crate::definition::{Crd, Names};

#[cfg(test)]
mod tests;

/// The finalizer by which a definition outlives its objects.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What the status of a definition should be, given what is built in and the other definitions of its
/// group; `None` where it is so already. The others are not looked at where it has its names.
pub fn status<'o>(
    crd: &Value,
    built_in: &BuiltIn,
    others: impl Iterator<Item = &'o Value>,
    now_micros: i64,
) -> Option<Value> {
    let read = Crd(crd);
    let is_built_in = built_in.has(read.group(), read.names().plural());
    let mut status = crd.get("status").cloned().unwrap_or_else(Value::object);
    // Names that are as wanted are not looked at again, whatever somebody has made of the conditions; a new
    // release may have built in what was free.
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
    (crd.get("status") != Some(&status)).then_some(status)
}

/// Gives a definition its names, and says whether those are all that it wants.
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
        Some(categories) => _ = names.given.insert("categories", categories),
        None => _ = names.given.remove("categories"),
    }
    status.make_object().insert("acceptedNames", names.given);
    let accepted = names.conflict.is_none();
    let (reason, message) = names.conflict.unwrap_or(("NoConflicts", "no conflicts found".into()));
    set_condition(status, ("NamesAccepted", accepted, reason, &message), now_micros);
    accepted
}

/// Sets a condition, given with its type, whether it holds, its reason and its message.
pub fn set_condition(
    status: &mut Value,
    (condition_type, holds, reason, message): (&str, bool, &str, &str),
    now_micros: i64,
) {
    let holds = if holds { "True" } else { "False" };
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

/// Names as they are given.
struct Given {
    given: Map,
    /// The last name that another definition has, as a reason and a message.
    conflict: Option<(&'static str, String)>,
}

/// Names that are used.
#[derive(Default)]
pub(crate) struct Used<'o> {
    resources: HashSet<Cow<'o, str>>,
    kinds: HashSet<&'o str>,
}

impl<'o> Used<'o> {
    fn by(others: impl Iterator<Item = &'o Value>) -> Self {
        let mut used = Self::default();
        for other in others.map(|crd| Crd(crd).accepted_names()) {
            used.add([other.plural(), other.singular()], [other.kind(), other.list_kind()]);
            let short_names = other.short_names().into_iter();
            used.resources.extend(short_names.map(|name| Cow::Owned(name.to_string())));
        }
        used
    }

    /// Adds the names of a resource, and those of its kinds.
    pub(crate) fn add(
        &mut self,
        resources: impl IntoIterator<Item = &'o str>,
        kinds: impl IntoIterator<Item = &'o str>,
    ) {
        let is_name = |name: &&str| !name.is_empty();
        self.resources.extend(resources.into_iter().filter(is_name).map(Cow::Borrowed));
        self.kinds.extend(kinds.into_iter().filter(is_name));
    }
}

impl Names<'_> {
    /// Gives each wanted name that is not built in, and is this definition's already or nobody's.
    fn choose<'o>(
        self,
        accepted: Names<'_>,
        built_in: Option<&built_in::Group>,
        others: impl Iterator<Item = &'o Value>,
    ) -> Given {
        let used = LazyCell::new(|| Used::by(others));
        let mut result = Given { given: Map::new(), conflict: None };
        let taken = |name: &str| format!("{} is already in use", pintle_meta::quote::quote(name));
        // What is built in is in use even where the status says that the definition has it.
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
            result.given.insert(key, name);
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
        // A conflict of kinds is told rather than one of short names.
        match conflicts.as_slice() {
            [] => {}
            [one] => _ = result.conflict.get_or_insert(("ShortNamesConflict", one.clone())),
            many => {
                let all = format!("[{}]", many.join(", "));
                result.conflict.get_or_insert(("ShortNamesConflict", all));
            }
        }
        if !short_names.is_empty() {
            result.given.insert("shortNames", short_names);
        }
        if result.given.get("singular").and_then(Value::as_str) == Some("") {
            result.given.remove("singular");
        }
        if result.given.get("listKind").and_then(Value::as_str) == Some("") {
            result.given.remove("listKind");
        }
        result
    }
}

const APPROVED: &str = "api-approved.kubernetes.io";

/// What the annotation of a definition in a group of Kubernetes' own says.
pub(crate) enum Approval {
    Approved,
    Bypassed,
    Missing,
    Invalid,
}

/// Whether only Kubernetes may define APIs in a group.
pub(crate) fn is_protected(group: &str) -> bool {
    let within = |domain: &str| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    within("k8s.io") || within("kubernetes.io")
}

/// The state of a definition's approval, and words for it.
pub(crate) fn approval_state(crd: &Value) -> (Approval, String) {
    let said = crd.str_at(&["metadata", "annotations", APPROVED]).unwrap_or_default();
    let quoted = pintle_meta::quote::quote;
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let is_url = said.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && rest.split('/').next().is_some_and(|host| !host.is_empty())
    });
    if said.is_empty() {
        let words =
            format!("protected groups must have approval annotation {}, {see}", quoted(APPROVED));
        (Approval::Missing, words)
    } else if said.starts_with("unapproved") {
        (Approval::Bypassed, format!("not approved: {}", quoted(said)))
    } else if is_url {
        (Approval::Approved, format!("approved in {said}"))
    } else {
        let words = format!(
            "protected groups must have approval annotation {} with either a URL or a reason \
             starting with \"unapproved\", {see}",
            quoted(APPROVED)
        );
        (Approval::Invalid, words)
    }
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

/// Marks a definition that is about to go: its objects go first (upstream: REST.Delete).
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
