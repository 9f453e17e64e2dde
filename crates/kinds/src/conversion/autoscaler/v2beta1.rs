//! `autoscaling/v2beta1`: its metrics have the form that v1 has in annotations; its behaviour is an
//! annotation.

use pintle_value::Value;

use super::{
    BEHAVIOR, SPEC, STATUS, Shapes, from_annotation, in_internal_form, in_order, lower,
    set_api_version, take_annotations, to_annotation, with_names,
};

/// Converts an autoscaler from v2beta1 to v2.
pub(crate) fn to_v2(autoscaler: &mut Value) {
    set_api_version(autoscaler, "autoscaling/v2");
    let [_, _, _, behavior] = take_annotations(autoscaler);
    metrics_to_v2(autoscaler, "spec", "metrics", &SPEC);
    metrics_to_v2(autoscaler, "status", "currentMetrics", &STATUS);
    if let Some(behavior) = behavior {
        autoscaler.object_entry("spec").insert("behavior", with_names(behavior, lower));
    }
}

/// Converts an autoscaler from v2 to v2beta1.
pub(crate) fn from_v2(autoscaler: &mut Value) {
    set_api_version(autoscaler, "autoscaling/v2beta1");
    take_annotations(autoscaler);
    metrics_from_v2(autoscaler, "spec", "metrics", &SPEC);
    metrics_from_v2(autoscaler, "status", "currentMetrics", &STATUS);
    let behavior = autoscaler.object_entry("spec").remove("behavior");
    if let Some(behavior) = behavior.filter(|behavior| !behavior.is_null()) {
        let text = in_order(&in_internal_form(behavior));
        let metadata = autoscaler.object_entry("metadata");
        metadata.entry_object("annotations").insert(BEHAVIOR, text);
    }
}

/// A metric of v2 as v2beta1 has it.
pub(crate) fn metric(metric: Value) -> Value {
    let flat = to_annotation(&[metric], &SPEC);
    flat.and_then(|flat| flat.as_array()?.first().cloned()).unwrap_or_default()
}

fn metrics_to_v2(autoscaler: &mut Value, part: &str, member: &'static str, shapes: &Shapes) {
    let part = autoscaler.get_mut(part).and_then(Value::as_object_mut);
    if let Some(Value::Array(metrics)) = part.and_then(|part| part.get_mut(member)) {
        for metric in metrics {
            *metric = from_annotation(std::mem::take(metric), shapes);
        }
    }
}

fn metrics_from_v2(autoscaler: &mut Value, part: &str, member: &'static str, shapes: &Shapes) {
    let part = autoscaler.get_mut(part).and_then(Value::as_object_mut);
    let Some(metrics) = part.and_then(|part| part.get_mut(member)) else { return };
    if let Some(flat) = metrics.as_array().and_then(|metrics| to_annotation(metrics, shapes)) {
        *metrics = flat;
    }
}
