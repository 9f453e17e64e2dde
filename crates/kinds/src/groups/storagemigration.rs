//! `storagemigration.k8s.io`: off by default.

use crate::{
    checks::{frozen, unchanged},
    kind::{Kind, kind},
    strategy::{STATUS_ALONE, Strategy, WITH_STATUS},
};

pub(crate) const KINDS: &[Kind] =
    &[kind("storagemigration.k8s.io", "storageversionmigrations", MIGRATION)];

const MIGRATION: Strategy = Strategy {
    owned: STATUS_ALONE,
    unconditional_update: false,
    validate: |new, old| unchanged(new, old, &[frozen(&["spec"])]),
    ..WITH_STATUS
};
