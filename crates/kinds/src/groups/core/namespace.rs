//! Namespaces (DEF-04). `pintle-controllers` empties terminating ones.

use pintle_meta::{
    field::{Error, Errors},
    names, object,
};
use pintle_registry::{Deletion, NameRule};
use pintle_value::{Map, Path, Value};

use crate::{
    checks::{invalid_text, items, path},
    defaults::{
        Constant::Text,
        Row::{Do, Empty, In},
        set,
    },
    strategy::{Part, Strategy, WITH_STATUS, part, selectable},
};

/// The finalizer of the namespace controller.
const FINALIZER: &str = "kubernetes";
/// The finalizers that need no domain.
const STANDARD_FINALIZERS: &[&str] = &[FINALIZER, "orphan", "foregroundDeletion"];
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) const NAMESPACE: Strategy = Strategy {
    name: NameRule::DnsLabel,
    fields: &[selectable!("status.phase" at "status"."phase")],
    default: |object| {
        set(object, &[Do(label_with_name), In("status", &[Empty("phase", Text("Active"))])]);
    },
    prepare_create: |namespace| {
        add_finalizer(namespace);
        set_phase(namespace, "Active");
        // The name may have been generated since the defaults were set.
        label_with_name(namespace.make_object());
    },
    // Only `finalize` changes the finalizers of the spec.
    prepare_update: |new, old| {
        let finalizers = old.at(&["spec", "finalizers"]).cloned();
        let spec = new.object_entry("spec");
        match finalizers {
            Some(finalizers) => _ = spec.insert("finalizers", finalizers),
            None => _ = spec.remove("finalizers"),
        }
        label_with_name(new.make_object());
    },
    validate: |new, old| match old {
        None => wrong_finalizers(new, |path, _| path),
        Some(_) => Errors::new(),
    },
    parts: &[
        Part { validate: |new, _| wrong_phase(new), ..part("status") },
        Part {
            validate: |new, _| wrong_finalizers(new, |path, i| path.index(i)),
            ..part("finalize")
        },
    ],
    terminating: |namespace| set_phase(namespace, "Terminating"),
    deletion: Deletion::DependentsOnly,
    // The first request only marks the namespace as terminating (upstream: the storage of
    // namespaces).
    held: |namespace| {
        !object::is_terminating(namespace) || !items(namespace, &["spec", "finalizers"]).is_empty()
    },
    ..WITH_STATUS
};

/// Sets the label that lets label selectors select a namespace by name. Another value is
/// overwritten.
fn label_with_name(namespace: &mut Map) {
    let metadata = namespace.entry_object("metadata");
    let name = metadata.get("name").filter(|name| name.as_str().is_some_and(|n| !n.is_empty()));
    if let Some(name) = name.cloned() {
        metadata.entry_object("labels").insert(NAME_LABEL, name);
    }
}

fn add_finalizer(namespace: &mut Value) {
    let list = namespace.object_entry("spec").entry_or("finalizers", || Value::Array(Vec::new()));
    if list.is_null() {
        *list = Value::Array(Vec::new());
    }
    if let Value::Array(finalizers) = list
        && !finalizers.iter().any(|finalizer| finalizer.as_str() == Some(FINALIZER))
    {
        finalizers.push(Value::from(FINALIZER));
    }
}

/// Upstream's path is that of the list for a new namespace, and that of the item afterwards.
fn wrong_finalizers(namespace: &Value, at: fn(Path, usize) -> Path) -> Errors {
    let mut errors = Errors::new();
    for (i, finalizer) in items(namespace, &["spec", "finalizers"]).iter().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        let path = at(path(&["spec", "finalizers"]), i);
        invalid_text(&path, name, names::qualified_name(name), &mut errors);
        if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            let words = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(Error::invalid(&path, finalizer, words));
        }
    }
    errors
}

/// The phase must match whether the namespace is being deleted.
fn wrong_phase(namespace: &Value) -> Errors {
    let (right, state) = if object::is_terminating(namespace) {
        ("Terminating", "is not empty")
    } else {
        ("Active", "is empty")
    };
    let phase = namespace.str_at(&["status", "phase"]).unwrap_or_default();
    if phase == right {
        return Errors::new();
    }
    let words = format!("may only be '{right}' if `deletionTimestamp` {state}");
    // Upstream's path has a capital letter.
    Error::invalid(&path(&["status", "Phase"]), &Value::from(phase), words).into()
}

fn set_phase(namespace: &mut Value, phase: &str) {
    namespace.object_entry("status").insert("phase", phase);
}
