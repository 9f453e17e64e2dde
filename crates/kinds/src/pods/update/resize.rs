//! Resizing: the resources of containers, and of the pod as a whole, may change while they run.

use pintle_value::{Path, Value};

use crate::{
    field::{Errors, Field},
    pods::{
        quality,
        validation::{MIRROR, Options, check_pod, is_sidecar},
    },
};

const LISTS: [&str; 2] = ["containers", "initContainers"];
const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// Takes the resources and resize policies from the new containers, and everything else from the
/// old ones. A list with other containers than the old one stays as it is; validation refuses it.
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
            let mut merged = old.clone();
            for member in ["resources", "resizePolicy"] {
                match container.get(member) {
                    Some(value) => merged.make_object().insert(member, value.clone()),
                    None => merged.make_object().remove(member),
                };
            }
            *container = merged;
        }
    }
}

/// Validates a resize.
pub(crate) fn validate_resize(new: &Value, old: &Value) -> Errors {
    // Upstream's path to the object itself reads `[]`.
    let refuse =
        |words: &str| pintle_meta::field::Error::forbidden(&Path::root().key(""), words).into();
    if old.at(&["metadata", "annotations", MIRROR]).is_some() {
        return refuse("static pods cannot be resized");
    }
    if old.str_at(&["spec", "os", "name"]) == Some("windows") {
        return refuse("windows pods cannot be resized");
    }
    let pod = Field::root(new);
    let (spec, status) = (pod.get("spec"), pod.get("status"));
    let mut errors = Errors::new();
    check_pod(&pod, Options::of_pod(old), &mut errors);
    let class = old.str_at(&["status", "qosClass"]).filter(|class| !class.is_empty());
    if class.unwrap_or_else(|| quality(old)) != quality(new) {
        let words = "Pod QOS Class may not change as a result of resizing";
        errors.push(spec.invalid_as(status.str("qosClass"), words));
    }
    if !is_supported(old) {
        errors.push(spec.forbidden("Pod running on node without support for resize"));
    }
    let old = Field::root(old);
    let old_spec = old.get("spec");
    check_pod_resources(&spec, &old_spec, &mut errors);
    if !old.at(&["status", "nodeAllocatableResourceClaimStatuses"]).is_empty() {
        let words = "pods with node allocatable resource claims cannot be resized";
        errors.push(spec.forbidden(words));
    }
    if check_containers(&spec, &old_spec, &mut errors) {
        check_removals(&spec, &old_spec, &mut errors);
        check_only_resizable(&spec, &old_spec, &mut errors);
    }
    errors
}

/// True if the kubelet supports resizes: it then reports the resources of running containers.
fn is_supported(pod: &Value) -> bool {
    let pod = Field::root(pod);
    let status = pod.get("status");
    let mut running =
        status.items("containerStatuses").filter(|one| one.at(&["state", "running"]).is_set());
    running.next().is_none_or(|one| one.has("resources"))
}

/// Checks pod-level resources.
fn check_pod_resources(spec: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (new, old) = (spec.get("resources"), old.get("resources"));
    let is_used =
        |one: &Field<'_>| !one.map("requests").is_empty() || !one.map("limits").is_empty();
    if !is_used(&new) && !is_used(&old) {
        return;
    }
    if old.is_set() && !new.is_set() {
        return errors.push(new.forbidden("pod-level resources cannot be removed"));
    }
    check_removed(&new, &old, "pod-level resource", errors);
    if fixed_resources(new.value()) != fixed_resources(old.value()) {
        let words = "only cpu and memory resources are mutable at pod-level";
        errors.push(spec.forbidden(words));
    }
}

/// Checks that containers keep their names and order; returns whether they do.
fn check_containers(spec: &Field<'_>, old: &Field<'_>, errors: &mut Errors) -> bool {
    let before = errors.len();
    for list in LISTS {
        if spec.items(list).len() != old.items(list).len() {
            let words = format!("{list} may not be added or removed on resize");
            errors.push(spec.get(list).forbidden(words));
            continue;
        }
        for (container, old) in spec.items(list).zip(old.items(list)) {
            if container.str("name") != old.str("name") {
                let words = format!("{list} may not be renamed or reordered on resize");
                errors.push(container.get("name").forbidden(words));
            }
        }
    }
    errors.len() == before && !errors.is_full()
}

/// Requests and limits can change, but cannot be removed.
fn check_removals(spec: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    for list in ["initContainers", "containers"] {
        for (container, old) in spec.items(list).zip(old.items(list)) {
            let (new, old) = (container.get("resources"), old.get("resources"));
            check_removed(&new, &old, "resource", errors);
        }
    }
}

fn check_removed(new: &Field<'_>, old: &Field<'_>, what: &str, errors: &mut Errors) {
    for list in ["requests", "limits"] {
        let names = new.map(list);
        if old.map(list).keys().any(|name| !names.contains_key(name)) {
            errors.push(new.get(list).forbidden(format!("{what} {list} cannot be removed")));
        }
    }
}

/// Only CPU and memory can be resized. A changed init container that is not a sidecar must not
/// have a resize policy that restarts it.
fn check_only_resizable(spec: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    for (container, old) in spec.items("containers").zip(old.items("containers")) {
        if !is_only_resized(container.value(), old.value()) {
            errors.push(spec.forbidden("only cpu and memory resources are mutable"));
        }
    }
    for (container, old) in spec.items("initContainers").zip(old.items("initContainers")) {
        if !is_only_resized(container.value(), old.value()) {
            let words = "only cpu and memory resources for init or sidecar containers are mutable";
            errors.push(container.forbidden(words));
        }
        let mut policies = container.items("resizePolicy");
        if container.value() != old.value()
            && !is_sidecar(container.value())
            && policies.any(|policy| policy.str("restartPolicy") == "RestartContainer")
        {
            let words = "non-sidecar init containers with a resize policy of RestartContainer \
                cannot be resized";
            errors.push(container.forbidden(words));
        }
    }
}

/// Whether two states of a container differ in nothing but CPU and memory. Upstream's
/// comparison drops the claims of one state, so containers with claims cannot be resized.
fn is_only_resized(new: &Value, old: &Value) -> bool {
    let fixed = |container: &Value, has_claims: bool| {
        let mut fixed = container.clone();
        let mut resources = fixed_resources(container.get("resources").unwrap_or(&Value::Null));
        if !has_claims {
            resources.make_object().remove("claims");
        }
        fixed.make_object().insert("resources", resources);
        fixed.make_object().retain(|_, value| *value != Value::Array(Vec::new()));
        fixed
    };
    fixed(new, false) == fixed(old, true)
}

/// The resources that cannot be resized.
fn fixed_resources(resources: &Value) -> Value {
    let mut resources = resources.clone();
    let members = resources.make_object();
    for list in ["requests", "limits"] {
        if let Some(Value::Object(amounts)) = members.get_mut(list) {
            amounts.retain(|name, _| !RESIZABLE.contains(&name.as_str()));
        }
    }
    members.retain(|_, value| *value != Value::object());
    resources
}
