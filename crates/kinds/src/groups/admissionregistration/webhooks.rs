//! The rules for webhook configurations, validating and mutating, in upstream's order.

use std::collections::BTreeSet;

use pintle_crd::check_webhook_url;
use pintle_meta::{field::Error, names, validation};
use pintle_value::Value;

use super::rules::{FAILURE_POLICIES, MATCH_POLICIES, RULE, check_conditions};
use crate::{
    checks::items,
    field::{Errors, Field},
    formats::port_number,
    rules::{
        Rule::{Each, OneOf},
        check, required,
    },
};

const REVIEW_VERSIONS: &[&str] = &["v1", "v1beta1"];
const HARMLESS: &[&str] = &["None", "NoneOnDryRun"];
const SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun", "Some", "Unknown"];
const REINVOCATION: &[&str] = &["IfNeeded", "Never"];

/// Validates a configuration. Some errors are accepted if the stored configuration already has
/// them.
pub(super) fn validate(new: &Value, old: Option<&Value>) -> Errors {
    let stored = old.map(|old| items(old, &["webhooks"]));
    let all = |rule: fn(&Value) -> bool| stored.is_none_or(|hooks| hooks.iter().all(rule));
    let needs_harmless = all(|hook| {
        hook.str_at(&["sideEffects"]).is_some_and(|effects| HARMLESS.contains(&effects))
    });
    let needs_version = all(|hook| {
        let versions = items(hook, &["admissionReviewVersions"]);
        versions.is_empty() || versions.iter().any(is_known_version)
    });
    let names = |hooks: &[Value]| -> BTreeSet<String> {
        let names = hooks.iter().filter_map(|hook| hook.str_at(&["name"]));
        names.map(str::to_owned).collect()
    };
    let needs_unique = stored.is_none_or(|hooks| names(hooks).len() == hooks.len());
    let conditions = |hooks: &[Value]| -> Vec<Value> {
        hooks.iter().map(|hook| hook.get("matchConditions").cloned().unwrap_or_default()).collect()
    };
    let has_new_conditions =
        stored.is_none_or(|hooks| conditions(hooks) != conditions(items(new, &["webhooks"])));
    let mut errors = Errors::new();
    let mut seen = BTreeSet::new();
    for hook in Field::root(new).items("webhooks") {
        check_hook(&hook, needs_harmless, &mut errors);
        if has_new_conditions {
            check_conditions(&hook, &mut errors);
        }
        check_versions(&hook, needs_version, &mut errors);
        let name = hook.get("name");
        if needs_unique && !name.is_empty() && !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
    }
    errors
}

fn is_known_version(version: &Value) -> bool {
    version.as_str().is_some_and(|version| REVIEW_VERSIONS.contains(&version))
}

fn check_hook(hook: &Field<'_>, needs_harmless: bool, errors: &mut Errors) {
    full_name(&hook.get("name"), errors);
    check(hook, &[Each("rules", RULE)], errors);
    check(
        hook,
        &[OneOf("failurePolicy", FAILURE_POLICIES), OneOf("matchPolicy", MATCH_POLICIES)],
        errors,
    );
    let allowed = if needs_harmless { HARMLESS } else { SIDE_EFFECTS };
    let effects = hook.get("sideEffects");
    if !effects.is_set() {
        errors.push(effects.required(&format!("must specify one of {}", allowed.join(", "))));
    } else if !allowed.contains(&effects.text()) {
        errors.push(effects.not_supported(allowed));
    }
    let seconds = hook.get("timeoutSeconds");
    if seconds.int().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        errors.push(seconds.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    for member in ["namespaceSelector", "objectSelector"] {
        let selector = hook.get(member);
        errors.extend(validation::label_selector(selector.value(), &selector.path()));
    }
    check(hook, &[OneOf("reinvocationPolicy", REINVOCATION)], errors);
    check_client(&hook.get("clientConfig"), errors);
}

/// Checks a webhook's name: a domain of at least three segments.
fn full_name(name: &Field<'_>, errors: &mut Errors) {
    let wrong = names::dns1123_subdomain(name.text());
    if name.is_empty() {
        errors.push(name.required(""));
    } else if !wrong.is_empty() {
        errors.push(name.invalid(wrong.join(",")));
    } else if name.text().split('.').count() < 3 {
        let words = "should be a domain with at least three segments separated by dots";
        errors.push(name.invalid(words));
    }
}

/// Checks the address of the webhook: a URL or a service.
fn check_client(config: &Field<'_>, errors: &mut Errors) {
    let (url, service) = (config.get("url"), config.get("service"));
    match (url.is_set(), service.is_set()) {
        (true, false) => check_webhook_url(url.text(), &url.path(), errors),
        (false, true) => {
            // Upstream's paths swap the two names.
            for (member, called) in [("namespace", "name"), ("name", "namespace")] {
                required(&service.get(member).called(called), "", errors);
            }
            let port = service.get("port");
            if let Some(words) = port_number(port.int().unwrap_or(0)) {
                errors.push(port.invalid(format!("port is not valid: {words}")));
            }
            check_path(&service.get("path"), errors);
        }
        _ => errors.push(config.required("exactly one of url or service is required")),
    }
}

/// Checks a path whose segments must be DNS subdomains.
fn check_path(path: &Field<'_>, errors: &mut Errors) {
    let text = path.text();
    if matches!(text, "" | "/") {
        return;
    }
    if text == "//" {
        return errors.push(path.invalid("segment[0] may not be empty"));
    }
    if !text.starts_with('/') {
        errors.push(path.invalid("must start with a '/'"));
    }
    let mut rest = text.chars();
    rest.next();
    let rest = rest.as_str();
    for (i, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        // Each error shows the whole path, so those that would be dropped are not made.
        if errors.is_full() {
            break;
        }
        if step.is_empty() {
            errors.push(path.invalid(format!("segment[{i}] may not be empty")));
            continue;
        }
        for words in names::dns1123_subdomain(step) {
            errors.push(path.invalid(format!("segment[{i}]: {words}")));
        }
    }
}

fn check_versions(hook: &Field<'_>, needs_known: bool, errors: &mut Errors) {
    let list = hook.get("admissionReviewVersions");
    let known = REVIEW_VERSIONS.join(", ");
    if list.is_empty() {
        return errors.push(list.required(&format!("must specify one of {known}")));
    }
    let mut seen = BTreeSet::new();
    for version in hook.items("admissionReviewVersions") {
        if !seen.insert(version.text().to_owned()) {
            errors.push(version.invalid("duplicate version"));
            continue;
        }
        version.all_invalid(names::dns1035_label(version.text()), errors);
    }
    let is_known = |version: Field<'_>| is_known_version(version.value());
    if needs_known && !hook.items("admissionReviewVersions").any(is_known) {
        let words = format!("must include at least one of {known}");
        errors.push(Error::invalid(&list.path(), list.value(), words));
    }
}
