//! PodSecurityPolicies (MIG-05, MIG-41). They are stored and validated but have no effect, because
//! their admission plugin was removed. Their last version was `policy/v1beta1` (upstream:
//! `pkg/apis/policy` of v1.24).

mod rules;

use super::{Gone, Removed, same};
use crate::{
    defaults::{
        Constant::Bool,
        Defaults,
        Row::{In, Unset},
        set,
    },
    generated::{ALL, Gvk, Resource},
    kind::kind,
    strategy::{PLAIN, Strategy},
};

pub(super) const ROWS: &[Removed] = &[
    Removed {
        replacement: "",
        ..same!(
            "policy" / "v1beta1",
            "policy",
            "podsecuritypolicies",
            "PodSecurityPolicy",
            "policy" / "v1beta1",
            21..25
        )
    },
    Removed {
        replacement: "policy/v1beta1 PodSecurityPolicy",
        ..same!(
            "extensions" / "v1beta1",
            "extensions",
            "podsecuritypolicies",
            "PodSecurityPolicy",
            "policy" / "v1beta1",
            10..16
        )
    },
];

pub(super) const POLICIES: Gone = Gone {
    resource: Resource {
        group: "policy",
        version: "v1beta1",
        plural: "podsecuritypolicies",
        singular: "podsecuritypolicy",
        kind: "PodSecurityPolicy",
        list_kind: "PodSecurityPolicyList",
        namespaced: false,
        verbs: ALL,
        short_names: &["psp"],
        categories: &[],
        subresources: &[],
        type_name: "io.k8s.api.policy.v1beta1.PodSecurityPolicy",
        storage: Some(Gvk { group: "policy", version: "v1beta1", kind: "PodSecurityPolicy" }),
        on: false,
    },
    kind: kind("policy", "podsecuritypolicies", POLICY),
};

const POLICY: Strategy = Strategy {
    delete_returns_object: true,
    default: |policy| set(policy, DEFAULTS),
    validate: |policy, _| rules::errors(policy),
    warnings: |_, _| vec![WITHOUT_EFFECT.to_owned()],
    ..PLAIN
};

/// The warning for each write of a policy.
const WITHOUT_EFFECT: &str = "PodSecurityPolicy has no effect: no admission plugin enforces it; use Pod \
                              Security admission or an admission webhook";

const DEFAULTS: Defaults = &[In("spec", &[Unset("allowPrivilegeEscalation", Bool(true))])];
