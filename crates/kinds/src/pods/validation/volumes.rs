//! Volumes: a name and exactly one source each.

mod claim;
mod files;
mod persistent;
mod projected;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use pintle_meta::names;
use pintle_value::Value;

use super::Options;
use crate::{
    field::{Errors, Field},
    rules::{Rules, check, required},
};

pub(crate) use claim::{SPEC as CLAIM_SPEC, access_modes};
pub(crate) use files::local_path;
pub(super) use files::{field_reference, resource_reference};
pub(super) use files::{has_backsteps, no_backsteps, not_reserved};
pub(crate) use persistent::check_persistent_sources;
pub(crate) use sources::check_claim_metadata;

/// The valid volumes of a pod, by name. Only these can be mounted.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

/// One kind of volume source.
pub(crate) struct Source {
    /// Its member in the volume.
    pub(crate) member: &'static str,
    /// Its names in errors: in the error for a second source, and in the paths of its members.
    pub(crate) names: [&'static str; 2],
    /// Its rules.
    pub(crate) rules: Rules,
}

/// The longest name of a pod. One with a longer name is refused, and claims are not named after it.
const OWNER_BYTES_MAX: usize = 253;

/// Facts of the pod that the rules of volumes need.
pub(super) struct Owner<'a> {
    /// The pod's name, `""` in a template.
    pub(super) name: &'a str,
    pub(super) options: Options,
}

/// Checks a pod's volumes and returns the valid ones.
pub(super) fn check_volumes<'a>(
    spec: &Field<'a>,
    owner: &Owner<'_>,
    errors: &mut Errors,
) -> Volumes<'a> {
    let mut volumes = Volumes::new();
    // The claims that get created have the names of the pod and of the volume.
    let ephemeral: BTreeSet<&str> = spec
        .items("volumes")
        .filter(|volume| !owner.name.is_empty() && volume.has("ephemeral"))
        .map(|volume| volume.str("name"))
        .collect();
    let listed = spec.value().get("volumes").and_then(Value::as_array).unwrap_or_default();
    for (volume, value) in spec.items("volumes").zip(listed) {
        let mut wrong = Errors::new();
        check_source(&volume, owner, &mut wrong);
        let name = volume.get("name");
        required(&name, "", &mut wrong);
        if !name.is_empty() {
            name.all_invalid(names::dns1123_label(name.text()), &mut wrong);
        }
        let text = value.str_at(&["name"]).unwrap_or_default();
        if volumes.contains_key(text) {
            wrong.push(name.duplicate());
        }
        if wrong.is_empty() {
            volumes.insert(text, value);
        }
        errors.extend(wrong);
        let claim = volume.at(&["persistentVolumeClaim", "claimName"]);
        let of_pod = claim.text().strip_prefix(owner.name).and_then(|rest| rest.strip_prefix('-'));
        if of_pod.is_some_and(|name| ephemeral.contains(name)) {
            let words = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(claim.invalid(words));
        }
    }
    volumes
}

fn check_source(volume: &Field<'_>, owner: &Owner<'_>, errors: &mut Errors) {
    let mut is_found = false;
    for source in volume.present(sources::SOURCES, |source| source.member) {
        let field = volume.get(source.member);
        if is_found {
            let words = "may not specify more than 1 volume type";
            errors.push(field.called(source.names[0]).forbidden(words));
        } else {
            is_found = true;
            let field = field.called(source.names[1]);
            check(&field, source.rules, errors);
            match source.member {
                "projected" => projected::check_sources(&field, owner.options, errors),
                "ephemeral" => check_claim_name(volume, owner, errors),
                "image" if owner.options.is_pod => required(&field.get("reference"), "", errors),
                _ => {}
            }
            if source.member == "image" {
                check(&field, sources::IMAGE, errors);
            }
        }
        if source.member == "iscsi" {
            let name = volume.get("name");
            let wrong = sources::wrong_initiator_length(name.text(), &field);
            errors.extend(wrong.map(|words| name.invalid_as(name.text(), words)));
        }
    }
    if !is_found {
        errors.push(volume.required("must specify a volume type"));
    }
}

/// Checks the name of the claim that is created for an ephemeral volume: the names of the pod and
/// the volume.
fn check_claim_name(volume: &Field<'_>, owner: &Owner<'_>, errors: &mut Errors) {
    let name = volume.get("name");
    let is_usable = (1..=OWNER_BYTES_MAX).contains(&owner.name.len());
    if !is_usable || name.is_empty() {
        return;
    }
    let claim = format!("{}-{}", owner.name, name.text());
    for words in names::dns1123_subdomain(&claim) {
        errors.push(name.invalid(format!("PVC name {claim:?}: {words}")));
    }
}
