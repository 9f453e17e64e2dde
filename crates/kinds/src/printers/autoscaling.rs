//! autoscaling: HorizontalPodAutoscalers and Scales.

use std::borrow::Cow;

use pintle_value::Value;

use super::column::Cell::{By, Int, Text};
use super::column::Description::Field;
use super::column::{AGE, NAME, NAME_TEXT, integer, string};
use super::read::{at, items_at, str_at};
use super::text::{amount, joined_with, with_more};
use super::{Columns, Kind};
use crate::conversion::autoscaler::to_v2;

const GROUP: &str = "autoscaling";

pub(super) const KINDS: &[Kind] = &[
    Kind::new(GROUP, "HorizontalPodAutoscaler", HORIZONTAL_POD_AUTOSCALER).with_form(in_v2),
    Kind::new(GROUP, "Scale", SCALE),
];

const HORIZONTAL_POD_AUTOSCALER: Columns = &[
    NAME,
    string(
        "Reference",
        By(reference),
        Field("autoscaling.v2.HorizontalPodAutoscalerSpec", "scaleTargetRef"),
    ),
    string("Targets", By(targets), Field("autoscaling.v2.HorizontalPodAutoscalerSpec", "metrics")),
    string(
        "MinPods",
        By(min_pods),
        Field("autoscaling.v2.HorizontalPodAutoscalerSpec", "minReplicas"),
    ),
    string(
        "MaxPods",
        Int("spec.maxReplicas"),
        Field("autoscaling.v2.HorizontalPodAutoscalerSpec", "maxReplicas"),
    ),
    string(
        "Replicas",
        Int("status.currentReplicas"),
        Field("autoscaling.v2.HorizontalPodAutoscalerStatus", "currentReplicas"),
    ),
    AGE,
];

/// The columns of the scale subresource of a built-in kind.
const SCALE: Columns = &[
    string("Name", Text("metadata.name"), NAME_TEXT),
    integer("Desired", Int("spec.replicas"), Field("autoscaling.v1.ScaleSpec", "replicas")),
    integer("Available", Int("status.replicas"), Field("autoscaling.v1.ScaleStatus", "replicas")),
    AGE,
];

/// An autoscaler in its v2 form, which has more members than v1.
fn in_v2(autoscaler: &Value) -> Cow<'_, Value> {
    let mut autoscaler = Cow::Borrowed(autoscaler);
    if str_at(&autoscaler, "apiVersion") == "autoscaling/v1" {
        to_v2(autoscaler.to_mut());
    }
    autoscaler
}

fn reference(autoscaler: &Value) -> Value {
    let target = at(autoscaler, "spec.scaleTargetRef").unwrap_or(&Value::Null);
    format!("{}/{}", str_at(target, "kind"), str_at(target, "name")).into()
}

fn min_pods(autoscaler: &Value) -> Value {
    match at(autoscaler, "spec.minReplicas").and_then(Value::as_int) {
        Some(number) => number.to_string().into(),
        None => "<unset>".into(),
    }
}

/// How many metrics the cell shows.
const SHOWN_MAX: usize = 2;

fn targets(autoscaler: &Value) -> Value {
    let metrics = items_at(autoscaler, "spec.metrics");
    if metrics.is_empty() {
        return "<none>".into();
    }
    let current = items_at(autoscaler, "status.currentMetrics");
    let texts =
        metrics.iter().enumerate().map(|(index, metric)| target(metric, current.get(index)));
    let shown = joined_with(texts.take(SHOWN_MAX), ", ");
    with_more(shown, metrics.len().saturating_sub(SHOWN_MAX)).into()
}

/// The current and the target value of a metric. `status` is the entry of the status at the same
/// index; an entry of another type is ignored.
fn target(metric: &Value, status: Option<&Value>) -> String {
    let kind = match str_at(metric, "type") {
        "External" => "external",
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let source = at(metric, kind).unwrap_or(&Value::Null);
    let status = status.and_then(|status| at(status, kind));
    let average = at(source, "target.averageValue");
    match kind {
        "external" | "object" if average.is_some() => {
            let current = status.and_then(|s| at(s, "current.averageValue"));
            let current = current.map_or_else(|| "<unknown>".to_owned(), amount);
            format!("{current}/{} (avg)", amount_or_nil(average))
        }
        "external" | "object" => {
            format!(
                "{}/{}",
                current(status, "current.value"),
                amount_or_nil(at(source, "target.value"))
            )
        }
        "pods" => format!("{}/{}", current(status, "current.averageValue"), amount_or_nil(average)),
        _ => {
            let name = str_at(source, "name");
            if average.is_some() {
                let current = current(status, "current.averageValue");
                return format!("{name}: {current}/{}", amount_or_nil(average));
            }
            let percent = |utilization: Option<&Value>, absent: &str| {
                let number = utilization.and_then(Value::as_int);
                number.map_or_else(|| absent.to_owned(), |number| format!("{number}%"))
            };
            let current = status.and_then(|s| at(s, "current.averageUtilization"));
            let wanted = at(source, "target.averageUtilization");
            format!("{name}: {}/{}", percent(current, "<unknown>"), percent(wanted, "<auto>"))
        }
    }
}

fn current(status: Option<&Value>, path: &str) -> String {
    status.map_or_else(|| "<unknown>".to_owned(), |status| amount_or_nil(at(status, path)))
}

/// A quantity, or Go's text for a nil one.
fn amount_or_nil(value: Option<&Value>) -> String {
    value.map_or_else(|| "<nil>".to_owned(), amount)
}
