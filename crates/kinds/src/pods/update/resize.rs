//! Resizing: the resources of running containers, and of the pod as a whole, may change.

use pintle_value::{Path, Value};

use crate::{
    place::{Errors, Place},
    pods::{
        quality,
        validation::{MIRROR, Options, check_pod, is_sidecar},
    },
};

const LISTS: [&str; 2] = ["containers", "initContainers"];
const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// Keeps of the new containers their resources and resize policies, and everything else of the old.
/// Containers that are not the old ones are left to be refused.
pub(crate) fn confine_resize(new: &mut Value, old: &Value) {
    for list in LISTS {
        let old = old.at(&["spec", list]).and_then(Value::as_array).unwrap_or_default();
        let containers = new.get_mut("spec").and_then(|spec| spec.get_mut(list));
        let Some(Value::Array(containers)) = containers else { continue };
        let name = |container: &Value| container.str_at(&["name"]).map(ToOwned::to_owned);
        if containers.len() != old.len()
            || containers.iter().zip(old).any(|(new, old)| name(new) != name(old))
        {
            continue;
        }
        for (container, old) in containers.iter_mut().zip(old) {
            let mut kept = old.clone();
            for member in ["resources", "resizePolicy"] {
                match container.get(member) {
                    Some(value) => kept.make_object().insert(member, value.clone()),
                    None => kept.make_object().remove(member),
                };
            }
            *container = kept;
        }
    }
}

/// What is wrong with a resize.
pub(crate) fn validate_resize(new: &Value, old: &Value) -> Errors {
    // Upstream's path to the object itself reads `[]`.
    let refuse = |words| vec![pintle_meta::field::Error::forbidden(&Path::root().key(""), words)];
    if old.at(&["metadata", "annotations", MIRROR]).is_some() {
        return refuse("static pods cannot be resized");
    }
    if old.str_at(&["spec", "os", "name"]) == Some("windows") {
        return refuse("windows pods cannot be resized");
    }
    let pod = Place::root(new);
    let (spec, status) = (pod.get("spec"), pod.get("status"));
    let mut errors = Errors::new();
    check_pod(&pod, Options::of_pod(old), &mut errors);
    if quality(old) != quality(new) {
        let words = "Pod QOS Class may not change as a result of resizing";
        errors.push(spec.invalid_as(status.str("qosClass"), words));
    }
    if !is_supported(old) {
        errors.push(spec.forbidden("Pod running on node without support for resize"));
    }
    let old = Place::root(old);
    let old = old.get("spec");
    if !check_containers(&spec, &old, &mut errors) {
        return errors;
    }
    check_removals(&spec, &old, &mut errors);
    check_only_resizable(&spec, &old, &mut errors);
    errors
}

/// A kubelet that can resize tells the resources of running containers.
fn is_supported(pod: &Value) -> bool {
    let pod = Place::root(pod);
    let status = pod.get("status");
    let mut running =
        status.items("containerStatuses").filter(|one| one.at(&["state", "running"]).is_set());
    running.next().is_none_or(|one| one.has("resources"))
}

/// Containers stay, as they are called and in their order; whether they do.
fn check_containers(spec: &Place<'_>, old: &Place<'_>, errors: &mut Errors) -> bool {
    let before = errors.len();
    for list in LISTS {
        if spec.items(list).len() != old.items(list).len() {
            let words = format!("{list} may not be added or removed on resize");
            errors.push(spec.get(list).forbidden(words));
        }
    }
    if errors.len() > before {
        return false;
    }
    for list in LISTS {
        for (container, old) in spec.items(list).zip(old.items(list)) {
            if container.str("name") != old.str("name") {
                let words = format!("{list} may not be renamed or reordered on resize");
                errors.push(container.get("name").forbidden(words));
            }
        }
    }
    errors.len() == before
}

/// What is asked for can become more or less, but not nothing.
fn check_removals(spec: &Place<'_>, old: &Place<'_>, errors: &mut Errors) {
    for list in ["initContainers", "containers"] {
        for (container, old) in spec.items(list).zip(old.items(list)) {
            if list == "initContainers" && !is_sidecar(old.value()) {
                continue;
            }
            check_removed(&container.get("resources"), &old.get("resources"), errors);
        }
    }
    check_removed(&spec.get("resources"), &old.get("resources"), errors);
}

fn check_removed(new: &Place<'_>, old: &Place<'_>, errors: &mut Errors) {
    for list in ["requests", "limits"] {
        let kept = new.map(list);
        if old.map(list).keys().any(|name| !kept.contains_key(name)) {
            let words = format!("resource {list} cannot be removed");
            errors.push(new.get(list).forbidden(words));
        }
    }
}

/// Only CPU and memory can be resized, and only those of containers that last.
fn check_only_resizable(spec: &Place<'_>, old: &Place<'_>, errors: &mut Errors) {
    for (container, old) in spec.items("containers").zip(old.items("containers")) {
        if fixed_resources(&container) != fixed_resources(&old) {
            errors.push(spec.forbidden("only cpu and memory resources are mutable"));
        }
    }
    for (container, old) in spec.items("initContainers").zip(old.items("initContainers")) {
        if is_sidecar(container.value()) {
            if fixed_resources(&container) != fixed_resources(&old) {
                let words = "only cpu and memory resources for sidecar containers are mutable";
                errors.push(spec.forbidden(words));
            }
        } else if container.value() != old.value() {
            let words = "resources for non-sidecar init containers are immutable";
            errors.push(spec.forbidden(words));
        }
    }
    if fixed_resources(spec) != fixed_resources(old) {
        errors.push(spec.forbidden("only cpu and memory resources are mutable"));
    }
}

/// The resources of a container or pod that cannot be resized.
fn fixed_resources(owner: &Place<'_>) -> Value {
    let mut resources = owner.get("resources").value().clone();
    let members = resources.make_object();
    for list in ["requests", "limits"] {
        if let Some(Value::Object(amounts)) = members.get_mut(list) {
            amounts.retain(|name, _| !RESIZABLE.contains(&name.as_str()));
        }
    }
    members.retain(|_, value| *value != Value::object());
    resources
}
