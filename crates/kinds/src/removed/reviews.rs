//! Reviews, in the versions before v1 (MIG-22, MIG-23). They are answered and not stored. The
//! server reads them in the posted version; v1beta1 of access reviews has `group` instead of
//! `groups`.

use super::{Removed, same};

macro_rules! row {
    ($group:literal, $package:literal, $resource:literal, $kind:literal) => {
        same!($group / "v1beta1", $package, $resource, $kind, $group / "v1", 19..22)
    };
}

pub(super) const ROWS: &[Removed] = &[
    row!("authentication.k8s.io", "authentication", "tokenreviews", "TokenReview"),
    Removed {
        replacement: "",
        life: (30, 33),
        ..row!("authentication.k8s.io", "authentication", "selfsubjectreviews", "SelfSubjectReview")
    },
    Removed {
        replacement: "",
        ..same!(
            "authentication.k8s.io" / "v1alpha1",
            "authentication",
            "selfsubjectreviews",
            "SelfSubjectReview",
            "authentication.k8s.io" / "v1",
            29..32
        )
    },
    row!(
        "authorization.k8s.io",
        "authorization",
        "localsubjectaccessreviews",
        "LocalSubjectAccessReview"
    ),
    row!(
        "authorization.k8s.io",
        "authorization",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview"
    ),
    row!(
        "authorization.k8s.io",
        "authorization",
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview"
    ),
    row!("authorization.k8s.io", "authorization", "subjectaccessreviews", "SubjectAccessReview"),
];
