//! The spec of a PersistentVolumeClaim.

use pintle_meta::{names, quantity::Quantity, validation};
use pintle_value::Value;

use crate::{
    field::{Errors, Field},
    rules::{
        Rule::{At, Do, Formatted, Needed, OneOf, Required},
        Rules,
    },
};

/// The rules for a PersistentVolumeClaimSpec, wherever it is embedded.
pub(crate) const SPEC: Rules = &[
    Needed("accessModes", "at least 1 access mode is required"),
    Do(|spec, errors| {
        let selector = spec.get("selector");
        errors.extend(validation::label_selector(selector.value(), &selector.path()));
    }),
    Do(access_modes),
    Do(size),
    Formatted("storageClassName", names::dns1123_subdomain),
    OneOf("volumeMode", &["Block", "Filesystem"]),
    At("dataSource", DATA_SOURCE),
    At("dataSourceRef", DATA_SOURCE),
    At("dataSourceRef", &[Formatted("namespace", names::dns1123_label)]),
    Do(same_sources),
    Formatted("volumeAttributesClassName", names::dns1123_subdomain),
];

const DATA_SOURCE: Rules = &[
    Required("name"),
    Required("kind"),
    Do(|source, errors| {
        if source.str("apiGroup").is_empty() && source.str("kind") != "PersistentVolumeClaim" {
            let words = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(source.invalid_as(source.str("kind"), words));
        }
    }),
    Formatted("apiGroup", names::dns1123_subdomain),
];

/// The data source has two members. If both are set, they must be equal, and the new one must not
/// name a namespace. The value in upstream's error is empty.
fn same_sources(spec: &Field<'_>, errors: &mut Errors) {
    let (old, new) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    if !old.is_set() || !new.is_set() {
        return;
    }
    let is_same = |member| old.str(member) == new.str(member);
    if !new.str("namespace").is_empty() {
        let words = "may not be specified when dataSourceRef.namespace is specified";
        errors.push(spec.invalid_as(Value::object(), words));
    } else if !["apiGroup", "kind", "name"].into_iter().all(is_same) {
        errors.push(spec.invalid_as(Value::object(), "must match dataSourceRef"));
    }
}

const ACCESS_MODES: &[&str] =
    &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Checks the access modes. As in upstream, an error about one mode has the path of the list.
pub(crate) fn access_modes(spec: &Field<'_>, errors: &mut Errors) {
    let modes = spec.get("accessModes");
    let has = |wanted: fn(&str) -> bool| spec.items("accessModes").any(|mode| wanted(mode.text()));
    for mode in spec.items("accessModes") {
        if !ACCESS_MODES.contains(&mode.text()) {
            errors.push(modes.of(mode.value()).not_supported(ACCESS_MODES));
        }
    }
    let is_alone = |mode: &str| mode == "ReadWriteOncePod";
    if has(is_alone) && has(|mode| mode != "ReadWriteOncePod" && ACCESS_MODES.contains(&mode)) {
        errors.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

/// Checks the requested size. Upstream's path lacks `requests`.
fn size(spec: &Field<'_>, errors: &mut Errors) {
    let resources = spec.get("resources");
    let storage = resources.value().at(&["requests", "storage"]).unwrap_or(&Value::Null);
    let size = resources.of(storage);
    let size = size.key("storage");
    match size.text().parse::<Quantity>() {
        Ok(quantity) if quantity.signum() <= 0 => {
            errors.push(size.invalid("must be greater than zero"));
        }
        Ok(_) => {}
        Err(_) => errors.push(size.required("")),
    }
}
