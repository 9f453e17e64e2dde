//! HorizontalPodAutoscalers: `autoscaling/v1`, stored as `autoscaling/v2`.
//!
//! v1 has one metric, the utilization of CPU. Four annotations have everything else as JSON, in
//! forms that upstream fixed long ago: metrics as `v2beta1` had them, the behaviour with Go's
//! member names.

pub(crate) mod v2beta1;

use pintle_value::{Map, Str, Value, json};

use super::set_api_version;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// v1's names of the target and the current utilization of CPU.
const TARGET: &str = "targetCPUUtilizationPercentage";
const CURRENT: &str = "currentCPUUtilizationPercentage";

/// The metric of an autoscaler that has none: pods should use 80 percent of the CPU that they
/// request.
pub(crate) fn cpu_default() -> Value {
    cpu_metric("target", &Value::Int(80))
}

/// Converts an autoscaler from `autoscaling/v1` to `autoscaling/v2`.
pub(crate) fn to_v2(autoscaler: &mut Value) {
    set_api_version(autoscaler, "autoscaling/v2");
    let [metrics, current, conditions, behavior] = take_annotations(autoscaler);
    let spec = autoscaler.object_entry("spec");
    let target = spec.remove(TARGET).filter(|target| !target.is_null());
    let mut metrics: Vec<Value> =
        list(metrics).into_iter().map(|metric| from_annotation(metric, &SPEC)).collect();
    set_cpu_target(&mut metrics, target);
    if metrics.is_empty() {
        metrics.push(cpu_default());
    }
    spec.insert("metrics", metrics);
    if let Some(behavior) = behavior {
        spec.insert("behavior", with_names(behavior, lower));
    }
    if let Some(Value::Object(status)) = autoscaler.get_mut("status") {
        // v1 has `currentReplicas` even if it is 0.
        if status.get("currentReplicas") == Some(&Value::Int(0)) {
            status.remove("currentReplicas");
        }
    }
    let Some(Value::Object(status)) = autoscaler.get_mut("status") else {
        return set_status(autoscaler, current, conditions);
    };
    if let Some(percentage) = status.remove(CURRENT).filter(|p| !p.is_null())
        && current.is_none()
    {
        status.insert("currentMetrics", vec![cpu_metric("current", &percentage)]);
    }
    set_status(autoscaler, current, conditions);
}

/// Converts an autoscaler from `autoscaling/v2` to `autoscaling/v1`.
pub(crate) fn from_v2(autoscaler: &mut Value) {
    set_api_version(autoscaler, "autoscaling/v1");
    // The server makes these annotations, so an object's own ones are dropped.
    take_annotations(autoscaler);
    let mut annotations = Vec::new();
    let spec = autoscaler.object_entry("spec");
    if let Some(Value::Array(metrics)) = spec.remove("metrics") {
        let target = metrics.iter().find_map(|metric| cpu_utilization(metric, "target")).cloned();
        // v1 has a member for CPU utilization, so this metric needs no annotation at any index.
        let others = metrics.into_iter().filter(|m| cpu_utilization(m, "target").is_none());
        annotations.push((METRICS, to_annotation(&others.collect::<Vec<_>>(), &SPEC)));
        if let Some(target) = target {
            spec.insert(TARGET, target);
        }
    }
    let behavior = spec.remove("behavior").map(in_internal_form);
    annotations.push((BEHAVIOR, behavior));
    if let Some(Value::Object(status)) = autoscaler.get_mut("status") {
        status.entry_or("currentReplicas", || Value::Int(0));
        if let Some(Value::Array(metrics)) = status.remove("currentMetrics") {
            let current = metrics.iter().find_map(|metric| cpu_utilization(metric, "current"));
            if let Some(percentage) = current.cloned() {
                status.insert(CURRENT, percentage);
            }
            annotations.push((CURRENT_METRICS, to_annotation(&metrics, &STATUS)));
        }
        annotations.push((CONDITIONS, status.remove("conditions").filter(|c| !is_empty(c))));
    }
    for (annotation, value) in annotations {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            let metadata = autoscaler.object_entry("metadata");
            metadata.entry_object("annotations").insert(annotation, in_order(&value));
        }
    }
}

/// The behavior in upstream's internal form, whose rules always have `Tolerance`.
fn in_internal_form(behavior: Value) -> Value {
    let mut behavior = with_names(behavior, upper);
    for direction in ["ScaleUp", "ScaleDown"] {
        if let Some(Value::Object(rules)) = behavior.get_mut(direction) {
            rules.entry_or("Tolerance", || Value::Null);
        }
    }
    behavior
}

/// The members in annotations, in the order in which upstream declares them.
const ORDER: &[&str] = &[
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "target",
    "kind",
    "name",
    "apiVersion",
    "metricName",
    "metricSelector",
    "targetValue",
    "currentValue",
    "targetAverageUtilization",
    "currentAverageUtilization",
    "targetAverageValue",
    "currentAverageValue",
    "container",
    "selector",
    "averageValue",
    "matchLabels",
    "matchExpressions",
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Tolerance",
    "Type",
    "Value",
    "PeriodSeconds",
];

/// A value as JSON with its members in upstream's order, because clients may compare the text.
fn in_order(value: &Value) -> String {
    let mut text = String::new();
    write_in_order(value, &mut text);
    text
}

/// Writes into one text, because annotations of clients may have values of any depth.
fn write_in_order(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let field = |member: &Str| ORDER.iter().position(|known| known == member);
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_cached_key(|(member, _)| field(member).unwrap_or(ORDER.len()));
            text.push('{');
            for (i, (member, value)) in members.into_iter().enumerate() {
                text.push_str(if i == 0 { "" } else { "," });
                text.push_str(&json::to_string(&Value::from(member.as_str())));
                text.push(':');
                write_in_order(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                text.push_str(if i == 0 { "" } else { "," });
                write_in_order(item, text);
            }
            text.push(']');
        }
        other => text.push_str(&json::to_string(other)),
    }
}

/// A metric's member in v2, as a path, and in the annotation.
type Names = (&'static [&'static str], &'static str);

/// The forms of metrics in an annotation: the member of each type of metric, and the names of the
/// members in it.
type Shapes = [(&'static str, &'static [Names]); 5];

const SPEC: Shapes = [
    (
        "resource",
        &[
            (&["target", "averageUtilization"], "targetAverageUtilization"),
            (&["target", "averageValue"], "targetAverageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            (&["target", "averageUtilization"], "targetAverageUtilization"),
            (&["target", "averageValue"], "targetAverageValue"),
        ],
    ),
    (
        "pods",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["target", "averageValue"], "targetAverageValue"),
        ],
    ),
    (
        "object",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["target", "value"], "targetValue"),
            (&["target", "averageValue"], "averageValue"),
            (&["describedObject"], "target"),
        ],
    ),
    (
        "external",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "metricSelector"),
            (&["target", "value"], "targetValue"),
            (&["target", "averageValue"], "targetAverageValue"),
        ],
    ),
];

const STATUS: Shapes = [
    (
        "resource",
        &[
            (&["current", "averageUtilization"], "currentAverageUtilization"),
            (&["current", "averageValue"], "currentAverageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            (&["current", "averageUtilization"], "currentAverageUtilization"),
            (&["current", "averageValue"], "currentAverageValue"),
        ],
    ),
    (
        "pods",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["current", "averageValue"], "currentAverageValue"),
        ],
    ),
    (
        "object",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["current", "value"], "currentValue"),
            (&["current", "averageValue"], "averageValue"),
            (&["describedObject"], "target"),
        ],
    ),
    (
        "external",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "metricSelector"),
            (&["current", "value"], "currentValue"),
            (&["current", "averageValue"], "currentAverageValue"),
        ],
    ),
];

/// Metrics as an annotation; `None` without metrics.
fn to_annotation(metrics: &[Value], shapes: &Shapes) -> Option<Value> {
    if metrics.is_empty() {
        return None;
    }
    let flat = metrics.iter().cloned().map(|mut metric| {
        for (member, names) in shapes {
            let Some(Value::Object(source)) = metric.get_mut(member) else { continue };
            flatten(source, names);
        }
        metric
    });
    Some(Value::Array(flat.collect()))
}

/// Moves members from their paths to their flat names. They are collected first and inserted when
/// all are moved, because `target` is a name in both forms.
fn flatten(source: &mut Map, names: &[Names]) {
    let mut flat = Map::new();
    for (path, name) in names {
        let Some((last, parents)) = path.split_last() else { continue };
        let parent = match parents {
            [parent, ..] => source.get_mut(parent).and_then(Value::as_object_mut),
            [] => Some(&mut *source),
        };
        if let Some(value) = parent.and_then(|parent| parent.remove(last)) {
            flat.insert(*name, value);
        }
    }
    // Only the type is left in these members, and the type follows from the other members.
    ["metric", "target", "current"].iter().for_each(|nested| _ = source.remove(nested));
    for (name, value) in flat {
        source.insert(name, value);
    }
}

/// A metric of an annotation in its v2 form.
fn from_annotation(mut metric: Value, shapes: &Shapes) -> Value {
    for (member, names) in shapes {
        let Some(Value::Object(source)) = metric.get_mut(member) else { continue };
        let mut flat: Vec<(&Names, Value)> = Vec::new();
        for row in *names {
            if let Some(value) = source.remove(row.1).filter(|value| !value.is_null()) {
                flat.push((row, value));
            }
        }
        if *member == "object" {
            drop_zero_target(&mut flat);
        }
        for ((path, _), value) in flat {
            if let [parent, last] = path {
                source.entry_object(parent).insert(*last, value);
            } else {
                path.iter().for_each(|name| _ = source.insert(*name, value.clone()));
            }
        }
        if names.iter().any(|(path, _)| path.first() == Some(&"target")) {
            set_target_type(member, source.entry_object("target"));
        }
    }
    metric
}

/// Drops an object's target value of 0 beside an average: upstream writes an absent value as 0, and
/// a target of 0 is not valid.
fn drop_zero_target(flat: &mut Vec<(&Names, Value)>) {
    if flat.iter().any(|((path, _), _)| *path == ["target", "averageValue"]) {
        flat.retain(|((path, _), value)| {
            *path != ["target", "value"] || value.as_str() != Some("0")
        });
    }
}

/// Sets the type of a target, which follows from the metric's member and the target's members.
fn set_target_type(metric: &str, target: &mut Map) {
    let has = |member| target.contains_key(member);
    let name = match metric {
        "resource" | "containerResource" if has("averageUtilization") => "Utilization",
        "external" if has("value") => "Value",
        "object" if !has("averageValue") => "Value",
        _ => "AverageValue",
    };
    target.insert("type", name);
}

/// Inserts v1's CPU target into the metrics, at its old index or at the end.
fn set_cpu_target(metrics: &mut Vec<Value>, target: Option<Value>) {
    let at = metrics.iter().position(|metric| cpu_utilization(metric, "target").is_some());
    match (at, target) {
        (Some(at), Some(target)) => metrics[at] = cpu_metric("target", &target),
        (Some(at), None) => _ = metrics.remove(at),
        (None, Some(target)) => metrics.push(cpu_metric("target", &target)),
        (None, None) => {}
    }
}

/// The CPU utilization, if the metric is about that.
fn cpu_utilization<'a>(metric: &'a Value, part: &str) -> Option<&'a Value> {
    let is_cpu = metric.str_at(&["type"]) == Some("Resource")
        && metric.str_at(&["resource", "name"]) == Some("cpu");
    metric.at(&["resource", part, "averageUtilization"]).filter(|v| is_cpu && !v.is_null())
}

/// `part` is `target` or `current`.
fn cpu_metric(part: &'static str, percentage: &Value) -> Value {
    let mut measure = Map::new();
    measure.insert("averageUtilization", percentage.clone());
    if part == "target" {
        measure.insert("type", "Utilization");
    }
    let mut resource = Map::new();
    resource.insert("name", "cpu");
    resource.insert(part, measure);
    let mut metric = Map::new();
    metric.insert("type", "Resource");
    metric.insert("resource", resource);
    Value::Object(metric)
}

fn set_status(autoscaler: &mut Value, current: Option<Value>, conditions: Option<Value>) {
    if let Some(current) = current {
        let metrics = list(Some(current)).into_iter();
        let metrics: Vec<Value> = metrics.map(|metric| from_annotation(metric, &STATUS)).collect();
        autoscaler.object_entry("status").insert("currentMetrics", metrics);
    }
    if let Some(conditions) = conditions {
        autoscaler.object_entry("status").insert("conditions", conditions);
    }
}

/// Removes the four annotations and parses them as JSON. Unreadable annotations are dropped, as in
/// upstream.
fn take_annotations(autoscaler: &mut Value) -> [Option<Value>; 4] {
    let metadata = autoscaler.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(metadata) = metadata else { return Default::default() };
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else {
        return Default::default();
    };
    let taken = [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR].map(|annotation| {
        let text = annotations.remove(annotation)?;
        json::parse(text.as_str()?.as_bytes()).ok().filter(|value| !value.is_null())
    });
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    taken
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(<[Value]>::is_empty)
}

/// Returns the tree with renamed members and without nulls.
fn with_names(value: Value, name: fn(&str) -> Str) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(member, value)| (name(&member), with_names(value, name)))
                .collect(),
        ),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| with_names(item, name)).collect())
        }
        other => other,
    }
}

/// `scaleUp` as `ScaleUp`.
fn upper(name: &str) -> Str {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// `ScaleUp` as `scaleUp`.
fn lower(name: &str) -> Str {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}
