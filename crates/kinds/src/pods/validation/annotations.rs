//! Annotations of pods with rules: mirrors of static pods, deletion cost, and the old form of
//! seccomp and AppArmor profiles.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use pintle_value::Value;

use super::{Options, Spec, security, volumes::local_path};
use crate::field::{Errors, Field};

pub(crate) const MIRROR: &str = "kubernetes.io/config.mirror";
pub(crate) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
pub(crate) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
pub(crate) const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Checks the annotations of a pod, or of the pods of a template.
pub(crate) fn check_annotations(
    annotations: &Field<'_>,
    spec: &Field<'_>,
    options: Options,
    errors: &mut Errors,
) {
    for (key, value) in annotations.pairs() {
        if key == MIRROR && spec.str("nodeName").is_empty() {
            let words = "must set spec.nodeName if mirror pod annotation is set";
            errors.push(value.invalid(words));
        }
    }
    for (key, value) in annotations.pairs() {
        if key == DELETION_COST && !is_cost(value.text()) && !options.any_deletion_cost {
            errors.push(value.invalid("must be a 32bit integer"));
        }
    }
    for (key, value) in annotations.pairs() {
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            let value = annotations.of(value.value());
            check_seccomp(&value.under(key), errors);
        }
    }
    let spec = Spec::of(spec, options);
    let names = || spec.all_containers().map(|one| one.str("name"));
    let containers = LazyCell::new(|| names().collect::<BTreeSet<&str>>());
    for (key, value) in annotations.pairs() {
        let Some(name) = key.strip_prefix(APP_ARMOR) else { continue };
        if !containers.contains(name) {
            errors.push(value.invalid_as(name, "container not found"));
        }
        if !is_app_armor(value.text()) {
            let words = format!("invalid AppArmor profile name: {:?}", value.text());
            errors.push(value.invalid(words));
        }
    }
}

/// Whether annotations have an invalid deletion cost.
pub(super) fn has_invalid_cost(annotations: Option<&Value>) -> bool {
    let cost = annotations.and_then(|annotations| annotations.str_at(&[DELETION_COST]));
    cost.is_some_and(|cost| !is_cost(cost))
}

fn is_cost(text: &str) -> bool {
    let is_plain = text == "0" || text.starts_with(|c: char| c == '-' || ('1'..='9').contains(&c));
    is_plain && text.parse::<i32>().is_ok()
}

fn check_seccomp(value: &Field<'_>, errors: &mut Errors) {
    match value.text() {
        "runtime/default" | "docker/default" | "unconfined" => {}
        text => match text.strip_prefix("localhost/") {
            Some(path) => {
                let path = Value::from(path);
                local_path(&value.of(&path), errors);
            }
            None => errors.push(value.invalid("must be a valid seccomp profile")),
        },
    }
}

fn is_app_armor(text: &str) -> bool {
    matches!(text, "" | "runtime/default" | "unconfined") || text.starts_with("localhost/")
}

/// Whether annotations have a profile in the old form.
pub(crate) fn have_profiles(annotations: &Field<'_>) -> bool {
    annotations.pairs().any(|(key, _)| {
        key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) || key.starts_with(APP_ARMOR)
    })
}

/// Checks that the profile in a field equals the one in its old annotation.
pub(crate) fn check_agreement(annotations: &Field<'_>, spec: &Spec<'_>, errors: &mut Errors) {
    if !have_profiles(annotations) {
        return;
    }
    let pod = spec.field.at(&["securityContext", "seccompProfile"]);
    agree(annotations.value().str_at(&[SECCOMP_POD]), &pod, "seccomp", &pod, errors);
    for container in spec.all_containers() {
        let key = format!("{SECCOMP_CONTAINER}{}", container.str("name"));
        let field = container.at(&["securityContext", "seccompProfile"]);
        agree(annotations.value().str_at(&[&key]), &field, "seccomp", &field, errors);
    }
    if spec.field.at(&["os", "name"]).text() == "windows" {
        return;
    }
    let pod = spec.field.at(&["securityContext", "appArmorProfile"]);
    let is_too_long = pod.str("localhostProfile").len() > security::PROFILE_LENGTH_MAX;
    for container in spec.all_containers() {
        let key = format!("{APP_ARMOR}{}", container.str("name"));
        let own = container.at(&["securityContext", "appArmorProfile"]);
        // A profile of the pod that is too long is refused, and not compared for each container.
        if is_too_long && !own.is_set() {
            continue;
        }
        let profile = if own.is_set() { own } else { pod };
        agree(annotations.value().str_at(&[&key]), &profile, "apparmor", &own, errors);
    }
}

/// Compares a profile with its annotation; errors have the path of `at`.
fn agree(
    annotation: Option<&str>,
    profile: &Field<'_>,
    what: &str,
    at: &Field<'_>,
    errors: &mut Errors,
) {
    let Some(annotation) = annotation.filter(|_| profile.is_set()) else { return };
    let is_same_type = match profile.str("type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => {
            annotation == "runtime/default" || (what == "seccomp" && annotation == "docker/default")
        }
        "Localhost" => annotation.starts_with("localhost/"),
        _ => true,
    };
    if !is_same_type {
        let words = format!("{what} type in annotation and field must match");
        errors.push(at.get("type").forbidden(words));
    } else if let ("Localhost", Some(file)) =
        (profile.str("type"), annotation.strip_prefix("localhost/"))
        && profile.str("localhostProfile") != file
    {
        let words = format!("{what} profile in annotation and field must match");
        errors.push(at.get("localhostProfile").forbidden(words));
    }
}
