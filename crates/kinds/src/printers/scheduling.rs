//! scheduling.k8s.io, policy and node.k8s.io.

use pintle_value::Value;

use super::column::Cell::{BoolOr, By, Int, JoinedOr, Text};
use super::column::Description::{Field, Words};
use super::column::{AGE, NAME, NAME_AND_AGE, boolean, integer, string};
use super::read::{at, bool_at, has, is_true, items_at, str_at};
use super::{Columns, Kind};

const GROUP: &str = "scheduling.k8s.io";

pub(super) const KINDS: &[Kind] = &[
    Kind::new("node.k8s.io", "RuntimeClass", RUNTIME_CLASS),
    Kind::new("policy", "PodDisruptionBudget", POD_DISRUPTION_BUDGET),
    Kind::new("policy", "PodSecurityPolicy", POD_SECURITY_POLICY),
    Kind::new(GROUP, "PodGroup", POD_GROUP),
    Kind::new(GROUP, "PriorityClass", PRIORITY_CLASS),
    Kind::new(GROUP, "Workload", NAME_AND_AGE),
];

const RUNTIME_CLASS: Columns = &[NAME, string("Handler", Text("handler"), Words("")), AGE];

const POD_DISRUPTION_BUDGET: Columns = &[
    NAME,
    string(
        "Min Available",
        By(|b| limit(b, "spec.minAvailable")),
        Words("The minimum number of pods that must be available."),
    ),
    string(
        "Max Unavailable",
        By(|b| limit(b, "spec.maxUnavailable")),
        Words("The maximum number of pods that may be unavailable."),
    ),
    integer(
        "Allowed Disruptions",
        Int("status.disruptionsAllowed"),
        Words("Calculated number of pods that may be disrupted at this time."),
    ),
    AGE,
];

/// The columns are those of v1.24.
const POD_SECURITY_POLICY: Columns = &[
    NAME,
    string(
        "Priv",
        By(|policy| bool_at(policy, "spec.privileged").unwrap_or(false).to_string().into()),
        Words("privileged determines if a pod can request to be run as privileged."),
    ),
    string(
        "Caps",
        JoinedOr("spec.allowedCapabilities", ""),
        Words(
            "allowedCapabilities is a list of capabilities that can be requested to add to the \
             container. Capabilities in this field may be added at the pod author's discretion. \
             You must not list a capability in both allowedCapabilities and \
             requiredDropCapabilities.",
        ),
    ),
    string(
        "SELinux",
        Text("spec.seLinux.rule"),
        Words("seLinux is the strategy that will dictate the allowable labels that may be set."),
    ),
    string(
        "RunAsUser",
        Text("spec.runAsUser.rule"),
        Words(
            "runAsUser is the strategy that will dictate the allowable RunAsUser values that may \
             be set.",
        ),
    ),
    string(
        "FsGroup",
        Text("spec.fsGroup.rule"),
        Words(
            "fsGroup is the strategy that will dictate what fs group is used by the \
             SecurityContext.",
        ),
    ),
    string(
        "SupGroup",
        Text("spec.supplementalGroups.rule"),
        Words(
            "supplementalGroups is the strategy that will dictate what supplemental groups are \
             used by the SecurityContext.",
        ),
    ),
    string(
        "ReadOnlyRootFs",
        BoolOr("spec.readOnlyRootFilesystem", false),
        Words(
            "readOnlyRootFilesystem when set to true will force containers to run with a read \
             only root file system.  If the container specifically requests to run with a \
             non-read only root file system the PSP should deny the pod. If set to false the \
             container may run with a read only root file system if it wishes but it will not be \
             forced to.",
        ),
    ),
    string(
        "Volumes",
        JoinedOr("spec.volumes", ""),
        Words(
            "volumes is an allowlist of volume plugins. Empty indicates that no volumes may be \
             used. To allow all volumes you may use '*'.",
        ),
    ),
];

const POD_GROUP: Columns = &[
    NAME,
    string("Policy", By(policy), Field("scheduling.v1alpha2.PodGroupSpec", "schedulingPolicy")),
    string("Workload", By(workload), Words("Name of the referenced Workload object")),
    string("Status", By(status), Words("Status of the PodGroup")),
    AGE,
];

const PRIORITY_CLASS: Columns = &[
    NAME,
    integer("Value", Int("value"), Field("scheduling.v1.PriorityClass", "value")),
    boolean(
        "Global-Default",
        BoolOr("globalDefault", false),
        Field("scheduling.v1.PriorityClass", "globalDefault"),
    ),
    AGE,
    string(
        "PreemptionPolicy",
        Text("preemptionPolicy"),
        Field("scheduling.v1.PriorityClass", "preemptionPolicy"),
    ),
];

/// A number or a percentage, as it was written.
fn limit(budget: &Value, path: &str) -> Value {
    match at(budget, path) {
        Some(Value::Int(number)) => number.to_string().into(),
        Some(Value::String(text)) => text.clone().into(),
        _ => "N/A".into(),
    }
}

fn policy(group: &Value) -> Value {
    if has(group, "spec.schedulingPolicy.gang") { "Gang" } else { "Basic" }.into()
}

fn workload(group: &Value) -> Value {
    match at(group, "spec.podGroupTemplateRef") {
        Some(reference) => str_at(reference, "workload.workloadName").into(),
        None => "<none>".into(),
    }
}

fn status(group: &Value) -> Value {
    let mut status = "Pending";
    let mut disrupted = None;
    for condition in items_at(group, "status.conditions") {
        match str_at(condition, "type") {
            "PodGroupScheduled" if is_true(condition) => status = "Scheduled",
            "PodGroupScheduled" => status = "Unschedulable",
            "DisruptionTarget" => disrupted = Some(str_at(condition, "reason")),
            _ => {}
        }
    }
    disrupted.unwrap_or(status).into()
}
