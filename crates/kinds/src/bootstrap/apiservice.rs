//! The APIServices of the built-in groups, and their priorities.

use pintle_value::{Map, Value};

use super::{BootstrapObject, Reconcile, object};
use crate::{RuntimeConfig, generated, removed};

const GROUP: &str = "apiregistration.k8s.io";

/// How a group and a version rank among the others; discovery lists them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority {
    /// A group with a higher priority comes earlier.
    pub group: u32,
    /// Within the group, a version with a higher priority comes earlier.
    pub version: u32,
}

/// The priority of a built-in group version; `None` if upstream's table does not have it.
pub fn priority(group: &str, version: &str) -> Option<Priority> {
    let row = PRIORITIES.iter().find(|row| (row.0, row.1) == (group, version))?;
    Some(Priority { group: row.2, version: row.3 })
}

/// The priorities of a version that v1.36 no longer serves are those of the last release that had
/// it.
const PRIORITIES: &[(&str, &str, u32, u32)] = &[
    ("", "v1", 18000, 1),
    ("apps", "v1", 17800, 15),
    ("apps", "v1beta2", 17800, 9),
    ("apps", "v1beta1", 17800, 1),
    ("events.k8s.io", "v1", 17750, 15),
    ("events.k8s.io", "v1beta1", 17750, 5),
    ("authentication.k8s.io", "v1", 17700, 15),
    ("authentication.k8s.io", "v1beta1", 17700, 9),
    ("authorization.k8s.io", "v1", 17600, 15),
    ("authorization.k8s.io", "v1beta1", 17600, 9),
    ("autoscaling", "v2", 17500, 30),
    ("autoscaling", "v1", 17500, 15),
    ("autoscaling", "v2beta1", 17500, 9),
    ("autoscaling", "v2beta2", 17500, 1),
    ("batch", "v1", 17400, 15),
    ("batch", "v1beta1", 17400, 9),
    ("certificates.k8s.io", "v1", 17300, 15),
    ("certificates.k8s.io", "v1beta1", 17300, 9),
    ("certificates.k8s.io", "v1alpha1", 17300, 1),
    ("networking.k8s.io", "v1", 17200, 15),
    ("networking.k8s.io", "v1beta1", 17200, 9),
    ("extensions", "v1beta1", 17150, 1),
    ("policy", "v1", 17100, 15),
    ("policy", "v1beta1", 17100, 9),
    ("rbac.authorization.k8s.io", "v1", 17000, 15),
    ("rbac.authorization.k8s.io", "v1beta1", 17000, 12),
    ("rbac.authorization.k8s.io", "v1alpha1", 17000, 9),
    ("storage.k8s.io", "v1", 16800, 15),
    ("storage.k8s.io", "v1beta1", 16800, 9),
    ("storage.k8s.io", "v1alpha1", 16800, 1),
    ("admissionregistration.k8s.io", "v1", 16700, 15),
    ("admissionregistration.k8s.io", "v1beta1", 16700, 12),
    ("admissionregistration.k8s.io", "v1alpha1", 16700, 9),
    ("apiextensions.k8s.io", "v1", 16700, 15),
    ("apiextensions.k8s.io", "v1beta1", 16700, 9),
    ("scheduling.k8s.io", "v1", 16600, 15),
    ("scheduling.k8s.io", "v1beta1", 16600, 12),
    ("scheduling.k8s.io", "v1alpha1", 16600, 9),
    ("scheduling.k8s.io", "v1alpha2", 16600, 2),
    ("coordination.k8s.io", "v1", 16500, 15),
    ("coordination.k8s.io", "v1beta1", 16500, 13),
    ("coordination.k8s.io", "v1alpha2", 16500, 12),
    ("node.k8s.io", "v1", 16300, 15),
    ("node.k8s.io", "v1beta1", 16300, 9),
    ("node.k8s.io", "v1alpha1", 16300, 1),
    ("discovery.k8s.io", "v1", 16200, 15),
    ("discovery.k8s.io", "v1beta1", 16200, 12),
    ("resource.k8s.io", "v1", 16200, 21),
    ("resource.k8s.io", "v1beta2", 16200, 15),
    ("resource.k8s.io", "v1beta1", 16200, 9),
    ("resource.k8s.io", "v1alpha3", 16200, 1),
    ("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
    ("flowcontrol.apiserver.k8s.io", "v1beta3", 16100, 18),
    ("flowcontrol.apiserver.k8s.io", "v1beta2", 16100, 15),
    ("flowcontrol.apiserver.k8s.io", "v1beta1", 16100, 12),
    ("internal.apiserver.k8s.io", "v1alpha1", 16000, 9),
    ("storagemigration.k8s.io", "v1beta1", 15800, 9),
];

/// Returns an APIService for each built-in group version of which a resource is served.
pub(super) fn objects(config: &RuntimeConfig) -> Vec<BootstrapObject> {
    let is_served = |group: &str, version: &str| {
        generated::resources().iter().any(|row| {
            (row.group, row.version) == (group, version)
                && config.serves(row.group, row.version, row.plural, row.on)
        }) || removed::all().any(|row| {
            (row.group, row.form.version) == (group, version)
                && config.serves_removed(row.group, row.form.version, row.resource)
        })
    };
    let served = PRIORITIES.iter().filter(|row| is_served(row.0, row.1));
    served.map(|row| local(row.0, row.1, row.2, row.3)).collect()
}

fn local(group: &str, version: &str, group_priority: u32, priority: u32) -> BootstrapObject {
    let priority = Priority { group: group_priority, version: priority };
    let made = service(group, version, priority, "onstart");
    BootstrapObject::new([GROUP, "v1", "apiservices"], made, Reconcile::Exactly)
}

/// The label of the APIServices that the server manages.
pub const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// The priority that upstream gives to versions of custom resources.
const CUSTOM: Priority = Priority { group: 1000, version: 100 };

/// The APIService of a group version of custom resources; `None` if the group version is built in
/// or the group is empty.
pub fn custom_api_service(group: &str, version: &str) -> Option<Value> {
    (priority(group, version).is_none() && !group.is_empty())
        .then(|| service(group, version, CUSTOM, "true"))
}

fn service(group: &str, version: &str, priority: Priority, managed: &str) -> Value {
    let mut spec = Map::new();
    if !group.is_empty() {
        spec.insert("group", group);
    }
    spec.insert("version", version);
    spec.insert("groupPriorityMinimum", i64::from(priority.group));
    spec.insert("versionPriority", i64::from(priority.version));
    let name = format!("{version}.{group}");
    let mut made = object("apiregistration.k8s.io/v1", "APIService", "", &name);
    made.entry_object("metadata").insert("labels", Value::from([(AUTOMANAGED, managed)]));
    made.insert("spec", spec);
    Value::Object(made)
}
