//! Rules that volumes of files share: paths, modes, keys, and references to fields of the pod.

use pintle_meta::{names, quantity::Quantity};

use crate::{
    field::{Errors, Field},
    rules::{
        Rule::{Do, Required},
        Rules, required,
    },
};

/// A key of a ConfigMap or Secret and the file that it becomes.
pub(super) const KEY_TO_PATH: Rules = &[
    Required("key"),
    Required("path"),
    Do(|item, errors| not_reserved(&item.get("path"), errors)),
    Do(|item, errors| check_mode(item, "mode", errors)),
];

pub(super) fn check_mode(holder: &Field<'_>, member: &str, errors: &mut Errors) {
    let mode = holder.get(member);
    if mode.int().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        errors.push(mode.invalid("must be a number between 0 and 0777 (octal), both inclusive"));
    }
}

/// Checks that a path does not leave the directory that it is relative to.
pub(crate) fn local_path(path: &Field<'_>, errors: &mut Errors) {
    if path.text().starts_with('/') {
        errors.push(path.invalid("must be a relative path"));
    }
    no_backsteps(path, errors);
}

/// Checks that a path has no `..`.
pub(crate) fn no_backsteps(path: &Field<'_>, errors: &mut Errors) {
    if has_backsteps(path.text()) {
        errors.push(path.invalid("must not contain '..'"));
    }
}

pub(crate) fn has_backsteps(path: &str) -> bool {
    path.split('/').any(|step| step == "..")
}

/// Checks a local path, which must not begin with `..` as the names of the kubelet's own files do.
pub(crate) fn not_reserved(path: &Field<'_>, errors: &mut Errors) {
    local_path(path, errors);
    if path.text().starts_with("..") && !path.text().starts_with("../") {
        errors.push(path.invalid("must not start with '..'"));
    }
}

/// Checks the files of a downward API volume. Upstream's paths do not have the index of the file.
pub(super) fn downward_files(source: &Field<'_>, errors: &mut Errors) {
    for file in source.items("items") {
        check_downward_file(source, &file, errors);
    }
}

/// Checks a file of a downward API volume; errors have the path of `source`.
pub(super) fn check_downward_file(source: &Field<'_>, file: &Field<'_>, errors: &mut Errors) {
    let file = source.of(file.value());
    required(&file.get("path"), "", errors);
    not_reserved(&file.get("path"), errors);
    let (field, resource) = (file.get("fieldRef"), file.get("resourceFieldRef"));
    if field.is_set() {
        field_reference(&field, VOLUME_FIELDS, errors);
        if resource.is_set() {
            let words = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.push(file.invalid_as("resource", words));
        }
    } else if resource.is_set() {
        let container = resource.get("containerName");
        if container.is_empty() {
            errors.push(container.required(""));
            check_divisor(&resource, errors);
        } else {
            resource_reference(&resource, errors);
        }
    } else {
        errors.push(file.required("one of fieldRef and resourceFieldRef is required"));
    }
    check_mode(&file, "mode", errors);
}

/// The fields of the pod that a file may contain.
const VOLUME_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// The fields that a `fieldRef` may name, wherever it is used.
const KNOWN_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Checks a reference to a field of the pod, which must be one of `allowed` or an entry of a map.
pub(crate) fn field_reference(reference: &Field<'_>, allowed: &[&str], errors: &mut Errors) {
    let (version, field) = (reference.get("apiVersion"), reference.get("fieldPath"));
    for needed in [&version, &field] {
        if needed.is_empty() {
            errors.push(needed.required(""));
            return;
        }
    }
    let refuse = |why: String| field.invalid(format!("error converting fieldPath: {why}"));
    if version.text() != "v1" {
        errors.push(refuse(format!("unsupported pod version: {}", version.text())));
        return;
    }
    // spec.host is the old name of spec.nodeName.
    let text = if field.text() == "spec.host" { "spec.nodeName" } else { field.text() };
    match subscript(text) {
        Some(("metadata.annotations", key)) => reference.all_invalid_as(
            &key.to_lowercase(),
            names::qualified_name(&key.to_lowercase()),
            errors,
        ),
        Some(("metadata.labels", key)) => {
            reference.all_invalid_as(key, names::qualified_name(key), errors);
        }
        Some(_) => {
            errors.push(refuse(format!("field label does not support subscript: {text}")));
        }
        None if !KNOWN_FIELDS.contains(&text) => {
            errors.push(refuse(format!("field label not supported: {text}")));
        }
        None if !allowed.contains(&text) => errors.push(field.not_supported(allowed)),
        None => {}
    }
}

/// `metadata.labels['app']` as the field and the key.
fn subscript(field: &str) -> Option<(&str, &str)> {
    let (path, key) = field.strip_suffix("']")?.split_once("['")?;
    (!path.is_empty()).then_some((path, key))
}

/// The resources of a container that the downward API provides.
pub(crate) const CONTAINER_RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Checks a reference to a resource of a container.
pub(crate) fn resource_reference(reference: &Field<'_>, errors: &mut Errors) {
    let resource = reference.get("resource");
    let is_huge_page = ["limits.hugepages-", "requests.hugepages-"]
        .iter()
        .any(|prefix| resource.text().starts_with(prefix));
    if resource.is_empty() {
        errors.push(resource.required(""));
    } else if !CONTAINER_RESOURCES.contains(&resource.text()) && !is_huge_page {
        errors.push(resource.not_supported(CONTAINER_RESOURCES));
    }
    check_divisor(reference, errors);
}

const BYTES: &[&str] =
    &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

fn check_divisor(reference: &Field<'_>, errors: &mut Errors) {
    let divisor = reference.get("divisor");
    let is_zero = |text: &str| text.parse::<Quantity>().is_ok_and(|quantity| quantity.is_zero());
    if divisor.is_empty() || is_zero(divisor.text()) {
        return;
    }
    let resource = reference.str("resource");
    let (allowed, name) = match resource.split_once('.').map(|(_, name)| name) {
        Some("cpu") => (&["1m", "1"][..], "cpu"),
        Some("memory") => (BYTES, "memory"),
        Some("ephemeral-storage") => (BYTES, "local ephemeral storage"),
        Some(name) if name.starts_with("hugepages-") => (BYTES, "hugepages"),
        _ => return,
    };
    if !allowed.contains(&divisor.text()) {
        let values = match allowed {
            ["1m", "1"] => "1m and 1".to_owned(),
            _ => allowed.join(", "),
        };
        let words =
            format!("only divisor's values {values} are supported with the {name} resource");
        errors.push(divisor.invalid_as(resource, words));
    }
}
