//! The strategies that kinds are made of: a base, said once, and the few ways kinds differ from it.
//!
//! A kind's entry takes one of these and changes members with struct-update syntax:
//! `Strategy { create_on_update: true, ..PLAIN }`.
//!
//! How the engine uses the members is said at [`Strategy`]. One thing matters to the entries:
//! `metadata.generation` is reset before `prepare_create` and `prepare_update` run, so that these can
//! set it where a kind counts in a way of its own.

use pintle_registry::{Generation, NameRule, Strategy};
use pintle_value::{Str, Value};

/// A kind without a status and without anything particular: ConfigMaps, most of all.
pub(crate) const PLAIN: Strategy = Strategy {
    name: NameRule::DnsSubdomain,
    qualified_finalizers: true,
    create_on_update: false,
    unconditional_update: true,
    reset_fields: &[],
    generation: Generation::None,
    delete_returns_object: false,
    graceful: None,
    terminating: |_| {},
    held: |_| false,
    ttl_seconds: None,
    fields: &[],
    default: |_| {},
    prepare_create: |_| {},
    prepare_update: |_, _| {},
    validate: |_, _| Vec::new(),
    warnings: |_, _| Vec::new(),
};

/// A kind whose status only `/status` writes: a new object has an empty one (META-11).
pub(crate) const WITH_STATUS: Strategy = Strategy { reset_fields: &[&["status"]], ..PLAIN };

/// A kind that counts the changes of its spec.
pub(crate) const COUNTED: Strategy = Strategy { generation: Generation::Spec, ..PLAIN };

/// A kind with a status that counts the changes of its spec: the workloads.
pub(crate) const COUNTED_WITH_STATUS: Strategy =
    Strategy { generation: Generation::Spec, ..WITH_STATUS };

/// A selectable field that is the text at a path.
macro_rules! selectable {
    ($label:literal at $($member:literal).+) => {
        SelectableField { label: $label, value: |object| text(object, &[$($member),+]) }
    };
}
pub(crate) use selectable;

/// The text at a path as selectors see it: numbers and booleans in words, `""` where there is none.
pub(crate) fn text(object: &Value, path: &[&str]) -> Str {
    match object.at(path) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Int(number)) => Str::from(number.to_string()),
        Some(Value::Bool(truth)) => Str::from(if *truth { "true" } else { "false" }),
        _ => Str::default(),
    }
}

/// A boolean as selectors see it: an absent one is `false`.
pub(crate) fn truth(object: &Value, path: &[&str]) -> Str {
    let truth = object.at(path).and_then(Value::as_bool).unwrap_or(false);
    Str::from(if truth { "true" } else { "false" })
}

/// A count as selectors see it: an absent one is `0`.
pub(crate) fn count(object: &Value, path: &[&str]) -> Str {
    Str::from(object.at(path).and_then(Value::as_int).unwrap_or(0).to_string())
}
