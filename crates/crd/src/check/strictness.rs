//! Which rules hold for the schemas of a definition. Definitions of v1beta1 follow fewer rules, and
//! an update may break a rule that the stored definition breaks already (upstream:
//! `validationOptions`).

use pintle_value::Value;

use super::{structural, walk};
use crate::definition::Crd;

/// The version of the API in which a definition was sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    V1,
    V1Beta1,
}

/// The types of OpenAPI.
pub(super) const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];

/// The rules that hold for one write.
#[derive(Clone, Copy)]
pub(super) struct Strictness {
    /// Each version must have a schema.
    pub(super) schemas: bool,
    /// Schemas must be structural.
    pub(super) structural: bool,
    /// Types of properties must be those of OpenAPI.
    pub(super) types: bool,
    /// Why schemas cannot have defaults.
    pub(super) no_defaults: Option<&'static str>,
}

const NO_DEFAULTS: &str = "(cannot set default values in apiextensions.k8s.io/v1beta1 CRDs, must use \
                           apiextensions.k8s.io/v1)";

impl Strictness {
    pub(super) fn of(sent: Sent, new: Crd<'_>, old: Option<Crd<'_>>) -> Self {
        let is_v1 = sent == Sent::V1;
        let had_defaults = old.is_some_and(has_defaults);
        let mut strictness = Self {
            schemas: is_v1 && old.is_none_or(has_schemas),
            structural: is_v1 && old.is_none_or(is_structural),
            types: is_v1 && old.is_none_or(has_known_types),
            no_defaults: (!is_v1 && !had_defaults).then_some(NO_DEFAULTS),
        };
        let uses_defaults = strictness.no_defaults.is_none() && has_defaults(new);
        strictness.structural |= !new.preserves_unknown() || uses_defaults || has_extensions(new);
        strictness
    }
}

pub(super) fn has_defaults(crd: Crd<'_>) -> bool {
    any_schema(crd, |schema| schema.get("default").is_some())
}

fn has_schemas(crd: Crd<'_>) -> bool {
    crd.versions().all(|version| version.schema().is_some())
}

fn is_structural(crd: Crd<'_>) -> bool {
    crd.versions().filter_map(|version| version.schema()).all(structural::is_structural)
}

fn has_known_types(crd: Crd<'_>) -> bool {
    !any_schema(crd, |schema| {
        schema.str_at(&["type"]).is_some_and(|ty| !ty.is_empty() && !TYPES.contains(&ty))
    })
}

/// Whether a schema uses Kubernetes' extensions of OpenAPI, which need structural schemas.
fn has_extensions(crd: Crd<'_>) -> bool {
    const FLAGS: [&str; 2] = ["x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"];
    const MEMBERS: [&str; 2] = ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-list-type"];
    const LISTS: [&str; 2] = ["x-kubernetes-list-map-keys", "x-kubernetes-validations"];
    any_schema(crd, |schema| {
        let of = |key: &&str| schema.get(key).filter(|value| !value.is_null());
        let is_filled = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
        FLAGS.iter().filter_map(of).any(|flag| flag.as_bool() == Some(true))
            || MEMBERS.iter().any(|key| of(key).is_some())
            || LISTS.iter().filter_map(of).any(is_filled)
    })
}

fn any_schema(crd: Crd<'_>, holds: impl Fn(&Value) -> bool) -> bool {
    let mut found = false;
    for schema in crd.versions().filter_map(|version| version.schema()) {
        walk(schema, &mut |schema| found |= holds(schema));
    }
    found
}
