//! The rules for HorizontalPodAutoscalers, in upstream's order and of the stored form (v2).

use pintle_meta::{GroupVersion, names};
use pintle_value::Value;

use crate::{
    amounts,
    checks::NOT_NEGATIVE,
    field::{Errors, Field},
    rules::{
        Rule::{At, Do, Named, NotNegative},
        Rules, check, required,
    },
};

const PERIOD_SECONDS_MAX: i64 = 1800;
const WINDOW_SECONDS_MAX: i64 = 3600;
const SELECT_POLICIES: &[&str] = &["Disabled", "Max", "Min"];
const POLICY_TYPES: &[&str] = &["Percent", "Pods"];

/// Validates an autoscaler; `old` is the stored one.
pub(super) fn validate(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let autoscaler = Field::root(new);
    let spec = autoscaler.get("spec");
    // HPAScaleToZero is off, but a stored minimum of 0 may stay.
    let sleeps = old.and_then(|old| old.at(&["spec", "minReplicas"])?.as_int()) == Some(0);
    let (least, most) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    let bound = i64::from(!sleeps);
    if least.int().is_some_and(|least| least < bound) {
        errors.push(least.invalid(format!("must be greater than or equal to {bound}")));
    }
    let count = most.int().unwrap_or(0);
    match count {
        0 => errors.push(most.required("must be set and greater than 0")),
        ..0 => errors.push(most.invalid("must be greater than or equal to 1")),
        _ => {}
    }
    if least.int().is_some_and(|least| count < least) {
        errors.push(most.invalid_as(count, "must be greater than or equal to `minReplicas`"));
    }
    let scaled = spec.get("scaleTargetRef");
    check_reference(&scaled, group_of_scaled(&scaled, old), &mut errors);
    let described = group_of_described(old);
    spec.items("metrics").for_each(|metric| check_metric(&metric, described, &mut errors));
    let scales_from_zero = |metric: Field<'_>| matches!(metric.str("type"), "Object" | "External");
    if least.int() == Some(0) && !spec.items("metrics").any(scales_from_zero) {
        let words = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(spec.get("metrics").forbidden(words));
    }
    let behavior = spec.get("behavior");
    for direction in ["scaleUp", "scaleDown"] {
        if let Some(rules) = behavior.find(direction) {
            check_behavior(&rules, &mut errors);
        }
    }
    errors
}

/// Validates an autoscaler's status.
pub(super) fn validate_status(autoscaler: &Value) -> Errors {
    crate::rules::errors(autoscaler, STATUS)
}

const STATUS: Rules =
    &[At("status", &[NotNegative("currentReplicas"), NotNegative("desiredReplicas")])];

const REFERENCE: Rules = &[Named("kind", names::path_segment), Named("name", names::path_segment)];

/// The check of a reference's API version.
#[derive(Clone, Copy)]
enum Group {
    /// The version must have a group.
    Named,
    /// The group may be absent.
    Optional,
    /// The version is not checked.
    Unchecked,
}

/// Of the core group, only ReplicationControllers can be scaled; an unchanged reference is
/// accepted.
fn group_of_scaled(scaled: &Field<'_>, old: Option<&Value>) -> Group {
    let is_unchanged = |old: &Value| {
        let old = old.at(&["spec", "scaleTargetRef"]).unwrap_or(&Value::Null);
        let same = |member| old.str_at(&[member]).unwrap_or_default() == scaled.str(member);
        same("apiVersion") && same("kind")
    };
    match scaled.str("kind") {
        _ if old.is_some_and(is_unchanged) => Group::Unchecked,
        "ReplicationController" => Group::Optional,
        _ => Group::Named,
    }
}

/// Metrics may describe objects of the core group. If a stored metric has an invalid version, no
/// versions are checked.
fn group_of_described(old: Option<&Value>) -> Group {
    let old = Field::root(old.unwrap_or(&Value::Null));
    let old = old.get("spec");
    let is_wrong = |metric: Field<'_>| {
        let version = metric.at(&["object", "describedObject", "apiVersion"]).text();
        metric.str("type") == "Object" && GroupVersion::parse(version).is_none()
    };
    if old.items("metrics").any(is_wrong) { Group::Unchecked } else { Group::Optional }
}

fn check_reference(reference: &Field<'_>, group: Group, errors: &mut Errors) {
    check(reference, REFERENCE, errors);
    let version = reference.get("apiVersion");
    match (group, GroupVersion::parse(version.text())) {
        (Group::Unchecked, _) => {}
        (_, None) => {
            let words = format!("unexpected GroupVersion string: {}", version.text());
            errors.push(version.invalid(words));
        }
        (Group::Named, Some(parsed)) if parsed.group.is_empty() => {
            errors.push(version.invalid_as(version.text(), "apiVersion must specify API group"));
        }
        _ => {}
    }
}

fn check_behavior(rules: &Field<'_>, errors: &mut Errors) {
    let window = rules.get("stabilizationWindowSeconds");
    match window.int() {
        Some(..0) => errors.push(window.invalid("must be greater than or equal to zero")),
        Some(seconds) if seconds > WINDOW_SECONDS_MAX => {
            let words = format!("must be less than or equal to {WINDOW_SECONDS_MAX}");
            errors.push(window.invalid(words));
        }
        _ => {}
    }
    let select = rules.get("selectPolicy");
    if select.is_set() && !SELECT_POLICIES.contains(&select.text()) {
        errors.push(select.not_supported(SELECT_POLICIES));
    }
    required(&rules.get("policies"), "must specify at least one Policy", errors);
    rules.items("policies").for_each(|policy| check_policy(&policy, errors));
    let tolerance = rules.get("tolerance");
    if amounts::parse(&tolerance).is_some_and(|tolerance| tolerance.signum() < 0) {
        errors.push(tolerance.invalid(NOT_NEGATIVE));
    }
}

fn check_policy(policy: &Field<'_>, errors: &mut Errors) {
    let kind = policy.get("type");
    if !POLICY_TYPES.contains(&kind.text()) {
        errors.push(kind.not_supported(POLICY_TYPES));
    }
    for member in ["value", "periodSeconds"] {
        let field = policy.get(member);
        let number = field.int().unwrap_or(0);
        if number <= 0 {
            errors.push(field.invalid_as(number, "must be greater than zero"));
        }
    }
    let period = policy.get("periodSeconds");
    if period.int().is_some_and(|seconds| seconds > PERIOD_SECONDS_MAX) {
        errors.push(period.invalid(format!("must be less than or equal to {PERIOD_SECONDS_MAX}")));
    }
}

/// A type of metric: its name, the member with its source, and the rules of the source.
struct Source {
    name: &'static str,
    member: &'static str,
    rules: Rules,
}

/// In upstream's order of validation.
const SOURCES: &[Source] = &[
    Source { name: "Object", member: "object", rules: OBJECT },
    Source { name: "External", member: "external", rules: EXTERNAL },
    Source { name: "Pods", member: "pods", rules: PODS },
    Source { name: "Resource", member: "resource", rules: RESOURCE },
    Source { name: "ContainerResource", member: "containerResource", rules: CONTAINER },
];

const SOURCE_NAMES: &[&str] = &["ContainerResource", "External", "Object", "Pods", "Resource"];

fn check_metric(metric: &Field<'_>, described: Group, errors: &mut Errors) {
    let kind = metric.get("type");
    if kind.is_empty() {
        errors.push(kind.required("must specify a metric source type"));
    }
    let source = SOURCES.iter().find(|source| source.name == kind.text());
    if source.is_none() {
        errors.push(kind.not_supported(SOURCE_NAMES));
    }
    let present = || SOURCES.iter().filter(|source| metric.has(source.member));
    if let Some(first) = present().next() {
        if first.name == "Object" {
            let object = metric.get(first.member);
            check_reference(&object.get("describedObject"), described, errors);
        }
        check(&metric.get(first.member), first.rules, errors);
    }
    match source {
        Some(source) if !metric.has(source.member) => {
            let words = "must populate information for the given metric source";
            errors.push(metric.get(source.member).required(words));
        }
        Some(_) => {}
        None => errors.push(kind.not_supported(SOURCE_NAMES)),
    }
    if present().count() != 1 {
        let expected = source.map(|source| source.member);
        for other in present().filter(|other| Some(other.member) != expected) {
            let words = "must populate the given metric source only";
            errors.push(metric.get(other.member).forbidden(words));
        }
    }
}

const OBJECT: Rules = &[
    Do(identifier),
    Do(target),
    Do(|source, errors| {
        let target = source.get("target");
        if !target.has("value") && !target.has("averageValue") {
            let words = "must set either a target value or averageValue";
            errors.push(target.get("averageValue").required(words));
        }
    }),
];

const EXTERNAL: Rules = &[
    Do(identifier),
    Do(target),
    Do(|source, errors| {
        let target = source.get("target");
        match (target.has("value"), target.has("averageValue")) {
            (false, false) => {
                let words = "must set either a target value for metric or a per-pod target";
                errors.push(target.get("averageValue").required(words));
            }
            (true, true) => {
                let words = "may not set both a target value for metric and a per-pod target";
                errors.push(target.get("value").forbidden(words));
            }
            _ => {}
        }
    }),
];

const PODS: Rules = &[
    Do(identifier),
    Do(target),
    Do(|source, errors| {
        let target = source.get("target");
        if !target.has("averageValue") {
            let words = "must specify a positive target averageValue";
            errors.push(target.get("averageValue").required(words));
        }
    }),
];

const RESOURCE: Rules = &[
    Do(|source, errors| required(&source.get("name"), "must specify a resource name", errors)),
    Do(target),
    Do(value_or_utilization),
];

const CONTAINER: Rules = &[
    Do(|source, errors| {
        let name = source.get("name");
        required(&name, "must specify a resource name", errors);
        if !name.is_empty() {
            amounts::container_name(&name, name.text(), errors);
        }
        let container = source.get("container");
        required(&container, "must specify a container", errors);
        if !container.is_empty() {
            container.all_invalid(names::dns1123_label(container.text()), errors);
        }
    }),
    Do(target),
    Do(value_or_utilization),
];

fn value_or_utilization(source: &Field<'_>, errors: &mut Errors) {
    let target = source.get("target");
    match (target.has("averageUtilization"), target.has("averageValue")) {
        (false, false) => {
            let words = "must set either a target raw value or a target utilization";
            errors.push(target.get("averageUtilization").required(words));
        }
        (true, true) => {
            let words = "may not set both a target raw value and a target utilization";
            errors.push(target.get("averageValue").forbidden(words));
        }
        _ => {}
    }
}

fn identifier(source: &Field<'_>, errors: &mut Errors) {
    let metric = source.get("metric");
    let name = metric.get("name");
    required(&name, "must specify a metric name", errors);
    if !name.is_empty() {
        name.all_invalid(names::path_segment(name.text()), errors);
    }
}

fn target(source: &Field<'_>, errors: &mut Errors) {
    let target = source.get("target");
    let kind = target.get("type");
    required(&kind, "must specify a metric target type", errors);
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        let words = "must be either Utilization, Value, or AverageValue";
        errors.push(kind.invalid_as(kind.text(), words));
    }
    for member in ["value", "averageValue"] {
        let field = target.get(member);
        if amounts::parse(&field).is_some_and(|amount| amount.signum() != 1) {
            errors.push(field.invalid("must be positive"));
        }
    }
    let utilization = target.get("averageUtilization");
    if utilization.int().is_some_and(|percent| percent < 1) {
        errors.push(utilization.invalid("must be greater than 0"));
    }
}
