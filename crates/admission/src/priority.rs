//! Priority: sets the priority and preemption policy of pods from their PriorityClass (upstream:
//! `Priority`).

use std::sync::Arc;

use pintle_meta::{Status, object};
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation};
use pintle_registry::{Object, Registry};
use pintle_value::Value;

use crate::known::Known;
use crate::{forbidden, is_of};

const GROUP: &str = "scheduling.k8s.io";
const CLASSES: &str = "priorityclasses";

/// The plugin.
pub(crate) struct Priority {
    classes: Known<Value>,
}

impl Default for Priority {
    fn default() -> Self {
        Self { classes: Known::new(GROUP, CLASSES, Object::tree) }
    }
}

impl Admission for Priority {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Mutate, Hook::Validate])
    }

    fn mutate(
        &self,
        write: &Attributes<'_>,
        pod: &mut Value,
        registry: &Registry,
    ) -> Result<(), Status> {
        if !is_of(write, "", "pods") {
            return Ok(());
        }
        match (write.operation, write.old()) {
            (Operation::Create, _) => set_priority(write, pod, &self.classes.within("", registry)?),
            (Operation::Update, Some(old)) => {
                restore_priority(pod, old);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        let Some(class) = write.object.filter(|_| is_of(write, GROUP, CLASSES)) else {
            return Ok(());
        };
        if !is_default(class) {
            return Ok(());
        }
        let classes = self.classes.within("", registry)?;
        let Some(default) = default_class(&classes) else { return Ok(()) };
        let name = object::name(default);
        if write.operation == Operation::Update && name == object::name(class) {
            return Ok(());
        }
        let why = format!(
            "PriorityClass {name} is already marked as default. Only one default can exist"
        );
        Err(forbidden(write, class, &why))
    }
}

/// Sets the priority, preemption policy and class name of a new pod.
fn set_priority(
    write: &Attributes<'_>,
    pod: &mut Value,
    classes: &[Arc<Value>],
) -> Result<(), Status> {
    let name = pod.str_at(&["spec", "priorityClassName"]).unwrap_or_default();
    let class = if name.is_empty() {
        default_class(classes)
    } else {
        let class = classes.iter().find(|class| object::name(class) == name);
        let missing =
            || forbidden(write, pod, &format!("no PriorityClass with name {name} was found"));
        Some(&**class.ok_or_else(missing)?)
    };
    let value = class.map_or(0, value);
    let policy = class.and_then(|class| class.str_at(&["preemptionPolicy"]));
    let policy = policy.unwrap_or("PreemptLowerPriority");
    let given = pod.at(&["spec", "priority"]).and_then(Value::as_int);
    if let Some(given) = given.filter(|given| *given != value) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {value} from the given PriorityClass name"
        );
        return Err(forbidden(write, pod, &why));
    }
    let given = pod.str_at(&["spec", "preemptionPolicy"]);
    if let Some(given) = given.filter(|given| *given != policy) {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
             priority admission controller computed {policy} from the given PriorityClass name"
        );
        return Err(forbidden(write, pod, &why));
    }
    let spec = pod.object_entry("spec");
    if let Some(class) = class.filter(|_| !spec.contains_key("priorityClassName")) {
        spec.insert("priorityClassName", object::name(class));
    }
    spec.insert("preemptionPolicy", policy);
    spec.insert("priority", value);
    Ok(())
}

/// Restores the priority and preemption policy of a pod if an update omits them. Validation
/// refuses an update that changes them.
fn restore_priority(pod: &mut Value, old: &Value) {
    for member in ["priority", "preemptionPolicy"] {
        let Some(before) = old.at(&["spec", member]).filter(|before| !before.is_null()) else {
            continue;
        };
        let spec = pod.object_entry("spec");
        if spec.get(member).is_none_or(Value::is_null) {
            spec.insert(member, before.clone());
        }
    }
}

/// Returns the class of pods that name none. A race can create several default classes; then the
/// one with the lowest value is used.
fn default_class(classes: &[Arc<Value>]) -> Option<&Value> {
    classes.iter().map(|class| &**class).filter(|class| is_default(class)).min_by_key(|c| value(c))
}

fn is_default(class: &Value) -> bool {
    class.get("globalDefault").and_then(Value::as_bool).unwrap_or(false)
}

fn value(class: &Value) -> i64 {
    class.get("value").and_then(Value::as_int).unwrap_or_default()
}
