//! What pods and the pod templates of workloads share: defaults, validation, warnings, quality of
//! service.
//!
//! The rules of a PodSpec are in [`validation`], those of changes in [`update`].

mod defaults;
mod image;
mod prepare;
mod quality;
mod status;
mod update;
mod validation;
mod warnings;

pub(crate) use defaults::{CLAIM_SPEC, DISKS, POD, POD_TEMPLATE, template_labels};
pub(crate) use prepare::begin;
pub(crate) use quality::quality;
pub(crate) use status::{confine_status, validate_status, warn_of_status};
pub(crate) use update::{
    confine_resize, difference, validate_ephemeral_containers, validate_resize, validate_update,
};
pub(crate) use validation::{
    CLAIM_SPEC as CLAIM_RULES, LABELS_MISMATCH, Options, access_modes, check_node_selector,
    check_persistent_sources, check_template, check_template_metadata, check_tolerations,
    validate_pod,
};
pub(crate) use warnings::{
    old_label, warn_of_claim, warn_of_name, warn_of_node_selector, warn_of_pod, warn_of_sources,
    warn_of_template,
};
