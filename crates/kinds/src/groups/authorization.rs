//! `authorization.k8s.io/v1`: reviews, which are answered and not stored.

use crate::kind::{Kind, virtual_kind};

const AUTHORIZATION: &str = "authorization.k8s.io";

pub(crate) const KINDS: &[Kind] = &[
    virtual_kind(AUTHORIZATION, "localsubjectaccessreviews"),
    virtual_kind(AUTHORIZATION, "selfsubjectaccessreviews"),
    virtual_kind(AUTHORIZATION, "selfsubjectrulesreviews"),
    virtual_kind(AUTHORIZATION, "subjectaccessreviews"),
];
