//! How a container uses the pod's volumes: mounts, and devices for block volumes.

use std::collections::BTreeSet;

use pintle_value::Value;

use crate::{
    checks::Seen,
    field::{Errors, Field},
    pods::validation::{
        Spec,
        volumes::{has_backsteps, local_path},
    },
};

/// Checks `volumeMounts`. As in upstream, some errors have the path of the list.
pub(super) fn check_mounts(spec: &Spec<'_>, container: &Field<'_>, errors: &mut Errors) {
    let list = container.get("volumeMounts");
    let mut paths = Seen::default();
    let devices = texts(container, "volumeDevices", "name");
    let device_paths = texts(container, "volumeDevices", "devicePath");
    for mount in container.items("volumeMounts") {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        if name.is_empty() {
            errors.push(name.required(""));
        }
        if !spec.volumes.contains_key(name.text()) {
            errors.push(name.not_found());
        }
        if path.is_empty() {
            errors.push(path.required(""));
        }
        if !paths.insert(mount.str("mountPath")) {
            errors.push(path.invalid_as(path.text(), "must be unique"));
        }
        if devices.contains(name.text()) {
            errors.push(name.invalid_as(name.text(), "must not already exist in volumeDevices"));
        }
        if device_paths.contains(path.text()) {
            let words = "must not already exist as a path in volumeDevices";
            errors.push(path.invalid_as(path.text(), words));
        }
        if !has_options(&mount) {
            continue;
        }
        let at_list = list.of(mount.value());
        check_sub_paths(&mount, &at_list, errors);
        check_propagation(container, &at_list, errors);
        check_recursion(&at_list, errors);
    }
}

/// Whether a mount has members besides those that most mounts have and that were checked already.
fn has_options(mount: &Field<'_>) -> bool {
    mount.pairs().any(|(member, _)| !matches!(member, "mountPath" | "name" | "readOnly"))
}

fn check_sub_paths(mount: &Field<'_>, at_list: &Field<'_>, errors: &mut Errors) {
    let [path, expression] = ["subPath", "subPathExpr"].map(|member| at_list.get(member));
    if !path.is_empty() {
        local_path(&path, errors);
    }
    if !expression.is_empty() {
        if !path.is_empty() {
            let words = "subPathExpr and subPath are mutually exclusive";
            errors.push(mount.get("subPathExpr").invalid(words));
        }
        local_path(&expression, errors);
    }
}

fn check_propagation(container: &Field<'_>, mount: &Field<'_>, errors: &mut Errors) {
    const MODES: &[&str] = &["Bidirectional", "HostToContainer", "None"];
    let Some(propagation) = mount.find("mountPropagation") else { return };
    if !MODES.contains(&propagation.text()) {
        errors.push(propagation.not_supported(MODES));
    }
    let is_privileged = container.at(&["securityContext", "privileged"]).is_true();
    if propagation.text() == "Bidirectional" && !is_privileged {
        let words = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(propagation.forbidden(words));
    }
}

fn check_recursion(mount: &Field<'_>, errors: &mut Errors) {
    const MODES: &[&str] = &["Disabled", "Enabled", "IfPossible"];
    let Some(recursion) = mount.find("recursiveReadOnly") else { return };
    match recursion.text() {
        "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !mount.get("readOnly").is_true() {
                errors.push(recursion.forbidden("may only be specified when readOnly is true"));
            }
            let propagation = mount.get("mountPropagation");
            if propagation.is_set() && propagation.text() != "None" {
                let words = "may only be specified when mountPropagation is None or not specified";
                errors.push(recursion.forbidden(words));
            }
        }
        _ => errors.push(recursion.not_supported(MODES)),
    }
}

/// The texts of one member of a list's items.
fn texts<'a>(container: &Field<'a>, list: &str, member: &str) -> BTreeSet<&'a str> {
    let items = container.value().get(list).and_then(Value::as_array).unwrap_or_default();
    items.iter().map(|item| item.str_at(&[member]).unwrap_or_default()).collect()
}

/// Checks `volumeDevices`.
pub(super) fn check_devices(spec: &Spec<'_>, container: &Field<'_>, errors: &mut Errors) {
    if container.items("volumeDevices").len() == 0 {
        return;
    }
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    let mounts = texts(container, "volumeMounts", "name");
    let mount_paths = texts(container, "volumeMounts", "mountPath");
    for device in container.items("volumeDevices") {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        if name.is_empty() {
            errors.push(name.required(""));
        }
        if names.contains(name.text()) {
            errors.push(name.invalid("must be unique"));
        }
        match spec.volumes.get(name.text()) {
            Some(volume) if !is_claimed(volume) => {
                let words = "can only use volume source type of PersistentVolumeClaim or Ephemeral \
                             for block mode";
                errors.push(name.invalid(words));
            }
            Some(_) => {}
            None => errors.push(name.not_found()),
        }
        if path.is_empty() {
            errors.push(path.required(""));
        }
        if paths.contains(path.text()) {
            errors.push(path.invalid_as(path.text(), "must be unique"));
        }
        if has_backsteps(path.text()) {
            errors.push(path.invalid("can not contain backsteps ('..')"));
        } else {
            paths.insert(device.str("devicePath"));
        }
        if mounts.contains(name.text()) {
            errors.push(name.invalid_as(name.text(), "must not already exist in volumeMounts"));
        }
        if mount_paths.contains(path.text()) {
            let words = "must not already exist as a path in volumeMounts";
            errors.push(path.invalid_as(path.text(), words));
        }
        if !name.is_empty() {
            names.insert(device.str("name"));
        }
    }
}

fn is_claimed(volume: &Value) -> bool {
    ["persistentVolumeClaim", "ephemeral"]
        .iter()
        .any(|source| volume.get(source).is_some_and(|source| !source.is_null()))
}
