//! All of upstream's admission plugins: name, whether it runs by default, and the operations that
//! its handler accepts.

use pintle_registry::admission::Operation;
use pintle_registry::measures::Phase;

use crate::measured::Hook;

/// A plugin.
#[derive(Debug)]
pub(crate) struct Row {
    pub name: &'static str,
    /// True if it runs by default.
    pub usual: bool,
    /// The operations of each phase of admission, as letters: `CUDX` for create, update, delete and
    /// connect.
    handles: [&'static str; 2],
}

const fn usual(name: &'static str, admits: &'static str, judges: &'static str) -> Row {
    Row { name, usual: true, handles: [admits, judges] }
}

const fn other(name: &'static str, admits: &'static str, judges: &'static str) -> Row {
    Row { name, usual: false, handles: [admits, judges] }
}

/// All plugins in upstream's order. Plugins without effect here have no operations.
pub(crate) static ALL: &[Row] = &[
    other("AlwaysAdmit", "", ""),
    other("NamespaceAutoProvision", "", ""),
    usual("NamespaceLifecycle", "CUD", ""),
    other("NamespaceExists", "", "CUD"),
    other("LimitPodHardAntiAffinityTopology", "", "CU"),
    usual("LimitRanger", "CU", "CU"),
    usual("ServiceAccount", "CU", "CU"),
    other("NodeRestriction", "CUD", ""),
    usual("TaintNodesByCondition", "C", ""),
    other("AlwaysPullImages", "CU", "CU"),
    other("ImagePolicyWebhook", "", "CU"),
    usual("PodSecurity", "", "CU"),
    other("PodNodeSelector", "C", "C"),
    usual("Priority", "CUD", "CUD"),
    usual("DefaultTolerationSeconds", "CU", ""),
    other("PodTolerationRestriction", "", ""),
    other("EventRateLimit", "", "CU"),
    other("ExtendedResourceToleration", "CU", ""),
    usual("DefaultStorageClass", "C", ""),
    usual("StorageObjectInUseProtection", "C", ""),
    usual("PodGroupProtection", "C", ""),
    other("OwnerReferencesPermissionEnforcement", "", "CU"),
    usual("PersistentVolumeClaimResize", "", "U"),
    usual("RuntimeClass", "C", "C"),
    usual("CertificateApproval", "", "U"),
    usual("CertificateSigning", "", "U"),
    usual("ClusterTrustBundleAttest", "", "CU"),
    usual("CertificateSubjectRestriction", "", "C"),
    usual("DefaultIngressClass", "C", ""),
    other("DenyServiceExternalIPs", "", "CU"),
    usual("PodTopologyLabels", "C", ""),
    usual("PodGroupWorkloadExists", "", "C"),
    usual("NodeDeclaredFeatureValidator", "", "U"),
    usual("JobValidation", "", "U"),
    usual("PodResizeValidator", "", "U"),
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
    /// Its index in upstream's order.
    pub(crate) fn index(&self) -> usize {
        ALL.iter().position(|row| row.name == self.name).unwrap_or_default()
    }

    /// True if calls of a hook count in upstream's metrics of the plugin, for an operation.
    pub(crate) fn is_timed(&self, hook: Hook, operation: Operation) -> bool {
        let phase = hook.phase();
        let letter = match operation {
            Operation::Create => 'C',
            Operation::Update => 'U',
            Operation::Delete => 'D',
            Operation::Connect => 'X',
        };
        self.handles[phase as usize].contains(letter) && self.hook(phase, operation) == hook
    }

    /// The hook with the plugin's work in a phase. Deletes and connects have no object to mutate.
    fn hook(&self, phase: Phase, operation: Operation) -> Hook {
        let is_new = matches!(operation, Operation::Create | Operation::Update);
        match (phase, self.name) {
            (Phase::Admit, "MutatingAdmissionPolicy" | "MutatingAdmissionWebhook") => {
                Hook::MutateRegistered
            }
            (Phase::Admit, "NamespaceLifecycle" | "NodeRestriction") => Hook::BeforeMutation,
            (Phase::Admit, _) if is_new => Hook::Mutate,
            (Phase::Admit, _) => Hook::BeforeMutation,
            (
                Phase::Validate,
                "ImagePolicyWebhook" | "ValidatingAdmissionPolicy" | "ValidatingAdmissionWebhook",
            ) => Hook::ValidateRegistered,
            (Phase::Validate, "ResourceQuota") => Hook::BeforeCommit,
            (Phase::Validate, _) => Hook::Validate,
        }
    }
}
