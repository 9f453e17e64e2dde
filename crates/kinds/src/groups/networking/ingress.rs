//! The rules for Ingresses, in upstream's order.

use std::collections::BTreeSet;

use pintle_meta::{field::Error, names};
use pintle_value::{Path, Value};

use super::CLASS_ANNOTATION;
use crate::{
    checks::items,
    field::{Errors, Field},
    formats::{ip, parse_ip, port_name, port_number},
    rules::{
        Rule::{At, Do, Each, Named},
        Rules, check,
    },
};

/// Validates an ingress; `old` is the stored one.
pub(super) fn validate(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let ingress = Field::root(new);
    check(&ingress, RULES, &mut errors);
    let spec = ingress.get("spec");
    let has_invalid_secret = |old: &Value| {
        let name = |tls: &Value| tls.str_at(&["secretName"]).unwrap_or_default().to_owned();
        items(old, &["spec", "tls"]).iter().any(|tls| !secret_name(&name(tls)).is_empty())
    };
    let may_be_invalid = old.is_some_and(has_invalid_secret);
    for tls in spec.items("tls") {
        tls.items("hosts").for_each(|host| host.all_invalid(host_name(host.text()), &mut errors));
        let secret = tls.get("secretName");
        if !may_be_invalid {
            secret.all_invalid(secret_name(secret.text()), &mut errors);
        }
    }
    let class = spec.get("ingressClassName");
    if class.is_set() {
        class.all_invalid(names::dns1123_subdomain(class.text()), &mut errors);
    }
    if old.is_none() {
        check_annotation(new, &class, &mut errors);
    }
    errors
}

fn check_annotation(ingress: &Value, class: &Field<'_>, errors: &mut Errors) {
    let annotations = pintle_meta::object::annotations(ingress);
    let annotation = annotations.and_then(|annotations| annotations.get(CLASS_ANNOTATION));
    if let Some(annotation) =
        annotation.filter(|a| class.is_set() && a.as_str() != Some(class.text()))
    {
        let path = Path::new("annotations").field(CLASS_ANNOTATION);
        let words = "must match `ingressClassName` when both are specified";
        errors.push(Error::invalid(&path, annotation, words));
    }
}

const RULES: Rules = &[At(
    "spec",
    &[
        Do(|spec, errors| {
            let rules = spec.get("rules");
            if rules.is_empty() && !spec.has("defaultBackend") {
                let words = "either `defaultBackend` or `rules` must be specified";
                errors.push(spec.of(rules.value()).invalid(words));
            }
        }),
        At("defaultBackend", BACKEND),
        Each("rules", RULE),
    ],
)];

const RULE: Rules = &[
    Do(|rule, errors| {
        let host = rule.get("host");
        if host.is_empty() {
            return;
        }
        if parse_ip(host.text()).is_some() {
            errors.push(host.invalid("must be a DNS name, not an IP address"));
        }
        host.all_invalid(host_name(host.text()), errors);
    }),
    At("http", &[crate::rules::Rule::Required("paths"), Each("paths", &[Do(check_path)])]),
];

/// Sequences that proxies and servers interpret differently.
const BAD_SEQUENCES: &[&str] = &["//", "/./", "/../", "%2f", "%2F"];
const BAD_ENDS: &[&str] = &["/..", "/."];
const PATH_TYPES: &[&str] = &["Exact", "ImplementationSpecific", "Prefix"];

fn check_path(item: &Field<'_>, errors: &mut Errors) {
    let (kind, path) = (item.get("pathType"), item.get("path"));
    let text = path.text();
    let is_absolute = text.starts_with('/');
    match kind.text() {
        _ if !kind.is_set() => return errors.push(kind.required("pathType must be specified")),
        "Exact" | "Prefix" => {
            if !is_absolute {
                errors.push(path.invalid_as(text, "must be an absolute path"));
            }
            for bad in BAD_SEQUENCES.iter().filter(|bad| text.contains(**bad)) {
                errors.push(path.invalid(format!("must not contain '{bad}'")));
            }
            for bad in BAD_ENDS.iter().filter(|bad| text.ends_with(**bad)) {
                errors.push(path.invalid(format!("cannot end with '{bad}'")));
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !is_absolute {
                errors.push(path.invalid("must be an absolute path"));
            }
        }
        _ => errors.push(kind.not_supported(PATH_TYPES)),
    }
    check(&item.get("backend"), BACKEND, errors);
}

const BACKEND: Rules =
    &[Do(|backend, errors| match (backend.has("resource"), backend.has("service")) {
        (true, true) => {
            let words = "cannot set both resource and service backends";
            errors.push(backend.invalid_as("", words));
        }
        (true, false) => check(&backend.get("resource"), RESOURCE, errors),
        (false, true) => check_service(backend, errors),
        (false, false) => {
            errors.push(backend.invalid_as("", "resource or service backend is required"));
        }
    })];

const RESOURCE: Rules =
    &[Do(api_group), Named("kind", names::path_segment), Named("name", names::path_segment)];

/// Validates `apiGroup`, if it is present, as a DNS subdomain.
pub(super) fn api_group(reference: &Field<'_>, errors: &mut Errors) {
    if let Some(group) = reference.find("apiGroup") {
        group.all_invalid(names::dns1123_subdomain(group.text()), errors);
    }
}

fn check_service(backend: &Field<'_>, errors: &mut Errors) {
    let service = backend.get("service");
    check(&service, &[Named("name", names::dns1123_label)], errors);
    let port = service.get("port");
    let (name, number) = (port.get("name"), port.get("number"));
    match (name.is_empty(), number.int().unwrap_or(0)) {
        (false, 1.. | ..0) => {
            errors.push(backend.invalid_as("", "cannot set both port name & port number"));
        }
        (false, 0) => name.all_invalid(port_name(name.text()), errors),
        (true, 0) => errors.push(backend.required("port name or number is required")),
        (true, n) => errors.extend(port_number(n).map(|words| number.invalid(words))),
    }
}

/// Validates a DNS subdomain whose first label may be `*`.
fn host_name(host: &str) -> Vec<String> {
    if !host.contains('*') {
        return names::dns1123_subdomain(host);
    }
    let mut wrong = Vec::new();
    if host.len() > 253 {
        wrong.push("must be no more than 253 characters".to_owned());
    }
    let rest = host.strip_prefix("*.").unwrap_or_default();
    if rest.is_empty() || !names::dns1123_subdomain(rest).is_empty() {
        wrong.push(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
             subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and \
             end with an alphanumeric character (e.g. '*.example.com', regex used for validation \
             is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    wrong
}

fn secret_name(name: &str) -> Vec<String> {
    if name.is_empty() { Vec::new() } else { names::dns1123_subdomain(name) }
}

/// Validates an ingress's status; addresses that are already stored are accepted.
pub(super) fn validate_status(new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    let known = items(old, &["status", "loadBalancer", "ingress"]).iter();
    let known: BTreeSet<&str> = known.filter_map(|point| point.str_at(&["ip"])).collect();
    let ingress = Field::root(new);
    let balancer = ingress.at(&["status", "loadBalancer"]);
    for point in balancer.items("ingress") {
        let address = point.get("ip");
        if !address.is_empty() && !known.contains(address.text()) {
            address.all_invalid(ip(address.text()), &mut errors);
        }
        let host = point.get("hostname");
        if !host.is_empty() {
            host.all_invalid(names::dns1123_subdomain(host.text()), &mut errors);
            if parse_ip(host.text()).is_some() {
                errors.push(host.invalid("must be a DNS name, not an IP address"));
            }
        }
    }
    errors
}
