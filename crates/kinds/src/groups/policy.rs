//! `policy/v1`.

use pintle_meta::field::Error;
use pintle_registry::NameRule;
use pintle_value::Value;

use crate::{
    field::{Errors, Field},
    formats::percent,
    kind::{Kind, kind},
    rules::{
        Rule::{At, Do, NotNegative, OneOf, Selector},
        Rules, errors,
    },
    strategy::{COUNTED_WITH_STATUS, NOT_CHECKED, Part, Strategy, part},
};

pub(crate) const KINDS: &[Kind] = &[kind("policy", "poddisruptionbudgets", BUDGET)];

const BUDGET: Strategy = Strategy {
    metadata: NOT_CHECKED,
    // Upstream's strategy does not check metadata, so every path segment is a valid name.
    name: NameRule::PathSegment,
    unconditional_update: false,
    validate: |new, _| errors(new, RULES),
    parts: &[Part {
        metadata: Some(NOT_CHECKED),
        validate: |new, _| errors(new, STATUS_RULES),
        ..part("status")
    }],
    ..COUNTED_WITH_STATUS
};

const RULES: Rules = &[At(
    "spec",
    &[
        Do(|spec, errors| {
            if spec.has("minAvailable") && spec.has("maxUnavailable") {
                let words = "minAvailable and maxUnavailable cannot be both set";
                errors.push(Error::invalid_shown(&spec.path(), shown(spec), words));
            }
        }),
        Do(|spec, errors| count_or_percent(&spec.get("minAvailable"), errors)),
        Do(|spec, errors| count_or_percent(&spec.get("maxUnavailable"), errors)),
        Selector("selector"),
        OneOf("unhealthyPodEvictionPolicy", &["AlwaysAllow", "IfHealthyBudget"]),
    ],
)];

const STATUS_RULES: Rules = &[At(
    "status",
    &[
        Do(crate::conditions::check),
        NotNegative("disruptionsAllowed"),
        NotNegative("currentHealthy"),
        NotNegative("desiredHealthy"),
        NotNegative("expectedPods"),
    ],
)];

/// How upstream shows the spec: as Go names and orders its members.
fn shown(spec: &Field<'_>) -> String {
    const MEMBERS: [(&str, &str); 4] = [
        ("MinAvailable", "minAvailable"),
        ("Selector", "selector"),
        ("MaxUnavailable", "maxUnavailable"),
        ("UnhealthyPodEvictionPolicy", "unhealthyPodEvictionPolicy"),
    ];
    let shown = MEMBERS.map(|(name, member)| {
        let value = pintle_value::json::to_string(spec.get(member).value());
        format!("\"{name}\":{value}")
    });
    format!("{{{}}}", shown.join(","))
}

/// Checks a number of pods or a percentage.
fn count_or_percent(field: &Field<'_>, errors: &mut Errors) {
    match field.value() {
        Value::Int(..0) => errors.push(field.invalid(crate::checks::NOT_NEGATIVE)),
        Value::String(text) => {
            let wrong = percent(text);
            let part: Option<u64> = text.strip_suffix('%').and_then(|digits| digits.parse().ok());
            let is_part = wrong.is_empty();
            errors.extend(wrong.into_iter().map(|words| field.invalid(words)));
            if is_part && part.is_none_or(|part| part > 100) {
                errors.push(Error::invalid(
                    &field.path(),
                    field.value(),
                    "must not be greater than 100%",
                ));
            }
        }
        _ => {}
    }
}
