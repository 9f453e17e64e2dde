//! Preparation of a pod before it is validated.

use std::collections::BTreeMap;

use pintle_value::{Map, Value};

use super::{
    quality, total,
    validation::{APP_ARMOR, app_armor_profile},
};
use crate::{
    checks::{WARNINGS_MAX, items, members},
    field::{Errors, Field},
};

/// Prepares a new pod: resets its status, merges label keys into selectors, and copies AppArmor
/// profiles from annotations. Admission may have set resources of containers, so pod-level requests
/// that depend on them are set here again (upstream sets them whenever it reads the pod).
pub(crate) fn begin(pod: &mut Value) {
    begin_status(pod);
    merge_label_keys(pod);
    profiles_from_annotations(pod);
    total::set_defaults(pod.object_entry("spec"));
}

/// Sets the status of a new pod, which waits to be scheduled.
fn begin_status(pod: &mut Value) {
    let mut status = Map::new();
    status.insert("phase", "Pending");
    status.insert("qosClass", quality(pod));
    if !items(pod, &["spec", "schedulingGates"]).is_empty() {
        let gated = Value::from([
            ("type", Value::from("PodScheduled")),
            ("status", "False".into()),
            ("lastProbeTime", Value::Null),
            ("reason", "SchedulingGated".into()),
            ("message", "Scheduling is blocked due to non-empty scheduling gates".into()),
        ]);
        status.insert("conditions", vec![gated]);
    }
    pod.make_object().insert("status", status);
}

/// The longest value of a label. A pod with a longer one is refused, and copies of it could exhaust
/// the memory.
const LABEL_BYTES_MAX: usize = 63;

/// The most requirements that are added to selectors. A pod with more is too large to be stored: each
/// takes at least eleven bytes.
const REQUIREMENTS_MAX: usize = 200_000;

/// Adds requirements for the pod's own labels to the selectors that have `matchLabelKeys`.
fn merge_label_keys(pod: &mut Value) {
    let has = |member| pod.at(&["spec", member]).is_some();
    if !has("topologySpreadConstraints") && !has("affinity") {
        return;
    }
    let labels = pod.at(&["metadata", "labels"]).and_then(Value::as_object).cloned();
    let Some(mut labels) = labels.filter(|labels| !labels.is_empty()) else { return };
    labels.retain(|_, value| value.as_str().is_some_and(|v| v.len() <= LABEL_BYTES_MAX));
    let Some(spec) = pod.get_mut("spec") else { return };
    let mut left = REQUIREMENTS_MAX;
    for term in list(Some(spec), &["topologySpreadConstraints"]) {
        merge(term, ("matchLabelKeys", "In"), &labels, &mut left);
    }
    for side in ["podAffinity", "podAntiAffinity"] {
        let preferred = ["affinity", side, "preferredDuringSchedulingIgnoredDuringExecution"];
        let required = ["affinity", side, "requiredDuringSchedulingIgnoredDuringExecution"];
        for term in list(Some(spec), &preferred).filter_map(|term| term.get_mut("podAffinityTerm"))
        {
            merge_term(term, &labels, &mut left);
        }
        list(Some(spec), &required).for_each(|term| merge_term(term, &labels, &mut left));
    }
}

fn merge_term(term: &mut Value, labels: &Map, left: &mut usize) {
    merge(term, ("matchLabelKeys", "In"), labels, left);
    merge(term, ("mismatchLabelKeys", "NotIn"), labels, left);
}

fn merge(term: &mut Value, (keys, operator): (&str, &str), labels: &Map, left: &mut usize) {
    let keys: Vec<Value> = items(term, &[keys]).to_vec();
    let Some(Value::Object(selector)) = term.get_mut("labelSelector") else { return };
    for key in keys.iter().filter_map(Value::as_str) {
        let Some(value) = labels.get(key).filter(|_| *left > 0) else { continue };
        *left -= 1;
        let mut requirement = Map::new();
        requirement.insert("key", key);
        requirement.insert("operator", operator);
        requirement.insert("values", vec![value.clone()]);
        let expressions = selector.entry_or("matchExpressions", || Value::Array(Vec::new()));
        if let Some(expressions) = expressions.as_array_mut() {
            expressions.push(requirement.into());
        }
    }
}

/// The items of a list, to change.
fn list<'a>(object: Option<&'a mut Value>, at: &[&str]) -> impl Iterator<Item = &'a mut Value> {
    let found =
        at.iter().try_fold(object, |object, member| Some(object?.get_mut(member))).flatten();
    found.and_then(Value::as_array_mut).into_iter().flatten()
}

/// Copies AppArmor profiles from annotations, their old form, to the fields that are absent. Of
/// containers with the same name, which are refused, only the first one gets a copy.
fn profiles_from_annotations(pod: &mut Value) {
    if pod.str_at(&["spec", "os", "name"]) == Some("windows") {
        return;
    }
    let annotations = members(pod, &["metadata", "annotations"]).iter();
    let mut profiles: BTreeMap<String, Value> = annotations
        .filter_map(|(key, text)| Some((key.strip_prefix(APP_ARMOR)?, text.as_str()?)))
        .filter_map(|(name, text)| Some((name.to_owned(), profile_of(text)?)))
        .collect();
    if profiles.is_empty() {
        return;
    }
    let of_pod = pod.at(&["spec", "securityContext", "appArmorProfile"]).cloned();
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        for container in list(Some(pod), &["spec", containers]) {
            let has_profile = container.at(&["securityContext", "appArmorProfile"]).is_some();
            let profile = profiles.remove(container.str_at(&["name"]).unwrap_or_default());
            if let Some(profile) = profile.filter(|_| !has_profile)
                && Some(&profile) != of_pod.as_ref()
            {
                container.object_entry("securityContext").insert("appArmorProfile", profile);
            }
        }
    }
}

/// Warns of annotations for containers without a profile, unless they name the pod's profile.
pub(crate) fn warn_of_profiles(pod: &Value) -> Vec<String> {
    let pod = Field::root(pod);
    let (metadata, spec) = (pod.get("metadata"), pod.get("spec"));
    let annotations = metadata.get("annotations");
    if annotations.is_empty() || spec.at(&["os", "name"]).text() == "windows" {
        return Vec::new();
    }
    let of_pod = spec.at(&["securityContext", "appArmorProfile"]);
    let lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
    let containers = lists.flat_map(|list| spec.items(list));
    let unprofiled =
        containers.filter(|one| !one.at(&["securityContext", "appArmorProfile"]).is_set());
    let keys = unprofiled.map(|container| format!("{APP_ARMOR}{}", container.str("name")));
    let warned = keys.filter(|key| {
        let profile = profile_of(annotations.str(key));
        annotations.has(key) && (profile.is_none() || profile.as_ref() != of_pod.some())
    });
    let words = r#"deprecated since v1.30; use the "appArmorProfile" field instead"#;
    let warning = |key: String| format!("{}: {words}", annotations.path().key(&key));
    warned.take(WARNINGS_MAX).map(warning).collect()
}

/// The profile that an annotation names, if it is valid.
fn profile_of(annotation: &str) -> Option<Value> {
    let profile = match annotation {
        "unconfined" => Value::from([("type", "Unconfined")]),
        "runtime/default" => Value::from([("type", "RuntimeDefault")]),
        _ => {
            let name = annotation.strip_prefix("localhost/").filter(|name| !name.is_empty())?;
            Value::from([("type", "Localhost"), ("localhostProfile", name)])
        }
    };
    let mut errors = Errors::new();
    app_armor_profile(&Field::root(&profile), &mut errors);
    errors.is_empty().then_some(profile)
}
