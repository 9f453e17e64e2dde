//! `node.k8s.io/v1`.

use pintle_meta::names;
use pintle_registry::Strategy;
use pintle_value::Path;

use crate::{
    checks::{frozen, invalid_text, unchanged},
    kind::{Kind, kind},
    strategy::PLAIN,
};

pub(crate) const KINDS: &[Kind] = &[kind("node.k8s.io", "runtimeclasses", RUNTIME_CLASS)];

const RUNTIME_CLASS: Strategy = Strategy {
    create_on_update: true,
    unconditional_update: false,
    validate: |new, old| {
        let mut errors = Vec::new();
        let handler = new.str_at(&["handler"]).unwrap_or_default();
        let wrong = names::dns1123_label(handler);
        invalid_text(&Path::new("handler"), handler, wrong, &mut errors);
        errors.extend(unchanged(new, old, &[frozen(&["handler"])]));
        errors
    },
    ..PLAIN
};
