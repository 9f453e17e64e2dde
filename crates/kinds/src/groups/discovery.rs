//! `discovery.k8s.io/v1`: endpoint slices.

use pintle_registry::{Generation, Strategy};
use pintle_value::Path;

use crate::{
    checks::{frozen, required, unchanged},
    defaults::{
        Constant::Text,
        Defaults,
        Row::{Each, Unset},
        set,
    },
    kind::{Kind, kind},
    strategy::PLAIN,
};

pub(crate) const KINDS: &[Kind] = &[kind("discovery.k8s.io", "endpointslices", SLICE)];

const SLICE: Strategy = Strategy {
    generation: Generation::SpecAnd("labels"),
    default: |object| set(object, DEFAULTS),
    validate: |new, old| {
        let mut errors = Vec::new();
        required(new, &Path::root(), "addressType", &mut errors);
        errors.extend(unchanged(new, old, &[frozen(&["addressType"])]));
        errors
    },
    warnings: |new, old| {
        let is_fqdn = new.str_at(&["addressType"]) == Some("FQDN");
        if is_fqdn && old.is_none() {
            let words = "FQDN endpoints are deprecated";
            vec![format!("spec.addressType: {words}")]
        } else {
            Vec::new()
        }
    },
    ..PLAIN
};

const DEFAULTS: Defaults =
    &[Each("ports", &[Unset("name", Text("")), Unset("protocol", Text("TCP"))])];
