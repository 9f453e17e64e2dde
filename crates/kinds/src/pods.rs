//! What pods and the pod templates of workloads share: defaults, validation, quality of service.

mod defaults;
mod image;
mod quality;
mod validation;

pub(crate) use defaults::{CLAIM_SPEC, DISKS, POD, POD_TEMPLATE, template_labels};
pub(crate) use quality::quality;
pub(crate) use validation::{
    LABELS_MISMATCH, validate_pod, validate_template, validate_template_metadata,
};
