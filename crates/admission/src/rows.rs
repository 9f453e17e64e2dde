//! Every admission plugin of upstream's: its name, whether it runs where nothing is said, and for which
//! writes its handler is.

use pintle_registry::admission::Operation;
use pintle_registry::measures::Phase;

use crate::measured::Question;

/// A plugin.
#[derive(Debug)]
pub(crate) struct Row {
    pub name: &'static str,
    /// Whether it runs if nothing is said of it.
    pub usual: bool,
    /// For which writes it is asked, in each half of admission; each operation is a letter: `CUDX` for
    /// create, update, delete and connect.
    handles: [&'static str; 2],
}

const fn usual(name: &'static str, admits: &'static str, judges: &'static str) -> Row {
    Row { name, usual: true, handles: [admits, judges] }
}

const fn other(name: &'static str, admits: &'static str, judges: &'static str) -> Row {
    Row { name, usual: false, handles: [admits, judges] }
}

/// All plugins in upstream's order. Those that do nothing here handle nothing.
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
    /// Where it is among all.
    pub(crate) fn index(&self) -> usize {
        ALL.iter().position(|row| row.name == self.name).unwrap_or_default()
    }

    /// Whether an answer to a question is the plugin's part in a half of admission, for an operation.
    pub(crate) fn is_timed(&self, question: Question, operation: Operation) -> bool {
        let phase = question.phase();
        let letter = match operation {
            Operation::Create => 'C',
            Operation::Update => 'U',
            Operation::Delete => 'D',
            Operation::Connect => 'X',
        };
        self.handles[phase as usize].contains(letter) && self.answers(phase, operation) == question
    }

    /// The question whose answer is its part. Nobody shapes what is deleted or connected to.
    fn answers(&self, phase: Phase, operation: Operation) -> Question {
        let is_new = matches!(operation, Operation::Create | Operation::Update);
        match (phase, self.name) {
            (Phase::Admit, "MutatingAdmissionPolicy" | "MutatingAdmissionWebhook") => {
                Question::Mutate
            }
            (Phase::Admit, "NamespaceLifecycle" | "NodeRestriction") => Question::Admit,
            (Phase::Admit, _) if is_new => Question::Shape,
            (Phase::Admit, _) => Question::Admit,
            (
                Phase::Validate,
                "ImagePolicyWebhook" | "ValidatingAdmissionPolicy" | "ValidatingAdmissionWebhook",
            ) => Question::Review,
            (Phase::Validate, "ResourceQuota") => Question::Charge,
            (Phase::Validate, _) => Question::Judge,
        }
    }
}
