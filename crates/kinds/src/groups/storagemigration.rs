//! `storagemigration.k8s.io`: off by default.

use crate::{
    checks::{frozen, unchanged},
    kind::{Kind, kind},
    strategy::{Strategy, WITH_STATUS},
};

pub(crate) const KINDS: &[Kind] =
    &[kind("storagemigration.k8s.io", "storageversionmigrations", MIGRATION)];

const MIGRATION: Strategy = Strategy {
    unconditional_update: false,
    validate: |new, old| unchanged(new, old, &[frozen(&["spec"])]),
    ..WITH_STATUS
};
