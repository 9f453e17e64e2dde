//! The flow schemas and priority levels of a cluster, from `flowcontrol.json`. Mandatory objects
//! are always restored; the others are suggestions.

use pintle_value::Value;

use super::{BootstrapObject, Reconcile, list, object, parse};

const FILE: &str = include_str!("flowcontrol.json");
const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The annotation that says whether the server updates the object's spec.
pub(super) const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

pub(super) fn objects() -> Vec<BootstrapObject> {
    let file = parse(FILE);
    let levels = ("priorityLevels", "prioritylevelconfigurations", "PriorityLevelConfiguration");
    let schemas = ("flowSchemas", "flowschemas", "FlowSchema");
    let of = |(entries, resource, kind): (&str, &'static str, &'static str)| {
        let made = list(&file, entries).iter().map(|entry| made(resource, kind, entry));
        made.collect::<Vec<_>>()
    };
    [levels, schemas].into_iter().flat_map(of).collect()
}

fn made(resource: &'static str, kind: &'static str, entry: &Value) -> BootstrapObject {
    let name = entry.str_at(&["name"]).unwrap_or_default();
    let mut made = object("flowcontrol.apiserver.k8s.io/v1", kind, "", name);
    made.entry_object("metadata").insert("annotations", Value::from([(AUTO_UPDATE, "true")]));
    made.insert("spec", entry.get("spec").cloned().unwrap_or_default());
    let is_mandatory = entry.get("mandatory").and_then(Value::as_bool) == Some(true);
    let reconcile = if is_mandatory { Reconcile::Exactly } else { Reconcile::WhileOurs };
    BootstrapObject::new([GROUP, "v1", resource], Value::Object(made), reconcile)
}
