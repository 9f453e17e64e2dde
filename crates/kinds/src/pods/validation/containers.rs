//! Containers of all three sorts.

mod environment;
mod handlers;
mod mounts;
mod restart;

use std::collections::BTreeSet;

use pintle_meta::names;
use pintle_value::Value;

use super::{Spec, resources, security};
use crate::{
    field::{Errors, Field},
    formats,
    rules::{
        Rule::{Choice, Do, Named, Required},
        Rules, check, choice,
    },
};

pub(super) use environment::check_file_references;

/// Checks `containers`.
pub(super) fn check_containers(spec: &Spec<'_>, errors: &mut Errors) {
    let list = spec.field.get("containers");
    if list.is_empty() {
        errors.push(list.required(""));
        return;
    }
    let mut names = BTreeSet::new();
    for container in spec.field.items("containers") {
        check_common(spec, &container, errors);
        if !names.insert(container.str("name")) {
            errors.push(container.get("name").duplicate());
        }
        handlers::check_lifecycle(spec, &container, errors);
        handlers::check_probes(spec, &container, errors);
        restart::check_regular(&container, errors);
    }
    let mut taken = BTreeSet::new();
    for container in spec.field.items("containers") {
        check_host_ports(&container, &mut taken, errors);
    }
}

/// Checks `initContainers`. Those that always restart are sidecars, and only sidecars may have
/// probes and lifecycle handlers.
pub(super) fn check_init_containers(spec: &Spec<'_>, errors: &mut Errors) {
    if !spec.field.has("initContainers") {
        return;
    }
    let mut names: BTreeSet<&str> =
        spec.field.items("containers").map(|container| container.str("name")).collect();
    for container in spec.field.items("initContainers") {
        check_common(spec, &container, errors);
        restart::check_init(&container, errors);
        let name = container.get("name");
        if names.contains(name.text()) {
            errors.push(name.duplicate());
        } else if !name.is_empty() {
            names.insert(container.str("name"));
        }
        // Init containers run one after the other, so they may use the same host ports.
        check_host_ports(&container, &mut BTreeSet::new(), errors);
        if is_sidecar(container.value()) {
            handlers::check_lifecycle(spec, &container, errors);
            handlers::check_probes(spec, &container, errors);
            continue;
        }
        for member in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if let Some(field) = container.find(member) {
                let words = "may not be set for init containers without restartPolicy=Always";
                errors.push(field.forbidden(words));
            }
        }
        resources::check_init_resize_policy(spec, &container, errors);
    }
}

/// Whether an init container is a sidecar.
pub(crate) fn is_sidecar(container: &Value) -> bool {
    container.str_at(&["restartPolicy"]) == Some("Always")
}

/// Members that ephemeral containers may not have, in the order of declaration.
const NOT_EPHEMERAL: &[&str] = &[
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// Checks `ephemeralContainers`, which are added to existing pods.
pub(super) fn check_ephemeral_containers(spec: &Spec<'_>, errors: &mut Errors) {
    const WORDS: &str = "cannot be set for an Ephemeral Container";
    if !spec.field.has("ephemeralContainers") {
        return;
    }
    let lasting = || spec.field.items("containers").chain(spec.field.items("initContainers"));
    let others: BTreeSet<&str> = lasting().map(|container| container.str("name")).collect();
    let mut names = others.clone();
    for container in spec.field.items("ephemeralContainers") {
        check_common(spec, &container, errors);
        check_image_padding(&container, errors);
        if !names.insert(container.str("name")) {
            errors.push(container.get("name").duplicate());
        }
        let target = container.get("targetContainerName");
        if !target.is_empty() && !others.contains(target.text()) {
            errors.push(target.not_found());
        }
        for member in NOT_EPHEMERAL {
            let field = container.get(member);
            // As in Go, absent resources are an empty struct.
            if field.is_set() && !(*member == "resources" && field.is_empty()) {
                errors.push(field.forbidden(WORDS));
            }
        }
        for mount in container.items("volumeMounts") {
            for field in ["subPath", "subPathExpr"].map(|member| mount.get(member)) {
                if !field.is_empty() {
                    errors.push(field.forbidden(WORDS));
                }
            }
        }
    }
}

/// Checks that an image has no blanks around it. Upstream checks this in pods, but not in
/// templates.
pub(super) fn check_image_padding(container: &Field<'_>, errors: &mut Errors) {
    let image = container.get("image");
    if image.text().trim() != image.text() {
        errors.push(image.invalid("must not have leading or trailing whitespace"));
    }
}

/// Rules of all containers, up to their environment.
const COMMON: Rules = &[
    Named("name", names::dns1123_label),
    Required("image"),
    Choice("terminationMessagePolicy", &["File", "FallbackToLogsOnError"]),
    Do(check_ports),
    Do(environment::check_variables),
    Do(environment::check_sources),
];

fn check_common(spec: &Spec<'_>, container: &Field<'_>, errors: &mut Errors) {
    check(container, COMMON, errors);
    mounts::check_mounts(spec, container, errors);
    mounts::check_devices(spec, container, errors);
    choice(&container.get("imagePullPolicy"), &["Always", "IfNotPresent", "Never"], errors);
    resources::check_container(spec, container, errors);
    resources::check_resize_policy(spec, container, errors);
    security::check_container(spec, container, errors);
}

fn check_ports(container: &Field<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for port in container.items("ports") {
        let name = port.get("name");
        if !name.is_empty() {
            let wrong = formats::port_name(name.text());
            if !wrong.is_empty() {
                name.all_invalid(wrong, errors);
            } else if !names.insert(port.str("name")) {
                errors.push(name.duplicate());
            }
        }
        let number = port.get("containerPort");
        match number.int() {
            None | Some(0) => errors.push(number.required("")),
            Some(port) => {
                errors.extend(formats::port_number(port).map(|words| number.invalid(words)))
            }
        }
        let host = port.get("hostPort");
        if let Some(port) = host.int().filter(|port| *port != 0) {
            errors.extend(formats::port_number(port).map(|words| host.invalid(words)));
        }
        choice(&port.get("protocol"), &["SCTP", "TCP", "UDP"], errors);
    }
}

/// Checks that the host ports of a container are not in `taken`, and adds them to it.
fn check_host_ports(container: &Field<'_>, taken: &mut BTreeSet<String>, errors: &mut Errors) {
    for port in container.items("ports") {
        let host = port.get("hostPort");
        let Some(number) = host.int().filter(|port| *port != 0) else { continue };
        let claim = format!("{}/{}/{number}", port.str("protocol"), port.str("hostIP"));
        if taken.contains(&claim) {
            errors.push(pintle_meta::field::Error::duplicate(&host.path(), &claim.into()));
        } else {
            taken.insert(claim);
        }
    }
}
