//! `authentication.k8s.io/v1`: reviews, which are answered and not stored.

use crate::kind::{Kind, virtual_kind};

pub(crate) const KINDS: &[Kind] = &[
    virtual_kind("authentication.k8s.io", "selfsubjectreviews"),
    virtual_kind("authentication.k8s.io", "tokenreviews"),
];
