//! Environment variables.

use std::{cell::LazyCell, collections::BTreeMap};

use pintle_meta::names;

use crate::{
    field::{Errors, Field},
    formats,
    pods::validation::{
        Spec,
        volumes::{field_reference, no_backsteps, resource_reference},
    },
    rules::{
        Rule::{At, Do, Formatted, Named},
        Rules, check,
    },
};

/// Checks `env`.
pub(super) fn check_variables(container: &Field<'_>, errors: &mut Errors) {
    for variable in container.items("env") {
        check(&variable, VARIABLE, errors);
    }
}

const VARIABLE: Rules = &[Named("name", formats::environment_name), Do(check_value)];

/// The sources of a value and their rules.
const SOURCES: &[(&str, Rules)] = &[
    ("fieldRef", &[Do(|field, errors| field_reference(field, FIELDS, errors))]),
    ("resourceFieldRef", &[Do(resource_reference)]),
    ("configMapKeyRef", KEY),
    ("secretKeyRef", KEY),
    (
        "fileKeyRef",
        &[
            Named("key", formats::environment_name),
            Named("volumeName", names::dns1123_label),
            Do(|file, errors| {
                let path = file.get("path");
                if path.is_empty() {
                    errors.push(path.required(""));
                } else {
                    no_backsteps(&path, errors);
                }
            }),
        ],
    ),
];

/// Unlike elsewhere, an empty name is checked like any other.
const KEY: Rules = &[
    Do(|reference, errors| {
        let name = reference.get("name");
        name.all_invalid(names::dns1123_subdomain(name.text()), errors);
    }),
    Named("key", formats::config_key),
];

/// The fields of the pod that a variable may contain.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

fn check_value(variable: &Field<'_>, errors: &mut Errors) {
    let Some(source) = variable.find("valueFrom") else { return };
    let mut count = 0;
    for (member, rules) in source.present(SOURCES, |(member, _)| member) {
        check(&source.get(member), rules, errors);
        count += 1;
    }
    let words = match count {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
             `secretKeyRef` or `fileKeyRef`"
        }
        _ if !variable.get("value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(source.invalid_as("", words));
}

/// Checks `envFrom`. As in upstream, some errors have the path of the list.
pub(super) fn check_sources(container: &Field<'_>, errors: &mut Errors) {
    let list = container.get("envFrom");
    for source in container.items("envFrom") {
        check(&source, FROM, errors);
        let words = match (source.has("configMapRef"), source.has("secretRef")) {
            (false, false) => "must specify one of: `configMapRef` or `secretRef`",
            (true, true) => "may not have more than one field specified at a time",
            _ => continue,
        };
        errors.push(list.invalid_as("", words));
    }
}

const FROM: Rules = &[
    Formatted("prefix", formats::environment_name),
    At("configMapRef", &[Named("name", name_or_prefix)]),
    At("secretRef", &[Named("name", name_or_prefix)]),
];

/// As upstream, checks a name as if it were a prefix.
fn name_or_prefix(name: &str) -> Vec<String> {
    names::subdomain_rule(name, true)
}

/// Checks that variables are only read from files in `emptyDir` volumes.
pub(in crate::pods::validation) fn check_file_references(spec: &Spec<'_>, errors: &mut Errors) {
    // Invalid volumes count, too, and of volumes with the same name the last one.
    let named = || spec.field.items("volumes").map(|volume| (volume.str("name"), volume));
    let volumes = LazyCell::new(|| named().collect::<BTreeMap<&str, Field<'_>>>());
    for container in spec.all_containers() {
        for variable in container.items("env") {
            let Some(source) = variable.find("valueFrom") else { continue };
            let Some(reference) = source.find("fileKeyRef") else { continue };
            let volume = reference.get("volumeName");
            match volumes.get(volume.text()) {
                None => errors.push(volume.not_found()),
                Some(found) if !found.has("emptyDir") => {
                    let words = "referenced volume must be of type emptyDir";
                    errors.push(volume.invalid_as(volume.text(), words));
                }
                Some(_) => {}
            }
        }
    }
}
