//! Ratcheting: values that an update may keep though a create with them would be refused, because
//! they were stored before rules became stricter.

use pintle_meta::{names, validation};
use pintle_value::{Path, Value};

use super::containers::is_sidecar;
use super::{annotations, security};
use crate::field::{Errors, Field};

/// How strict the rules are: each field except `is_pod` allows values that are otherwise refused.
#[derive(Clone, Copy, Default)]
pub(crate) struct Options {
    /// It is a Pod, and not a template of one.
    pub(crate) is_pod: bool,
    /// Amounts of huge pages that are not a multiple of their size.
    pub(super) indivisible_huge_pages: bool,
    /// Values in required node affinity that no label can have.
    pub(super) invalid_node_values: bool,
    /// Invalid label selectors in pod affinity terms.
    pub(super) invalid_affinity_selectors: bool,
    /// Invalid selectors of topology spread constraints.
    pub(super) invalid_spread_selectors: bool,
    /// Keys of topology spread constraints that the selector has, too.
    pub(super) invalid_spread_keys: bool,
    /// Paths of tokens that leave their volume.
    pub(super) any_token_path: bool,
    /// Kernel parameters of namespaces that are the host's.
    pub(super) any_host_parameters: bool,
    /// Block devices in pods with their own user namespace.
    pub(super) devices_with_own_users: bool,
    /// Deletion costs that are not 32-bit integers.
    pub(super) any_deletion_cost: bool,
    /// Init containers other than sidecars with a resize policy that restarts them.
    pub(super) restarting_init_containers: bool,
    /// The SELinux change policy `MountOption`.
    pub(super) any_selinux_policy: bool,
}

impl Options {
    /// Returns the options for an update of a pod.
    pub(crate) fn of_pod(old: &Value) -> Self {
        Self { is_pod: true, ..Self::of(old) }
    }

    /// Returns the options for a template that replaces `old`, or for a new one.
    pub(crate) fn of_template(old: Option<&Value>) -> Self {
        old.map_or_else(Self::default, Self::of)
    }

    /// The exceptions for `old`, a pod or a template.
    fn of(old: &Value) -> Self {
        let spec = old.get("spec").unwrap_or(&Value::Null);
        let field = Field::root(spec);
        Self {
            is_pod: false,
            indivisible_huge_pages: has_indivisible_huge_pages(&field),
            invalid_node_values: has_invalid_node_values(&field),
            invalid_affinity_selectors: has_invalid_affinity_selectors(&field),
            invalid_spread_selectors: constraints(&field)
                .any(|constraint| is_wrong(constraint.get("labelSelector").value())),
            invalid_spread_keys: has_invalid_spread_keys(&field),
            any_token_path: has_odd_token_path(&field),
            any_host_parameters: security::sets_host_parameters(spec),
            devices_with_own_users: has_devices(&field),
            any_deletion_cost: annotations::has_invalid_cost(old.at(&["metadata", "annotations"])),
            restarting_init_containers: has_restarting_init_container(&field),
            any_selinux_policy: field.get("securityContext").has("seLinuxChangePolicy"),
        }
    }
}

fn constraints<'s>(spec: &'s Field<'_>) -> impl Iterator<Item = Field<'s>> {
    spec.items("topologySpreadConstraints")
}

fn is_wrong(selector: &Value) -> bool {
    !validation::label_selector(selector, &Path::root()).is_empty()
}

fn has_restarting_init_container(spec: &Field<'_>) -> bool {
    let mut others = spec.items("initContainers").filter(|init| !is_sidecar(init.value()));
    others.any(|init| {
        init.items("resizePolicy").any(|policy| policy.str("restartPolicy") == "RestartContainer")
    })
}

fn has_indivisible_huge_pages(spec: &Field<'_>) -> bool {
    let strict = super::Spec::of(spec, Options::default());
    let mut errors = Errors::new();
    for list in ["containers", "initContainers"] {
        for container in spec.items(list) {
            super::resources::check_container(&strict, &container, &mut errors);
        }
    }
    errors.iter().any(|error| error.detail.contains("is not positive integer multiple of"))
}

fn has_invalid_node_values(spec: &Field<'_>) -> bool {
    let affinity =
        spec.at(&["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"]);
    affinity.items("nodeSelectorTerms").any(|term| {
        term.items("matchExpressions").any(|requirement| {
            requirement.items("values").any(|value| !names::label_value(value.text()).is_empty())
        })
    })
}

fn has_invalid_affinity_selectors(spec: &Field<'_>) -> bool {
    let mut errors = Errors::new();
    super::affinity::check_affinity(spec, Options::default(), &mut errors);
    let is_value = |error: &pintle_meta::field::Error| {
        error.field.contains("abelSelector.match")
            || error.field.contains("namespaceSelector.match")
    };
    errors.iter().any(is_value)
}

fn has_invalid_spread_keys(spec: &Field<'_>) -> bool {
    let mut errors = Errors::new();
    let relaxed = Options { invalid_spread_selectors: true, ..Options::default() };
    super::scheduling::check_topology_spread(spec, relaxed, &mut errors);
    errors.iter().any(|error| error.field.contains("matchLabelKeys"))
}

fn has_odd_token_path(spec: &Field<'_>) -> bool {
    spec.items("volumes").any(|volume| {
        let projected = volume.get("projected");
        projected.items("sources").any(|source| {
            let mut errors = Errors::new();
            super::volumes::not_reserved(&source.at(&["serviceAccountToken", "path"]), &mut errors);
            !errors.is_empty()
        })
    })
}

fn has_devices(spec: &Field<'_>) -> bool {
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    spec.get("hostUsers").is_false()
        && lists.iter().any(|list| {
            spec.items(list).any(|container| !container.get("volumeDevices").is_empty())
        })
}
