//! `scheduling.k8s.io`: priority classes; pod groups and workloads are off by default.

mod groups;

use pintle_meta::field::{Error, Errors};
use pintle_value::{Path, Value};

use crate::{
    checks::{forbidden, frozen, unchanged},
    defaults::{Constant::Text, Defaults, Row::Unset, set},
    field::Field,
    kind::{Kind, kind},
    pods,
    strategy::{AS_UPDATE, PLAIN, Strategy},
};

const SCHEDULING: &str = "scheduling.k8s.io";

pub(crate) const KINDS: &[Kind] = &[
    kind(SCHEDULING, "podgroups", groups::POD_GROUP),
    kind(SCHEDULING, "priorityclasses", PRIORITY_CLASS),
    kind(SCHEDULING, "workloads", groups::WORKLOAD),
];

/// The classes that the server creates, and their values.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
const USER_VALUE_MAX: i64 = 1_000_000_000;

const PRIORITY_CLASS: Strategy = Strategy {
    metadata: AS_UPDATE,
    refuse_delete: |name| {
        let is_system = SYSTEM_CLASSES.iter().any(|(known, _)| *known == name);
        is_system.then_some("this is a system priority class and cannot be deleted")
    },
    default: |object| set(object, DEFAULTS),
    // Upstream sets a generation that it never increments.
    prepare_create: |class| _ = class.object_entry("metadata").insert("generation", 1),
    validate: |new, old| {
        let mut errors = Errors::new();
        if old.is_none() {
            check_value(new, &mut errors);
            pods::preemption_policy(&Field::root(new).get("preemptionPolicy"), &mut errors);
        }
        let words = "may not be changed in an update.";
        let frozen = [forbidden(&["value"], words), frozen(&["preemptionPolicy"])];
        errors.extend(unchanged(new, old, &frozen));
        errors
    },
    ..PLAIN
};

const DEFAULTS: Defaults = &[Unset("preemptionPolicy", Text("PreemptLowerPriority"))];

fn check_value(class: &Value, errors: &mut Errors) {
    let name = pintle_meta::object::name(class);
    let value = class.get("value").and_then(Value::as_int).unwrap_or(0);
    if name.starts_with("system-") {
        if let Some(wrong) = wrong_system_class(class, name, value) {
            let words =
                "priority class names with 'system-' prefix are reserved for system use only";
            let path = Path::new("metadata").field("name");
            errors.push(Error::forbidden(&path, format!("{words}. error: {wrong}")));
        }
    } else if value > USER_VALUE_MAX {
        let words = format!("maximum allowed value of a user defined priority is {USER_VALUE_MAX}");
        errors.push(Error::forbidden(&Path::new("value"), words));
    }
}

fn wrong_system_class(class: &Value, name: &str, value: i64) -> Option<String> {
    let Some((_, right)) = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if value != *right {
        return Some(format!("value of {name} PriorityClass must be {right}"));
    }
    let is_default = class.get("globalDefault").and_then(Value::as_bool) == Some(true);
    is_default.then(|| format!("globalDefault of {name} PriorityClass must be false"))
}
