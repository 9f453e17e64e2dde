//! Rules that pods and the pod templates of workloads share: defaults, validation, warnings,
//! quality of service.
//!
//! The rules of a PodSpec are in [`validation`], those of updates in [`update`].

use crate::features::Feature;
use crate::gates::{self, Gate, Gated};

mod defaults;
mod image;
mod prepare;
mod quality;
mod status;
mod total;
mod update;
mod validation;
mod warnings;

/// Fields of pod specs behind gates: `ContainerStopSignals`, `ClusterTrustBundleProjection`, and
/// those of features.
pub(crate) const GATED: &[Gate] = &[
    gates::off(&[
        &["containers", "*", "lifecycle", "stopSignal"],
        &["initContainers", "*", "lifecycle", "stopSignal"],
        &["ephemeralContainers", "*", "lifecycle", "stopSignal"],
    ]),
    gates::off(&[&["volumes", "*", "projected", "sources", "*", "clusterTrustBundle"]]),
    gates::of(
        Feature::PodCertificateRequest,
        &[&["volumes", "*", "projected", "sources", "*", "podCertificate"]],
    ),
    gates::of(Feature::GenericWorkload, &[&["schedulingGroup"]]),
];

/// Fields of the status of pods behind gates that are off: `ImageVolumeWithDigest` and
/// `DRANodeAllocatableResources`.
pub(crate) const GATED_STATUS: &[Gate] = &[
    gates::off(&[
        &["containerStatuses", "*", "volumeMounts", "*", "volumeStatus"],
        &["initContainerStatuses", "*", "volumeMounts", "*", "volumeStatus"],
        &["ephemeralContainerStatuses", "*", "volumeMounts", "*", "volumeStatus"],
    ]),
    gates::off(&[&["nodeAllocatableResourceClaimStatuses"]]),
];

/// The fields of pod specs in the pod templates of workloads.
pub(crate) const GATED_TEMPLATE: &[Gated] = &[(&["spec", "template", "spec"], GATED)];

pub(crate) use defaults::{CLAIM_SPEC, CLAIM_STATUS, DISKS, POD, POD_TEMPLATE, template_labels};
pub(crate) use prepare::{begin, warn_of_profiles};
pub(crate) use quality::quality;
pub(crate) use status::{confine_status, validate_status, warn_of_status};
pub(crate) use update::{
    confine_resize, difference, validate_ephemeral_containers, validate_resize, validate_update,
};
pub(crate) use validation::{
    CLAIM_SPEC as CLAIM_RULES, LABELS_MISMATCH, Options, access_modes, check_claim_metadata,
    check_fixed_overhead, check_node_selector, check_persistent_sources, check_template,
    check_template_metadata, check_tolerations, local_path, preemption_policy, validate_pod,
};
pub(crate) use warnings::{
    old_label, warn_of_claim, warn_of_name, warn_of_node_selector, warn_of_pod, warn_of_sources,
    warn_of_template,
};
