//! `policy/v1`.

use pintle_meta::field::Error;
use pintle_registry::NameRule;
use pintle_value::{Path, Value};

use crate::{
    kind::{Kind, kind},
    strategy::{COUNTED_WITH_STATUS, Strategy},
};

pub(crate) const KINDS: &[Kind] = &[kind("policy", "poddisruptionbudgets", BUDGET)];

const BUDGET: Strategy = Strategy {
    // Upstream's strategy checks no metadata of its own.
    name: NameRule::PathSegment,
    unconditional_update: false,
    validate: |new, _| {
        let of = |member| new.at(&["spec", member]).filter(|value| !value.is_null());
        let mut errors = Vec::new();
        if of("minAvailable").is_some() && of("maxUnavailable").is_some() {
            let spec = new.get("spec").unwrap_or(&Value::Null);
            let words = "minAvailable and maxUnavailable cannot be both set";
            errors.push(Error::invalid(&Path::new("spec"), spec, words));
        }
        errors
    },
    ..COUNTED_WITH_STATUS
};
