//! The path and the version of each stored kind: a row for each, as in upstream's
//! `test/integration/etcd/data.go`.

use std::collections::BTreeMap;
use std::time::Duration;

use pintle_kinds::RuntimeConfig;
use pintle_layout::{MediaType, Upstream};
use pintle_schema::protobuf;
use pintle_store::{Key, Kind, Layout};
use pintle_value::json;

/// The collection and the item, the path, and the type metadata of the bytes.
const ROWS: &[(&str, &str, &str, &str)] = &[
    (
        "admissionregistration.k8s.io/mutatingadmissionpolicies",
        "a",
        "mutatingadmissionpolicies/a",
        "admissionregistration.k8s.io/v1beta1 MutatingAdmissionPolicy",
    ),
    (
        "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
        "a",
        "mutatingadmissionpolicybindings/a",
        "admissionregistration.k8s.io/v1beta1 MutatingAdmissionPolicyBinding",
    ),
    (
        "admissionregistration.k8s.io/mutatingwebhookconfigurations",
        "a",
        "mutatingwebhookconfigurations/a",
        "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration",
    ),
    (
        "admissionregistration.k8s.io/validatingadmissionpolicies",
        "a",
        "validatingadmissionpolicies/a",
        "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy",
    ),
    (
        "admissionregistration.k8s.io/validatingadmissionpolicybindings",
        "a",
        "validatingadmissionpolicybindings/a",
        "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding",
    ),
    (
        "admissionregistration.k8s.io/validatingwebhookconfigurations",
        "a",
        "validatingwebhookconfigurations/a",
        "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
    ),
    (
        "apiextensions.k8s.io/customresourcedefinitions",
        "a",
        "apiextensions.k8s.io/customresourcedefinitions/a",
        "apiextensions.k8s.io/v1beta1 CustomResourceDefinition",
    ),
    (
        "apiregistration.k8s.io/apiservices",
        "a",
        "apiregistration.k8s.io/apiservices/a",
        "apiregistration.k8s.io/v1 APIService",
    ),
    ("apps/controllerrevisions", "ns/a", "controllerrevisions/ns/a", "apps/v1 ControllerRevision"),
    ("apps/daemonsets", "ns/a", "daemonsets/ns/a", "apps/v1 DaemonSet"),
    ("apps/deployments", "ns/a", "deployments/ns/a", "apps/v1 Deployment"),
    ("apps/replicasets", "ns/a", "replicasets/ns/a", "apps/v1 ReplicaSet"),
    ("apps/statefulsets", "ns/a", "statefulsets/ns/a", "apps/v1 StatefulSet"),
    (
        "autoscaling/horizontalpodautoscalers",
        "ns/a",
        "horizontalpodautoscalers/ns/a",
        "autoscaling/v2 HorizontalPodAutoscaler",
    ),
    ("batch/cronjobs", "ns/a", "cronjobs/ns/a", "batch/v1 CronJob"),
    ("batch/jobs", "ns/a", "jobs/ns/a", "batch/v1 Job"),
    (
        "certificates.k8s.io/certificatesigningrequests",
        "a",
        "certificatesigningrequests/a",
        "certificates.k8s.io/v1 CertificateSigningRequest",
    ),
    (
        "certificates.k8s.io/clustertrustbundles",
        "a",
        "clustertrustbundles/a",
        "certificates.k8s.io/v1beta1 ClusterTrustBundle",
    ),
    (
        "certificates.k8s.io/podcertificaterequests",
        "ns/a",
        "podcertificaterequests/ns/a",
        "certificates.k8s.io/v1beta1 PodCertificateRequest",
    ),
    ("configmaps", "ns/a", "configmaps/ns/a", "v1 ConfigMap"),
    (
        "coordination.k8s.io/leasecandidates",
        "ns/a",
        "leasecandidates/ns/a",
        "coordination.k8s.io/v1beta1 LeaseCandidate",
    ),
    ("coordination.k8s.io/leases", "ns/a", "leases/ns/a", "coordination.k8s.io/v1 Lease"),
    (
        "discovery.k8s.io/endpointslices",
        "ns/a",
        "endpointslices/ns/a",
        "discovery.k8s.io/v1 EndpointSlice",
    ),
    ("endpoints", "ns/a", "services/endpoints/ns/a", "v1 Endpoints"),
    ("events", "ns/a", "events/ns/a", "v1 Event"),
    (
        "flowcontrol.apiserver.k8s.io/flowschemas",
        "a",
        "flowschemas/a",
        "flowcontrol.apiserver.k8s.io/v1 FlowSchema",
    ),
    (
        "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
        "a",
        "prioritylevelconfigurations/a",
        "flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration",
    ),
    (
        "internal.apiserver.k8s.io/storageversions",
        "a",
        "storageversions/a",
        "internal.apiserver.k8s.io/v1alpha1 StorageVersion",
    ),
    ("limitranges", "ns/a", "limitranges/ns/a", "v1 LimitRange"),
    ("masterleases", "a", "masterleases/a", "v1 Endpoints"),
    ("namespaces", "a", "namespaces/a", "v1 Namespace"),
    (
        "networking.k8s.io/ingressclasses",
        "a",
        "ingressclasses/a",
        "networking.k8s.io/v1 IngressClass",
    ),
    ("networking.k8s.io/ingresses", "ns/a", "ingress/ns/a", "networking.k8s.io/v1 Ingress"),
    ("networking.k8s.io/ipaddresses", "a", "ipaddresses/a", "networking.k8s.io/v1 IPAddress"),
    (
        "networking.k8s.io/networkpolicies",
        "ns/a",
        "networkpolicies/ns/a",
        "networking.k8s.io/v1 NetworkPolicy",
    ),
    ("networking.k8s.io/servicecidrs", "a", "servicecidrs/a", "networking.k8s.io/v1 ServiceCIDR"),
    ("node.k8s.io/runtimeclasses", "a", "runtimeclasses/a", "node.k8s.io/v1 RuntimeClass"),
    ("nodes", "a", "minions/a", "v1 Node"),
    ("peerserverleases", "a", "peerserverleases/a", "v1 Endpoints"),
    ("persistentvolumeclaims", "ns/a", "persistentvolumeclaims/ns/a", "v1 PersistentVolumeClaim"),
    ("persistentvolumes", "a", "persistentvolumes/a", "v1 PersistentVolume"),
    ("pods", "ns/a", "pods/ns/a", "v1 Pod"),
    ("podtemplates", "ns/a", "podtemplates/ns/a", "v1 PodTemplate"),
    (
        "policy/poddisruptionbudgets",
        "ns/a",
        "poddisruptionbudgets/ns/a",
        "policy/v1 PodDisruptionBudget",
    ),
    ("ranges", "a", "ranges/a", "v1 RangeAllocation"),
    (
        "rbac.authorization.k8s.io/clusterrolebindings",
        "a",
        "clusterrolebindings/a",
        "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
    ),
    (
        "rbac.authorization.k8s.io/clusterroles",
        "a",
        "clusterroles/a",
        "rbac.authorization.k8s.io/v1 ClusterRole",
    ),
    (
        "rbac.authorization.k8s.io/rolebindings",
        "ns/a",
        "rolebindings/ns/a",
        "rbac.authorization.k8s.io/v1 RoleBinding",
    ),
    ("rbac.authorization.k8s.io/roles", "ns/a", "roles/ns/a", "rbac.authorization.k8s.io/v1 Role"),
    ("replicationcontrollers", "ns/a", "controllers/ns/a", "v1 ReplicationController"),
    ("resource.k8s.io/deviceclasses", "a", "deviceclasses/a", "resource.k8s.io/v1 DeviceClass"),
    (
        "resource.k8s.io/devicetaintrules",
        "a",
        "devicetaintrules/a",
        "resource.k8s.io/v1alpha3 DeviceTaintRule",
    ),
    (
        "resource.k8s.io/resourceclaims",
        "ns/a",
        "resourceclaims/ns/a",
        "resource.k8s.io/v1 ResourceClaim",
    ),
    (
        "resource.k8s.io/resourceclaimtemplates",
        "ns/a",
        "resourceclaimtemplates/ns/a",
        "resource.k8s.io/v1 ResourceClaimTemplate",
    ),
    (
        "resource.k8s.io/resourcepoolstatusrequests",
        "a",
        "resourcepoolstatusrequests/a",
        "resource.k8s.io/v1alpha3 ResourcePoolStatusRequest",
    ),
    ("resource.k8s.io/resourceslices", "a", "resourceslices/a", "resource.k8s.io/v1 ResourceSlice"),
    ("resourcequotas", "ns/a", "resourcequotas/ns/a", "v1 ResourceQuota"),
    (
        "scheduling.k8s.io/podgroups",
        "ns/a",
        "podgroups/ns/a",
        "scheduling.k8s.io/v1alpha2 PodGroup",
    ),
    (
        "scheduling.k8s.io/priorityclasses",
        "a",
        "priorityclasses/a",
        "scheduling.k8s.io/v1 PriorityClass",
    ),
    (
        "scheduling.k8s.io/workloads",
        "ns/a",
        "workloads/ns/a",
        "scheduling.k8s.io/v1alpha2 Workload",
    ),
    ("secrets", "ns/a", "secrets/ns/a", "v1 Secret"),
    ("serviceaccounts", "ns/a", "serviceaccounts/ns/a", "v1 ServiceAccount"),
    ("services", "ns/a", "services/specs/ns/a", "v1 Service"),
    ("storage.k8s.io/csidrivers", "a", "csidrivers/a", "storage.k8s.io/v1 CSIDriver"),
    ("storage.k8s.io/csinodes", "a", "csinodes/a", "storage.k8s.io/v1 CSINode"),
    (
        "storage.k8s.io/csistoragecapacities",
        "ns/a",
        "csistoragecapacities/ns/a",
        "storage.k8s.io/v1 CSIStorageCapacity",
    ),
    ("storage.k8s.io/storageclasses", "a", "storageclasses/a", "storage.k8s.io/v1 StorageClass"),
    (
        "storage.k8s.io/volumeattachments",
        "a",
        "volumeattachments/a",
        "storage.k8s.io/v1 VolumeAttachment",
    ),
    (
        "storage.k8s.io/volumeattributesclasses",
        "a",
        "volumeattributesclasses/a",
        "storage.k8s.io/v1 VolumeAttributesClass",
    ),
    (
        "storagemigration.k8s.io/storageversionmigrations",
        "a",
        "storageversionmigrations/a",
        "storagemigration.k8s.io/v1beta1 StorageVersionMigration",
    ),
    ("stable.example.com/crontabs", "ns/a", "stable.example.com/crontabs/ns/a", "x/v1 X"),
    ("stable.example.com/crontabs", "a", "stable.example.com/crontabs/a", "x/v1 X"),
];

/// Paths that belong to no collection.
const FOREIGN: &[&str] = &[
    "",
    "/",
    "health",
    "pods",
    "pods/",
    "pods/a",
    "pods//a",
    "pods/ns/",
    "pods/ns/a/b",
    "minions/a/b",
    "nodes/a",
    "services/specs",
    "services/others/ns/a",
    "ranges/",
    "apiextensions.k8s.io/customresourcedefinitions/",
    "apps/deployments/ns/a",
    "networking.k8s.io/ingresses/ns/a",
    "example.com/things",
    "example.com/things/",
    "example.com//a",
    "example.com/things/a/b/c",
    "pintle/pods/ns/a",
    "pintle/x/",
];

fn layout() -> Upstream {
    Upstream::new(&RuntimeConfig::default(), MediaType::Protobuf, Duration::from_secs(3600))
}

fn key(collection: &str, item: &str) -> Key {
    Key { collection: collection.into(), item: item.into() }
}

#[test]
fn paths_and_stored_versions_match_upstream() {
    let layout = layout();
    for (collection, item, path, stored) in ROWS {
        let key = key(collection, item);
        assert_eq!(layout.path(&key), *path);
        assert_eq!(layout.key(path), Some(key.clone()), "{path}");
        let (api_version, kind) = stored.split_once(' ').expect("a version and a kind");
        // The registry encodes a definition as v1, and other objects in the stored form.
        let own_version =
            api_version.replace("apiextensions.k8s.io/v1beta1", "apiextensions.k8s.io/v1");
        let object = format!(r#"{{"kind":"{kind}","apiVersion":"{own_version}","metadata":{{}}}}"#);
        let stored =
            layout.encode(&key, object.as_bytes(), Kind::Created).expect("it is an object");
        let found = if protobuf::is_message(&stored) {
            protobuf::type_meta(&stored).expect("an envelope")
        } else {
            let tree = json::parse(&stored).expect("JSON");
            let member = |name: &str| tree.str_at(&[name]).unwrap_or_default().to_owned();
            (member("apiVersion"), member("kind"))
        };
        assert_eq!((found.0.as_str(), found.1.as_str()), (api_version, kind), "{path}");
    }
}

#[test]
fn every_kind_has_a_row_and_matches_discovery() {
    let rows: BTreeMap<&str, &str> = ROWS.iter().map(|(name, _, _, kind)| (*name, *kind)).collect();
    for definition in pintle_kinds::stored(&RuntimeConfig::default()) {
        let storage = definition.storage.expect("it is stored");
        let kind = &definition.storage_kind;
        let shown = format!("{} {}", kind.group_version(), kind.kind);
        assert_eq!(rows.get(&*storage.collection), Some(&&*shown), "{}", storage.collection);
    }
}

#[test]
fn foreign_paths_belong_to_no_collection() {
    let layout = layout();
    for path in FOREIGN {
        assert_eq!(layout.key(path), None, "{path:?}");
    }
}

#[test]
fn collections_without_upstream_counterpart_have_their_own_prefix() {
    let (layout, key) = (layout(), key("servicenodeports", "30000"));
    assert_eq!(layout.path(&key), "pintle/servicenodeports/30000");
    assert_eq!(layout.key("pintle/servicenodeports/30000"), Some(key.clone()));
    assert_eq!(&*layout.encode(&key, b"\"a\"", Kind::Created).expect("any bytes"), b"\"a\"");
}

#[test]
fn events_and_server_leases_expire() {
    let layout = layout();
    let seconds = |collection: &str| layout.lifetime(&key(collection, "a")).map(|d| d.as_secs());
    assert_eq!(seconds("events"), Some(3600));
    assert_eq!(seconds("masterleases"), Some(15));
    assert_eq!(seconds("pods"), None);
}
