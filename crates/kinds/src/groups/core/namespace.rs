//! Namespaces (DEF-04). What happens in a terminating one is `pintle-controllers`' matter.

use pintle_registry::NameRule;
use pintle_value::{Map, Value};

use crate::{
    checks::items,
    defaults::{
        Constant::Text,
        Row::{Do, Empty, In},
        set,
    },
    strategy::{Strategy, WITH_STATUS, selectable},
};

/// The finalizer of the namespace controller.
const FINALIZER: &str = "kubernetes";
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
    terminating: |namespace| set_phase(namespace, "Terminating"),
    held: |namespace| !items(namespace, &["spec", "finalizers"]).is_empty(),
    ..WITH_STATUS
};

/// So that label selectors can name a namespace. Whatever else the label says is overwritten.
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

fn set_phase(namespace: &mut Value, phase: &str) {
    namespace.object_entry("status").insert("phase", phase);
}
