//! The rules for pods and pod templates, in upstream's order.
//!
//! [`Spec`] has the facts of the whole pod; each submodule has its part of the spec.

mod affinity;
mod annotations;
mod containers;
mod network;
mod options;
mod resources;
mod scheduling;
mod security;
mod volumes;

use std::collections::BTreeSet;

use pintle_meta::{field::Error, names, validation};
use pintle_value::{Path, Value};

use crate::{
    field::{Errors, Field},
    rules::{
        Rule::{Choice, Do, Formatted, Given, Within},
        Rules, check, choice,
    },
};

pub(crate) use affinity::check_node_selector;
pub(crate) use annotations::{
    APP_ARMOR, MIRROR, SECCOMP_CONTAINER, SECCOMP_POD, check_annotations, have_profiles,
};
pub(crate) use containers::is_sidecar;
pub(crate) use options::Options;
pub(crate) use resources::check_fixed_overhead;
pub(crate) use scheduling::check_tolerations;
pub(crate) use security::app_armor_profile;
pub(crate) use volumes::{
    CLAIM_SPEC, access_modes, check_claim_metadata, check_persistent_sources, local_path,
};

/// Upstream's message for a workload that does not select its own pods.
pub(crate) const LABELS_MISMATCH: &str = "`selector` does not match template `labels`";

/// Facts of the whole pod that rules of its parts need.
pub(crate) struct Spec<'a> {
    pub(crate) field: &'a Field<'a>,
    options: Options,
    /// The volumes that can be mounted.
    volumes: volumes::Volumes<'a>,
    /// The names of the resource claims.
    claims: BTreeSet<&'a str>,
    /// How long the pod has to end, in seconds.
    grace_period: Option<i64>,
}

impl<'a> Spec<'a> {
    /// A spec whose parts have not been checked yet.
    pub(crate) fn of(field: &'a Field<'a>, options: Options) -> Self {
        let claims = field.items("resourceClaims").map(|claim| claim.str("name"));
        Self {
            field,
            options,
            volumes: volumes::Volumes::new(),
            claims: claims.filter(|name| !name.is_empty()).collect(),
            grace_period: field.get("terminationGracePeriodSeconds").int(),
        }
    }

    /// The containers of all sorts, in the order in which upstream visits them.
    pub(crate) fn all_containers(&self) -> impl Iterator<Item = Field<'_>> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        lists.into_iter().flat_map(|list| self.field.items(list))
    }

    /// Whether the pod has its own user namespace.
    fn has_own_users(&self) -> bool {
        self.field.get("hostUsers").is_false()
    }
}

/// Validates a new Pod.
pub(crate) fn validate_pod(pod: &Value) -> Errors {
    let options = Options { is_pod: true, ..Options::default() };
    let pod = Field::root(pod);
    let mut errors = Errors::new();
    check_pod(&pod, options, &mut errors);
    let (metadata, field) = (pod.get("metadata"), pod.get("spec"));
    let ephemeral = field.get("ephemeralContainers");
    if !ephemeral.is_empty() {
        errors.push(ephemeral.forbidden("cannot be set on create"));
    }
    let node = field.get("nodeName");
    if !node.is_empty() && !field.get("schedulingGates").is_empty() {
        let words = "cannot be set until all schedulingGates have been cleared";
        errors.push(node.forbidden(words));
    }
    let spec = Spec::of(&field, options);
    annotations::check_agreement(&metadata.get("annotations"), &spec, &mut errors);
    errors
}

/// Validates a Pod, new or updated.
pub(crate) fn check_pod(pod: &Field<'_>, options: Options, errors: &mut Errors) {
    let (metadata, spec) = (pod.get("metadata"), pod.get("spec"));
    check_annotations(&metadata.get("annotations"), &spec, options, errors);
    check_spec(&spec, metadata.str("name"), options, errors);
    if metadata.get("annotations").find(MIRROR).is_some() {
        let words = "static pods do not support resource claims";
        // Upstream's path of the object itself is `[]`.
        let refusal = || Error::forbidden(&Path::root().key(""), words);
        errors.extend(spec.items("resourceClaims").map(|_| refusal()));
    }
    if spec.get("serviceAccountName").is_empty() {
        for volume in spec.items("volumes") {
            let projected = volume.get("projected");
            for source in projected.items("sources") {
                if let Some(token) = source.find("serviceAccountToken") {
                    let words = "must not be specified when serviceAccountName is not set";
                    errors.push(token.forbidden(words));
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        for container in spec.items(list) {
            containers::check_image_padding(&container, errors);
        }
    }
}

/// Validates a PodTemplateSpec; `old` is the stored one.
pub(crate) fn check_template(template: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let options = Options::of_template(old);
    check_template_metadata(template, options, errors);
    let field = template.get("spec");
    check_spec(&field, "", options, errors);
    let spec = Spec::of(&field, options);
    let metadata = template.get("metadata");
    annotations::check_agreement(&metadata.get("annotations"), &spec, errors);
    let ephemeral = field.get("ephemeralContainers");
    if !ephemeral.is_empty() {
        errors.push(ephemeral.forbidden("ephemeral containers not allowed in pod template"));
    }
}

/// Validates the metadata of a PodTemplateSpec. Upstream leaves `metadata` out of the paths.
pub(crate) fn check_template_metadata(template: &Field<'_>, options: Options, errors: &mut Errors) {
    let metadata = template.get("metadata");
    let path = |member: &str| template.get(member).path();
    errors.extend(validation::labels(Some(metadata.map("labels")), &path("labels")));
    let annotations = Some(metadata.map("annotations"));
    errors.extend(validation::annotations(annotations, &path("annotations")));
    let annotations = metadata.get("annotations");
    let field = template.get("annotations");
    check_annotations(&field.of(annotations.value()), &template.get("spec"), options, errors);
}

/// Validates a PodSpec; the pod's name is `""` if it is not known yet.
fn check_spec(field: &Field<'_>, name: &str, options: Options, errors: &mut Errors) {
    let mut spec = Spec::of(field, options);
    if spec.grace_period.is_none() {
        errors.push(field.get("terminationGracePeriodSeconds").required(""));
    }
    let owner = volumes::Owner { name, options };
    spec.volumes = volumes::check_volumes(field, &owner, errors);
    check_resource_claims(field, errors);
    containers::check_containers(&spec, errors);
    containers::check_init_containers(&spec, errors);
    containers::check_ephemeral_containers(&spec, errors);
    containers::check_file_references(&spec, errors);
    resources::check_pod(&spec, errors);
    network::check_host_network(&spec, errors);
    check(field, POLICIES, errors);
    security::check_pod(&spec, errors);
    affinity::check_affinity(field, options, errors);
    check(field, GATES, errors);
    scheduling::check_topology_spread(field, options, errors);
    security::check_host_process(&spec, errors);
    security::check_host_users(&spec, errors);
    check(field, NAMES, errors);
    resources::check_overhead(&spec, errors);
    security::check_os(&spec, errors);
    check(field, GROUP, errors);
}

const POLICIES: Rules = &[
    Choice("restartPolicy", &["Always", "OnFailure", "Never"]),
    Choice("dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]),
    Do(|spec, errors| {
        let selector = spec.get("nodeSelector");
        errors.extend(validation::labels(selector.value().as_object(), &selector.path()));
    }),
];

const GATES: Rules = &[
    Do(network::check_dns),
    Do(scheduling::check_readiness_gates),
    Do(scheduling::check_scheduling_gates),
];

const NAMES: Rules = &[
    Formatted("serviceAccountName", names::dns1123_subdomain),
    Formatted("nodeName", names::dns1123_subdomain),
    Within("activeDeadlineSeconds", 1, i32::MAX as i64),
    Formatted("hostname", names::dns1123_label),
    Formatted("subdomain", names::dns1123_label),
    Do(network::check_hostname),
    Do(check_tolerations),
    Do(network::check_host_aliases),
    Formatted("priorityClassName", names::dns1123_subdomain),
    Given("runtimeClassName", names::dns1123_subdomain),
    Do(|spec, errors| preemption_policy(&spec.get("preemptionPolicy"), errors)),
];

const GROUP: Rules = &[Do(|spec, errors| {
    let Some(group) = spec.find("schedulingGroup") else { return };
    let name = group.get("podGroupName");
    match name.is_set() {
        true => name.all_invalid(names::dns1123_subdomain(name.text()), errors),
        false => errors.push(name.invalid_as(Value::Null, "must specify one of: `podGroupName`")),
    }
})];

/// Checks the preemption policy of a pod or of a priority class.
pub(crate) fn preemption_policy(policy: &Field<'_>, errors: &mut Errors) {
    if policy.is_set() {
        choice(policy, &["PreemptLowerPriority", "Never"], errors);
    }
}

/// Checks `resourceClaims`.
fn check_resource_claims(spec: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for claim in spec.items("resourceClaims") {
        let name = claim.get("name");
        if name.is_empty() {
            errors.push(name.required(""));
        } else if !seen.insert(claim.str("name")) {
            errors.push(name.duplicate());
        } else {
            name.all_invalid(names::dns1123_label(name.text()), errors);
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"].map(|m| claim.get(m));
        let words = match sources.each_ref().map(Field::is_set) {
            [true, true] => Some(
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
            [false, false] => {
                Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
            }
            _ => None,
        };
        errors.extend(words.map(|words| claim.invalid(words)));
        for source in sources.iter().filter(|source| source.is_set()) {
            source.all_invalid(names::dns1123_subdomain(source.text()), errors);
        }
    }
}
