//! Updates of pods: which members may change.

mod difference;
mod ephemeral;
mod resize;

use std::collections::{BTreeMap, BTreeSet};

use pintle_value::{Map, Value, order::Ordered};

use super::validation::{
    APP_ARMOR, MIRROR, Options, check_annotations, check_pod, check_tolerations,
};
use crate::{
    checks::same,
    field::{Errors, Field},
    formats::within,
    rules::required,
};

pub(crate) use difference::difference;
pub(crate) use ephemeral::validate_ephemeral_containers;
pub(crate) use resize::{confine_resize, validate_resize};

/// The members that may change, as the error for another change lists them.
const MAY_CHANGE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,\
    `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Validates an update of a pod.
pub(crate) fn validate_update(new: &Value, old: &Value) -> Errors {
    let options = Options::of_pod(old);
    let pod = Field::root(new);
    let mut errors = Errors::new();
    check_pod(&pod, options, &mut errors);
    check_annotation_changes(&pod, old, options, &mut errors);
    let spec = pod.get("spec");
    let old_spec = old.get("spec").unwrap_or(&Value::Null);
    for list in ["containers", "initContainers"] {
        if !check_images(&spec, old_spec, list, &mut errors) {
            return errors;
        }
    }
    if !check_deadline(&spec, old_spec, &mut errors) {
        return errors;
    }
    check_added_tolerations(&spec, old_spec, &mut errors);
    check_removed_gates(&spec, old_spec, &mut errors);
    if spec.value() != old_spec {
        check_rest(&spec, old_spec, &mut errors);
    }
    errors
}

/// Checks that the AppArmor annotations and the mirror annotation are unchanged, and checks all
/// annotations once more, as upstream does.
pub(crate) fn check_annotation_changes(
    pod: &Field<'_>,
    old: &Value,
    options: Options,
    errors: &mut Errors,
) {
    let annotations = pod.at(&["metadata", "annotations"]);
    let old = Field::root(old.at(&["metadata", "annotations"]).unwrap_or(&Value::Null));
    for (key, value) in old.pairs() {
        if annotations.value().get(key) == Some(value.value()) {
            continue;
        }
        let field = annotations.key(key);
        if key.starts_with(APP_ARMOR) {
            errors.push(field.forbidden("may not remove or update AppArmor annotations"));
        }
        if key == MIRROR {
            errors.push(field.forbidden("may not remove or update mirror pod annotation"));
        }
    }
    for (key, field) in annotations.pairs().filter(|(key, _)| !old.has(key)) {
        if key.starts_with(APP_ARMOR) {
            errors.push(field.forbidden("may not add AppArmor annotations"));
        }
        if key == MIRROR {
            errors.push(field.forbidden("may not add mirror pod annotation"));
        }
    }
    check_annotations(&annotations, &pod.get("spec"), options, errors);
}

/// Checks the images, which may change. Returns false if containers were added or removed.
fn check_images(spec: &Field<'_>, old: &Value, list: &str, errors: &mut Errors) -> bool {
    let count = old.get(list).and_then(Value::as_array).map_or(0, <[Value]>::len);
    if spec.items(list).len() != count {
        errors.push(spec.get(list).forbidden("pod updates may not add or remove containers"));
        return false;
    }
    for container in spec.items(list) {
        let image = container.get("image");
        required(&image, "", errors);
        if image.text().trim() != image.text() {
            errors.push(image.invalid("must not have leading or trailing whitespace"));
        }
    }
    true
}

/// Checks `activeDeadlineSeconds`, which may be set and then only be reduced. Returns false if
/// upstream checks nothing further.
fn check_deadline(spec: &Field<'_>, old: &Value, errors: &mut Errors) -> bool {
    let deadline = spec.get("activeDeadlineSeconds");
    let before = old.get("activeDeadlineSeconds").and_then(Value::as_int);
    match (deadline.int(), before) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            errors.push(deadline.invalid(within(0, i64::from(i32::MAX))));
            return false;
        }
        (Some(seconds), Some(before)) if before < seconds => {
            errors.push(deadline.invalid("must be less than or equal to previous value"));
            return false;
        }
        (None, Some(_)) => {
            let words = "must not update from a positive integer to nil value";
            errors.push(deadline.invalid(words));
        }
        _ => {}
    }
    true
}

/// Checks that tolerations are only added, and that only `tolerationSeconds` changes in the old
/// ones.
fn check_added_tolerations(spec: &Field<'_>, old: &Value, errors: &mut Errors) {
    let timeless = |toleration: &Value| {
        let mut toleration = toleration.clone();
        toleration.make_object().remove("tolerationSeconds");
        toleration
    };
    let remaining: BTreeSet<Ordered<Value>> =
        spec.items("tolerations").map(|t| Ordered(timeless(t.value()))).collect();
    let old = Field::root(old);
    let is_gone = |old: Field<'_>| !remaining.contains(&Ordered(timeless(old.value())));
    if old.items("tolerations").any(is_gone) {
        let words = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(spec.get("tolerations").forbidden(words));
    } else {
        check_tolerations(spec, errors);
    }
}

/// Checks that scheduling gates are only removed. Of new gates with one name, the last is reported.
fn check_removed_gates(spec: &Field<'_>, old: &Value, errors: &mut Errors) {
    let old = Field::root(old);
    let known: BTreeSet<&str> = old.items("schedulingGates").map(|gate| gate.str("name")).collect();
    let gates: Vec<Field<'_>> = spec.items("schedulingGates").collect();
    let last: BTreeMap<&str, usize> =
        gates.iter().enumerate().map(|(i, gate)| (gate.str("name"), i)).collect();
    for (i, gate) in gates.iter().enumerate() {
        let name = gate.str("name");
        if !known.contains(name) && last.get(name) == Some(&i) {
            let words = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(gate.get("name").forbidden(words));
        }
    }
}

/// Members of the spec whose changes are checked elsewhere.
const LOOKED_AT: &[&str] = &["activeDeadlineSeconds", "schedulingGates", "tolerations"];

/// Checks that all other members are unchanged.
fn check_rest(spec: &Field<'_>, old: &Value, errors: &mut Errors) {
    let mut munged = spec.value().clone();
    for member in LOOKED_AT {
        restore(&mut munged, old, member);
    }
    for list in ["containers", "initContainers"] {
        let new = munged.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        let old = old.get(list).and_then(Value::as_array).unwrap_or_default();
        new.zip(old).for_each(|(new, old)| restore(new, old, "image"));
    }
    let seconds = |spec: &Value| spec.get("terminationGracePeriodSeconds").and_then(Value::as_int);
    if seconds(old).is_some_and(|seconds| seconds < 0) && seconds(&munged) == Some(1) {
        restore(&mut munged, old, "terminationGracePeriodSeconds");
    }
    if munged.get("overhead").and_then(Value::as_object).is_some_and(Map::is_empty) {
        munged.make_object().remove("overhead");
    }
    let is_gated = !Field::root(old).get("schedulingGates").is_empty();
    if is_gated {
        check_gated(spec, old, &mut munged, errors);
    }
    if munged != *old {
        let shown = difference("core.PodSpec", old, &munged);
        let words = format!("pod updates may not change fields other than {MAY_CHANGE}\n{shown}");
        errors.push(spec.forbidden(words));
    }
}

/// Checks the node selector and the node affinity of a pod with scheduling gates, whose update may
/// only narrow the set of nodes on which the pod can run. Restores the stored values in `munged`.
fn check_gated(spec: &Field<'_>, old: &Value, munged: &mut Value, errors: &mut Errors) {
    const REQUIRED: &[&str] = &[
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    ];
    let old_spec = Field::root(old);
    let selector = spec.get("nodeSelector");
    let has = |(key, value): (&str, Field<'_>)| selector.value().get(key) == Some(value.value());
    if !old_spec.get("nodeSelector").pairs().all(has) {
        let words = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(selector.invalid(words));
    }
    restore(munged, old, "nodeSelector");

    let terms =
        |spec: &Value| spec.at(REQUIRED).and_then(Value::as_array).unwrap_or_default().to_vec();
    let (old_terms, new_terms) = (terms(old), terms(spec.value()));
    let field = spec.at(REQUIRED);
    if !old_terms.is_empty() && old_terms.len() != new_terms.len() {
        let words = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(field.invalid(words));
    } else if !old_terms.is_empty() {
        for (i, (new, old)) in new_terms.iter().zip(&old_terms).enumerate() {
            if !only_adds(new, old) {
                let path = field.path().index(i);
                let words = "only additions are allowed (no mutations or deletions)";
                errors.push(pintle_meta::field::Error::invalid(&path, new, words));
            }
        }
    }
    let old_affinity = old.at(&["affinity", "nodeAffinity"]);
    if !same(spec.value().at(&["affinity", "nodeAffinity"]), old_affinity) {
        let affinity = munged.object_entry("affinity");
        match old_affinity {
            Some(old) => affinity.insert("nodeAffinity", old.clone()),
            None => affinity.remove("nodeAffinity"),
        };
        if affinity.is_empty() && old.get("affinity").is_none() {
            munged.make_object().remove("affinity");
        }
    }
}

/// Whether a node selector term still begins with all its old requirements, in their order. An
/// empty term, which matches no node, must stay empty.
fn only_adds(new: &Value, old: &Value) -> bool {
    let list = |term: &Value, member: &str| {
        term.get(member).and_then(Value::as_array).unwrap_or_default().to_vec()
    };
    let members = ["matchExpressions", "matchFields"];
    let is_empty = |term: &Value| members.iter().all(|member| list(term, member).is_empty());
    let keeps = |member: &&str| list(new, member).starts_with(&list(old, member));
    (!is_empty(old) || is_empty(new)) && members.iter().all(keeps)
}

/// Restores the stored value of a member.
fn restore(new: &mut Value, old: &Value, member: &str) {
    match old.get(member) {
        Some(value) => new.make_object().insert(member, value.clone()),
        None => new.make_object().remove(member),
    };
}
