//! Authorization checks. Only expressions of admission have something to check with; elsewhere these
//! are names that are taken.

use super::planned;
use crate::functions::Guard::Typed;
use crate::functions::Row;

pub(super) const FUNCTIONS: &[Row] = &[
    (
        "path",
        Typed,
        planned,
        &[(
            "authorizer_path",
            ".kubernetes.authorization.Authorizer, string -> kubernetes.authorization.PathCheck",
        )],
    ),
    (
        "group",
        Typed,
        planned,
        &[(
            "authorizer_group",
            ".kubernetes.authorization.Authorizer, string -> kubernetes.authorization.GroupCheck",
        )],
    ),
    (
        "serviceAccount",
        Typed,
        planned,
        &[(
            "authorizer_serviceaccount",
            ".kubernetes.authorization.Authorizer, string, string -> kubernetes.authorization.Authorizer",
        )],
    ),
    (
        "resource",
        Typed,
        planned,
        &[(
            "groupcheck_resource",
            ".kubernetes.authorization.GroupCheck, string -> kubernetes.authorization.ResourceCheck",
        )],
    ),
    (
        "subresource",
        Typed,
        planned,
        &[(
            "resourcecheck_subresource",
            ".kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck",
        )],
    ),
    (
        "namespace",
        Typed,
        planned,
        &[(
            "resourcecheck_namespace",
            ".kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck",
        )],
    ),
    (
        "name",
        Typed,
        planned,
        &[(
            "resourcecheck_name",
            ".kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck",
        )],
    ),
    (
        "fieldSelector",
        Typed,
        planned,
        &[(
            "authorizer_fieldselector",
            ".kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck",
        )],
    ),
    (
        "labelSelector",
        Typed,
        planned,
        &[(
            "authorizer_labelselector",
            ".kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck",
        )],
    ),
    (
        "check",
        Typed,
        planned,
        &[
            (
                "pathcheck_check",
                ".kubernetes.authorization.PathCheck, string -> kubernetes.authorization.Decision",
            ),
            (
                "resourcecheck_check",
                ".kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.Decision",
            ),
        ],
    ),
    (
        "allowed",
        Typed,
        planned,
        &[("decision_allowed", ".kubernetes.authorization.Decision -> bool")],
    ),
    (
        "reason",
        Typed,
        planned,
        &[("decision_reason", ".kubernetes.authorization.Decision -> string")],
    ),
    (
        "error",
        Typed,
        planned,
        &[("decision_error", ".kubernetes.authorization.Decision -> string")],
    ),
    (
        "errored",
        Typed,
        planned,
        &[("decision_errored", ".kubernetes.authorization.Decision -> bool")],
    ),
];
