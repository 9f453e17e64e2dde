//! All of upstream's admission plugins: name, whether it runs by default, and the operations that
//! its handler accepts.

use pintle_meta::GroupVersionResource;
use pintle_registry::admission::{Hook, Hooks, Operation};
use pintle_registry::measures::Phase;

/// A plugin.
#[derive(Debug)]
pub(crate) struct Row {
    pub name: &'static str,
    /// Whether it runs by default.
    pub usual: bool,
    /// The operations of each phase of admission, as letters: `CUDX` for create, update, delete and
    /// connect.
    handles: [&'static str; 2],
    /// The resources that the plugin handles, by group and name; empty if it handles all. For other
    /// resources the plugin does nothing, so its duration is recorded as zero.
    resources: &'static [(&'static str, &'static str)],
}

const fn usual(name: &'static str, admits: &'static str, judges: &'static str) -> Row {
    Row { name, usual: true, handles: [admits, judges], resources: &[] }
}

const fn other(name: &'static str, admits: &'static str, judges: &'static str) -> Row {
    Row { name, usual: false, handles: [admits, judges], resources: &[] }
}

const PODS: &[(&str, &str)] = &[("", "pods")];
const STORAGE: &[(&str, &str)] = &[
    ("", "persistentvolumes"),
    ("", "persistentvolumeclaims"),
    ("storage.k8s.io", "volumeattributesclasses"),
];
const REQUESTS: &[(&str, &str)] = &[("certificates.k8s.io", "certificatesigningrequests")];

/// All plugins in upstream's order. Plugins without effect here have no operations.
pub(crate) static ALL: &[Row] = &[
    other("AlwaysAdmit", "", ""),
    other("NamespaceAutoProvision", "", ""),
    usual("NamespaceLifecycle", "CUD", ""),
    other("NamespaceExists", "", "CUD"),
    other("LimitPodHardAntiAffinityTopology", "", "CU").of(PODS),
    usual("LimitRanger", "CU", "CU").of(&[("", "pods"), ("", "persistentvolumeclaims")]),
    usual("ServiceAccount", "CU", "CU").of(PODS),
    other("NodeRestriction", "CUD", ""),
    usual("TaintNodesByCondition", "C", "").of(&[("", "nodes")]),
    other("AlwaysPullImages", "CU", "CU").of(PODS),
    other("ImagePolicyWebhook", "", "CU").of(PODS),
    usual("PodSecurity", "", "CU"),
    other("PodNodeSelector", "C", "C").of(PODS),
    usual("Priority", "CUD", "CUD").of(&[("", "pods"), ("scheduling.k8s.io", "priorityclasses")]),
    usual("DefaultTolerationSeconds", "CU", "").of(PODS),
    other("PodTolerationRestriction", "", ""),
    other("EventRateLimit", "", "CU").of(&[("", "events")]),
    other("ExtendedResourceToleration", "CU", "").of(PODS),
    usual("DefaultStorageClass", "C", "").of(&[("", "persistentvolumeclaims")]),
    usual("StorageObjectInUseProtection", "C", "").of(STORAGE),
    usual("PodGroupProtection", "C", "").of(&[("scheduling.k8s.io", "podgroups")]),
    other("OwnerReferencesPermissionEnforcement", "", "CU"),
    usual("PersistentVolumeClaimResize", "", "U").of(&[("", "persistentvolumeclaims")]),
    usual("RuntimeClass", "C", "C").of(PODS),
    usual("CertificateApproval", "", "U").of(REQUESTS),
    usual("CertificateSigning", "", "U").of(REQUESTS),
    usual("ClusterTrustBundleAttest", "", "CU")
        .of(&[("certificates.k8s.io", "clustertrustbundles")]),
    usual("CertificateSubjectRestriction", "", "C").of(REQUESTS),
    usual("DefaultIngressClass", "C", "").of(&[("networking.k8s.io", "ingresses")]),
    other("DenyServiceExternalIPs", "", "CU").of(&[("", "services")]),
    usual("PodTopologyLabels", "C", "").of(PODS),
    usual("PodGroupWorkloadExists", "", "C").of(&[("scheduling.k8s.io", "podgroups")]),
    usual("NodeDeclaredFeatureValidator", "", "U").of(PODS),
    usual("JobValidation", "", "U").of(&[("batch", "jobs")]),
    usual("PodResizeValidator", "", "U").of(PODS),
    usual("MutatingAdmissionPolicy", "CUX", ""),
    usual("MutatingAdmissionWebhook", "CUDX", ""),
    usual("ValidatingAdmissionPolicy", "", "CUDX"),
    usual("ValidatingAdmissionWebhook", "", "CUDX"),
    usual("ResourceQuota", "", "CU"),
    other("AlwaysDeny", "CUDX", "CUDX"),
];

/// The row of a plugin.
pub(crate) fn row(name: &str) -> Option<&'static Row> {
    ALL.iter().find(|row| row.name == name)
}

impl Row {
    /// Limits the work of the row's plugin to some resources.
    const fn of(self, resources: &'static [(&'static str, &'static str)]) -> Self {
        Self { resources, ..self }
    }

    /// Whether the plugin may do something when this resource is written.
    pub(crate) fn concerns(&self, of: &GroupVersionResource) -> bool {
        let is = |(group, resource): &(&str, &str)| of.resource == *resource && of.group == *group;
        self.resources.is_empty() || self.resources.iter().any(is)
    }

    /// The plugin's index in upstream's order.
    pub(crate) fn index(&self) -> usize {
        ALL.iter().position(|row| row.name == self.name).unwrap_or_default()
    }

    /// Returns the hook whose calls upstream's metrics count, for a plugin with these hooks, a
    /// phase and an operation. It is the hook in which the plugin works, or, if the plugin has none
    /// in this phase, a hook that is called for each such write. `None` if the plugin's handler
    /// does not accept the operation.
    pub(crate) fn timed(&self, phase: Phase, operation: Operation, hooks: Hooks) -> Option<Hook> {
        let letter = match operation {
            Operation::Create => 'C',
            Operation::Update => 'U',
            Operation::Delete => 'D',
            Operation::Connect => 'X',
        };
        if !self.handles[phase as usize].contains(letter) {
            return None;
        }
        // Deletes and connects have no object to mutate.
        let is_new = matches!(operation, Operation::Create | Operation::Update);
        let (work, other): (&[Hook], _) = match phase {
            Phase::Admit if is_new => {
                (&[Hook::Mutate, Hook::MutateRegistered, Hook::BeforeMutation], Hook::Mutate)
            }
            Phase::Admit => (&[Hook::MutateRegistered], Hook::BeforeMutation),
            Phase::Validate => {
                (&[Hook::Validate, Hook::ValidateRegistered, Hook::BeforeCommit], Hook::Validate)
            }
        };
        Some(work.iter().copied().find(|hook| hooks.has(*hook)).unwrap_or(other))
    }
}
