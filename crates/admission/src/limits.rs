//! LimitRanger: checks the resources of containers, pods and claims against their namespace's
//! limits, and sets default resources.

mod defaults;
mod group;
#[cfg(test)]
mod tests;
mod violations;

use pintle_meta::{Status, field, object};
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation};
use pintle_registry::{Object, Registry};
use pintle_value::{Map, Path, Value};

use crate::known::Known;
use crate::pods::{Amounts, amounts, items};
use crate::{creates, forbidden, is_at, is_of};
use defaults::Defaults;
use group::PodResources;
use violations::Violations;

/// The plugin.
pub(crate) struct LimitRanger {
    ranges: Known<Vec<Limit>>,
}

/// One item of a LimitRange.
#[derive(Debug)]
struct Limit {
    /// The type of objects that the item limits: `Pod`, `Container`, `PersistentVolumeClaim`.
    of: String,
    min: Amounts,
    max: Amounts,
    ratio: Amounts,
    default: Map,
    default_request: Map,
}

impl Default for LimitRanger {
    fn default() -> Self {
        Self {
            ranges: Known::new("", "limitranges", |range: &Object| Ok(Limit::all(&range.tree()?))),
        }
    }
}

impl Admission for LimitRanger {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Mutate, Hook::Validate])
    }

    fn mutate(
        &self,
        write: &Attributes<'_>,
        object: &mut Value,
        registry: &Registry,
    ) -> Result<(), Status> {
        if !limits_pod(write) || is_terminating(write) {
            return Ok(());
        }
        let ranges = self.ranges.within(write.namespace, registry)?;
        let mut defaults = Defaults::default();
        for range in &ranges {
            if defaults.set(object, range).is_err() {
                let error = field::Error::too_long(
                    &Path::new("metadata").field("annotations"),
                    defaults::ANNOTATIONS_BYTES_MAX,
                );
                let kind = write.resource.group_kind();
                return Err(Status::invalid(&kind, object::name(object), &[error]));
            }
        }
        Ok(())
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        let is_claim =
            write.operation != Operation::Delete && is_of(write, "", "persistentvolumeclaims");
        let is_limited = (is_claim || limits_pod(write)) && !is_terminating(write);
        let Some(object) = write.object.filter(|_| is_limited) else { return Ok(()) };
        let ranges = self.ranges.within(write.namespace, registry)?;
        if ranges.is_empty() {
            return Ok(());
        }
        let pod = PodResources::of(object);
        for range in ranges {
            let violations = if is_claim {
                Violations::of_claim(object, &range)
            } else {
                Violations::of_pod(&pod, &range)
            };
            if let Some(why) = violations.text() {
                return Err(forbidden(write, object, &why));
            }
        }
        Ok(())
    }
}

/// True for a write that sets the resources of a pod's containers: a create or a resize. No other
/// update can change them.
fn limits_pod(write: &Attributes<'_>) -> bool {
    creates(write, "", "pods")
        || write.operation == Operation::Update && is_at(write, "", "pods", "resize")
}

fn is_terminating(write: &Attributes<'_>) -> bool {
    write.old().is_some_and(object::is_terminating)
}

impl Limit {
    fn all(range: &Value) -> Vec<Self> {
        items(range, &["spec", "limits"]).iter().map(Self::of).collect()
    }

    fn of(limit: &Value) -> Self {
        let map =
            |member| limit.get(member).and_then(Value::as_object).cloned().unwrap_or_default();
        Self {
            of: limit.str_at(&["type"]).unwrap_or_default().to_owned(),
            min: amounts(limit.get("min")),
            max: amounts(limit.get("max")),
            ratio: amounts(limit.get("maxLimitRequestRatio")),
            default: map("default"),
            default_request: map("defaultRequest"),
        }
    }
}
