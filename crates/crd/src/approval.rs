//! The approval of definitions in groups that are reserved for Kubernetes' own APIs.

use pintle_value::Value;

const APPROVED: &str = "api-approved.kubernetes.io";

/// The content of the approval annotation of a definition in a protected group.
pub(crate) enum Approval {
    Approved,
    Bypassed,
    Missing,
    Invalid,
}

/// Whether a group is reserved for APIs that Kubernetes approves.
pub(crate) fn is_protected(group: &str) -> bool {
    let within = |domain: &str| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    within("k8s.io") || within("kubernetes.io")
}

/// The approval state of a definition, and its message.
pub(crate) fn approval_state(crd: &Value) -> (Approval, String) {
    let given = crd.str_at(&["metadata", "annotations", APPROVED]).unwrap_or_default();
    let quoted = pintle_meta::quote::quote;
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let is_url = given.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && rest.split('/').next().is_some_and(|host| !host.is_empty())
    });
    if given.is_empty() {
        let words =
            format!("protected groups must have approval annotation {}, {see}", quoted(APPROVED));
        (Approval::Missing, words)
    } else if given.starts_with("unapproved") {
        (Approval::Bypassed, format!("not approved: {}", quoted(given)))
    } else if is_url {
        (Approval::Approved, format!("approved in {given}"))
    } else {
        let words = format!(
            "protected groups must have approval annotation {} with either a URL or a reason \
             starting with \"unapproved\", {see}",
            quoted(APPROVED)
        );
        (Approval::Invalid, words)
    }
}
