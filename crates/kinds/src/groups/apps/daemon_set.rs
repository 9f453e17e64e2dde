//! DaemonSets.

use pintle_meta::{field::Error, labels::Selector, object, validation};
use pintle_value::Value;

use super::{
    super::workload::{self, Counts},
    HISTORY, ROLLING, TEMPLATE, shown_strategy,
};
use crate::{
    defaults::{
        Condition::Is,
        Constant::Int,
        Defaults, Row,
        Row::{At, In, Unset, When},
        set,
    },
    field::{Errors, Field},
    pods,
    rules::{
        Rule::{Do, NotNegative},
        Rules, check,
    },
    strategy::{AS_UPDATE, COUNTED_WITH_STATUS, Part, Strategy, part},
};

pub(super) const DAEMON_SET: Strategy = Strategy {
    metadata: AS_UPDATE,
    gated: pods::GATED_TEMPLATE,
    default: |object| {
        // As after upstream's conversion, every DaemonSet that a client writes has this annotation.
        let annotations = object::metadata_mut(object).entry_object("annotations");
        annotations.entry_or(TEMPLATE_GENERATION, || "0".into());
        set(object, DEFAULTS);
    },
    internal_annotation: Some((TEMPLATE_GENERATION, "0")),
    prepare_create: |new| set_template_generation(new, 1),
    prepare_update: |new, old| {
        let path = &["spec", "template"];
        let is_changed = new.at(path) != old.at(path);
        set_template_generation(new, template_generation(old).saturating_add(is_changed.into()));
    },
    validate: |new, old| {
        let object = Field::root(new);
        let spec = object.get("spec");
        let mut errors = Errors::new();
        workload::check_same_selector(&spec, old, &mut errors);
        check_selector(&spec, &mut errors);
        pods::check_template(&spec.get("template"), workload::old_template(old), &mut errors);
        workload::check_lasting(&spec, "DaemonSet", &mut errors);
        check(&spec, ROLLOUT, &mut errors);
        errors
    },
    declared_rules: false,
    warnings: |new, old| workload::warn(new, old, workload::TEMPLATE, None),
    parts: &[Part {
        prepare: |new, old| set_template_generation(new, template_generation(old)),
        validate: |new, old| workload::check_counts(new, old, COUNTS),
        ..part("status")
    }],
    ..COUNTED_WITH_STATUS
};

/// The annotation with the number of template changes, in the served versions.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn template_generation(object: &Value) -> i64 {
    let text = object.str_at(&["metadata", "annotations", TEMPLATE_GENERATION]);
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn set_template_generation(object: &mut Value, generation: i64) {
    let annotations = object::metadata_mut(object).entry_object("annotations");
    annotations.insert(TEMPLATE_GENERATION, generation.to_string());
}

const DEFAULTS: Defaults = &[In(
    "spec",
    &[
        In(
            "updateStrategy",
            &[
                ROLLING,
                When(
                    Is("type", "RollingUpdate"),
                    &[In(
                        "rollingUpdate",
                        &[Unset("maxUnavailable", Int(1)), Unset("maxSurge", Int(0))],
                    )],
                ),
                ROLLING_NUMBERS,
            ],
        ),
        HISTORY,
        TEMPLATE,
    ],
)];

/// Upstream's internal form does not distinguish an absent value from zero, whatever the type.
pub(crate) const ROLLING_NUMBERS: Row =
    At("rollingUpdate", &[Unset("maxUnavailable", Int(0)), Unset("maxSurge", Int(0))]);

/// Checks the selector. A DaemonSet without a selector selects nothing, not even its own pods.
fn check_selector(spec: &Field<'_>, errors: &mut Errors) {
    let selector = spec.get("selector");
    errors.extend(validation::label_selector(selector.value(), &selector.path()));
    if let Ok(labels) = Selector::from_label_selector(selector.some()) {
        workload::check_labels(spec, &labels, errors);
        if labels.is_everything() {
            errors.push(selector.invalid("empty selector is invalid for daemonset"));
        }
    }
}

const ROLLOUT: Rules =
    &[NotNegative("minReadySeconds"), Do(strategy), NotNegative("revisionHistoryLimit")];

const ROLLING_MEMBERS: &[(&str, &str)] =
    &[("MaxUnavailable", "maxUnavailable"), ("MaxSurge", "maxSurge")];

fn strategy(spec: &Field<'_>, errors: &mut Errors) {
    let strategy = spec.get("updateStrategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.str("type") {
        "OnDelete" => {}
        "RollingUpdate" if rolling.is_set() => check_rolling(&rolling, errors),
        "RollingUpdate" => errors.push(rolling.required("")),
        _ => errors.push(Error {
            value: Some(shown_strategy(&strategy, ROLLING_MEMBERS)),
            ..strategy.not_supported(&["RollingUpdate", "OnDelete"])
        }),
    }
}

/// Checks that exactly one of `maxUnavailable` and `maxSurge` is not 0: an update first deletes old
/// pods or first creates new ones.
fn check_rolling(rolling: &Field<'_>, errors: &mut Errors) {
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    workload::check_share(&unavailable, errors);
    workload::check_share(&surge, errors);
    workload::check_not_above_all(&unavailable, errors);
    workload::check_not_above_all(&surge, errors);
    match (workload::is_zero(&unavailable), workload::is_zero(&surge)) {
        (false, false) => {
            errors.push(surge.invalid("may not be set when maxUnavailable is non-zero"));
        }
        (true, true) => errors.push(unavailable.required("cannot be 0 when maxSurge is 0")),
        _ => {}
    }
}

const COUNTS: &Counts = &Counts {
    members: &[
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
    ],
    within: &[],
    collisions: true,
};
