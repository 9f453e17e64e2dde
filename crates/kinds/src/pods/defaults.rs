//! The defaults of pods, pod templates and the objects embedded in them (DEF-01).

use pintle_value::{Map, Value};

use super::{image, total};
use crate::defaults::{
    Constant::{Bool, EmptyObject, Int, Text},
    Defaults, Row,
    Row::{Also, At, AtAny, Do, Each, Empty, In, Rounded, Unset},
    add_absent, first_of, is_filled,
};

const GRACE: &str = "terminationGracePeriodSeconds";

/// A Pod. Some rules hold for pods only and not for templates.
pub(crate) const POD: Defaults = &[
    In(
        "spec",
        &[
            Each("containers", &[Do(requests_from_limits)]),
            Each("initContainers", &[Do(requests_from_limits)]),
            Do(total::set_defaults),
            Unset("enableServiceLinks", Bool(true)),
            Do(host_ports),
            Also(POD_SPEC),
            Do(shortest_grace),
        ],
    ),
    At(
        "status",
        &[
            Do(pod_ips),
            Each("initContainerStatuses", ALLOCATED),
            Each("containerStatuses", ALLOCATED),
            Each("ephemeralContainerStatuses", ALLOCATED),
            Also(ALLOCATED),
        ],
    ),
];

/// The resources of a status, of a container or of the pod.
const ALLOCATED: Defaults = &[Rounded("allocatedResources"), At("resources", RESOURCES)];

const RESOURCES: Defaults = &[Rounded("limits"), Rounded("requests")];

/// A PodTemplateSpec, in every type that contains it.
pub(crate) const POD_TEMPLATE: Defaults = &[In("spec", POD_SPEC)];

const POD_SPEC: Defaults = &[
    Do(service_account),
    Empty("dnsPolicy", Text("ClusterFirst")),
    Empty("restartPolicy", Text("Always")),
    Unset("securityContext", EmptyObject),
    Unset(GRACE, Int(30)),
    Rounded("overhead"),
    At("resources", RESOURCES),
    Empty("schedulerName", Text("default-scheduler")),
    Each("volumes", VOLUME),
    Each("initContainers", CONTAINER),
    Each("containers", CONTAINER),
    Each("ephemeralContainers", CONTAINER),
];

const CONTAINER: Defaults = &[
    Do(image_pull_policy),
    Empty("terminationMessagePath", Text("/dev/termination-log")),
    Empty("terminationMessagePolicy", Text("File")),
    Each("ports", &[Empty("protocol", Text("TCP"))]),
    Each(
        "env",
        &[At("valueFrom", &[FIELD_REF, At("fileKeyRef", &[Unset("optional", Bool(false))])])],
    ),
    At("livenessProbe", PROBE),
    At("readinessProbe", PROBE),
    At("startupProbe", PROBE),
    At("lifecycle", &[At("postStart", HANDLER), At("preStop", HANDLER)]),
    At("resources", RESOURCES),
];

const PROBE: Defaults = &[
    Empty("timeoutSeconds", Int(1)),
    Empty("periodSeconds", Int(10)),
    Empty("successThreshold", Int(1)),
    Empty("failureThreshold", Int(3)),
    HTTP_GET,
    At("grpc", &[Unset("service", Text(""))]),
];

const HANDLER: Defaults = &[HTTP_GET];

const HTTP_GET: Row = At("httpGet", &[Empty("path", Text("/")), Empty("scheme", Text("HTTP"))]);

const FIELD_REF: Row = At("fieldRef", &[Empty("apiVersion", Text("v1"))]);

/// Octal 0644.
const FILE_MODE: Row = Unset("defaultMode", Int(0o644));

const DOWNWARD_ITEMS: Row = Each("items", &[FIELD_REF]);

/// A volume, and with it the volume sources that have defaults.
const VOLUME: Defaults = &[
    Do(empty_dir),
    AtAny(&[
        ("configMap", &[FILE_MODE]),
        ("secret", &[FILE_MODE]),
        ("downwardAPI", &[FILE_MODE, DOWNWARD_ITEMS]),
        ("projected", &[FILE_MODE, Each("sources", PROJECTED)]),
        ("image", &[Do(volume_pull_policy)]),
        ("ephemeral", &[At("volumeClaimTemplate", &[In("spec", CLAIM_SPEC)])]),
    ]),
    Also(DISKS),
];

const PROJECTED: Defaults = &[
    At("serviceAccountToken", &[Unset("expirationSeconds", Int(3600))]),
    At("downwardAPI", &[DOWNWARD_ITEMS]),
];

/// The volume sources that pods' volumes and PersistentVolumes share.
pub(crate) const DISKS: Defaults = &[AtAny(&[
    ("hostPath", &[Unset("type", Text(""))]),
    ("iscsi", &[Empty("iscsiInterface", Text("default"))]),
    (
        "rbd",
        &[
            Empty("pool", Text("rbd")),
            Empty("user", Text("admin")),
            Empty("keyring", Text("/etc/ceph/keyring")),
        ],
    ),
    (
        "azureDisk",
        &[
            Unset("cachingMode", Text("ReadWrite")),
            Unset("fsType", Text("ext4")),
            Unset("readOnly", Bool(false)),
            Unset("kind", Text("Shared")),
        ],
    ),
    ("scaleIO", &[Empty("storageMode", Text("ThinProvisioned")), Empty("fsType", Text("xfs"))]),
])];

/// A PersistentVolumeClaimSpec, in every type that contains it.
pub(crate) const CLAIM_SPEC: Defaults =
    &[Unset("volumeMode", Text("Filesystem")), At("resources", RESOURCES)];

/// A PersistentVolumeClaimStatus, in every type that contains it.
pub(crate) const CLAIM_STATUS: Row =
    At("status", &[Rounded("capacity"), Rounded("allocatedResources")]);

/// The labels of a workload's pod template, if it has any.
pub(crate) fn template_labels(workload: &Map) -> Option<Value> {
    let labels = workload.get("spec")?.at(&["template", "metadata", "labels"])?;
    labels.as_object().is_some_and(|labels| !labels.is_empty()).then(|| labels.clone())
}

/// A volume without any source is an empty directory.
fn empty_dir(volume: &mut Map) {
    if !volume.iter().any(|(member, source)| member != "name" && !source.is_null()) {
        volume.insert("emptyDir", Value::object());
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`; both are always shown.
fn service_account(spec: &mut Map) {
    let name = |member| spec.get(member).filter(|_| is_filled(spec, member)).cloned();
    if let Some(account) = name("serviceAccountName").or_else(|| name("serviceAccount")) {
        spec.insert("serviceAccountName", account.clone());
        spec.insert("serviceAccount", account);
    }
}

fn image_pull_policy(container: &mut Map) {
    set_pull_policy(container, "image", "imagePullPolicy");
}

fn volume_pull_policy(image: &mut Map) {
    set_pull_policy(image, "reference", "pullPolicy");
}

fn set_pull_policy(holder: &mut Map, image: &str, policy: &str) {
    if !is_filled(holder, policy) {
        let reference = holder.get(image).and_then(Value::as_str).unwrap_or_default();
        let chosen = image::pull_policy(reference);
        holder.insert(policy, chosen);
    }
}

/// A limit is the default of its request. If there are limits, `requests` is created, even if it
/// stays empty.
fn requests_from_limits(container: &mut Map) {
    let Some(Value::Object(resources)) = container.get_mut("resources") else { return };
    let Some(Value::Object(limits)) = resources.get("limits") else { return };
    let limits = limits.clone();
    add_absent(resources.entry_object("requests"), &limits);
}

/// A pod's grace period cannot be negative (upstream: `Convert_v1_Pod_To_core_Pod`); a template's
/// can.
fn shortest_grace(spec: &mut Map) {
    if spec.get(GRACE).and_then(Value::as_int).is_some_and(|seconds| seconds < 0) {
        spec.insert(GRACE, 1);
    }
}

/// `podIP` is the first of `podIPs`.
fn pod_ips(status: &mut Map) {
    fn ip(item: &Value) -> Option<&str> {
        item.str_at(&["ip"])
    }
    first_of(status, ("podIP", "podIPs"), ip, |ip| Value::from([("ip", ip)]));
}

/// On the host's network a container's port is the host's port.
fn host_ports(spec: &mut Map) {
    if spec.get("hostNetwork").and_then(Value::as_bool) != Some(true) {
        return;
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        let ports = containers
            .into_iter()
            .flatten()
            .filter_map(|container| container.get_mut("ports").and_then(Value::as_array_mut));
        for port in ports.flatten().filter_map(Value::as_object_mut) {
            if let Some(number) = port.get("containerPort").cloned()
                && !is_filled(port, "hostPort")
            {
                port.insert("hostPort", number);
            }
        }
    }
}
