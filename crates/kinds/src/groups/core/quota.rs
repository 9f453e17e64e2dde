//! LimitRanges and ResourceQuotas.

mod limit_rules;
mod quota_rules;

use pintle_meta::object;
use pintle_value::{Map, Value};

use crate::{
    defaults::{
        Condition::Is,
        Defaults,
        Row::{At, Do, Each, Rounded, When},
        add_absent, set,
    },
    strategy::{AS_NEW, AS_UPDATE, PLAIN, Part, Strategy, WITH_STATUS, part},
};

pub(super) const QUOTA: Strategy = Strategy {
    metadata: AS_UPDATE,
    default: |object| set(object, QUOTA_DEFAULTS),
    declared_rules: false,
    delete_returns_object: true,
    validate: quota_rules::validate,
    warnings: |new, old| if old.is_none() { quota_rules::warnings(new) } else { Vec::new() },
    parts: &[Part { validate: |new, _| quota_rules::validate_status(new), ..part("status") }],
    ..WITH_STATUS
};

pub(super) const LIMIT_RANGE: Strategy = Strategy {
    metadata: AS_NEW,
    create_on_update: true,
    default: |object| set(object, RANGE_DEFAULTS),
    // A LimitRange without a name gets its UID as its name.
    prepare_create: |range| {
        if object::name(range).is_empty() {
            let unique = object::uid(range).to_owned();
            object::set_text(range, "name", unique);
        }
    },
    validate: |new, _| limit_rules::validate(new),
    ..PLAIN
};

const QUOTA_DEFAULTS: Defaults =
    &[At("spec", &[Rounded("hard")]), At("status", &[Rounded("hard"), Rounded("used")])];

const RANGE_DEFAULTS: Defaults = &[At(
    "spec",
    &[Each(
        "limits",
        &[
            When(Is("type", "Container"), &[Do(defaults_from_bounds)]),
            Rounded("max"),
            Rounded("min"),
            Rounded("default"),
            Rounded("defaultRequest"),
            Rounded("maxLimitRequestRatio"),
        ],
    )],
)];

/// The default of a resource is its maximum; its default request is its default, else its minimum.
fn defaults_from_bounds(item: &mut Map) {
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")]
    {
        let Some(Value::Object(source)) = item.get(from).cloned() else { continue };
        // Upstream's empty defaults are not encoded.
        if source.is_empty() {
            continue;
        }
        add_absent(item.entry_object(to), &source);
    }
}
