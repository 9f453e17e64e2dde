//! `discovery.k8s.io/v1`: endpoint slices.

use pintle_registry::Generation;

use crate::{
    defaults::{
        Constant::Text,
        Defaults,
        Row::{Each, Unset},
        set,
    },
    kind::{Kind, kind},
    strategy::{PLAIN, Strategy},
};

pub(crate) const KINDS: &[Kind] = &[kind("discovery.k8s.io", "endpointslices", SLICE)];

const SLICE: Strategy = Strategy {
    generation: Generation::SpecAnd("labels"),
    default: |object| set(object, DEFAULTS),
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
