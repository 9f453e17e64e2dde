//! The rules for NetworkPolicies, in upstream's order.

use std::collections::BTreeSet;

use pintle_meta::validation;
use pintle_value::Value;

use crate::{
    addresses::{Range, odd_range, range},
    checks::{WARNINGS_MAX, items},
    field::{Errors, Field},
    formats::{port_name, port_number},
    rules::{
        Rule::{OneOf, Selector},
        check,
    },
};

const TYPES: &[&str] = &["Ingress", "Egress"];

/// Validates a policy. Ranges of the stored policy are accepted at any index, because rules have no
/// identity.
pub(super) fn validate(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let known: BTreeSet<&str> =
        old.map(|old| ranges(old).map(|(_, text)| text).collect()).unwrap_or_default();
    let policy = Field::root(new);
    let spec = policy.get("spec");
    check(&spec, &[Selector("podSelector")], &mut errors);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.items(direction) {
            rule.items("ports").for_each(|port| check_port(&port, &mut errors));
            rule.items(peers).for_each(|peer| check_peer(&peer, &known, &mut errors));
        }
    }
    let types = spec.get("policyTypes");
    if spec.items("policyTypes").len() > TYPES.len() {
        errors.push(types.invalid("may not specify more than two policyTypes"));
        return errors;
    }
    for kind in spec.items("policyTypes").filter(|kind| !TYPES.contains(&kind.text())) {
        errors.push(kind.not_supported(TYPES));
    }
    errors
}

fn check_port(port: &Field<'_>, errors: &mut Errors) {
    check(port, &[OneOf("protocol", &["TCP", "UDP", "SCTP"])], errors);
    let (first, end) = (port.get("port"), port.get("endPort"));
    match first.value() {
        Value::Int(number) => {
            errors.extend(port_number(*number).map(|words| first.invalid(words)));
            let Some(last) = end.int() else { return };
            if last < *number {
                // As in upstream, the error shows `port`, not `endPort`.
                errors.push(end.invalid_as(*number, "must be greater than or equal to `port`"));
            }
            errors.extend(port_number(last).map(|words| end.invalid(words)));
        }
        Value::String(name) => {
            if end.is_set() {
                errors.push(end.invalid("may not be specified when `port` is non-numeric"));
            }
            first.all_invalid(port_name(name), errors);
        }
        _ if end.is_set() => {
            errors.push(end.invalid("may not be specified when `port` is not specified"));
        }
        _ => {}
    }
}

fn check_peer(peer: &Field<'_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    let selectors = ["podSelector", "namespaceSelector"];
    for selector in selectors.iter().filter_map(|member| peer.find(member)) {
        errors.extend(validation::label_selector(selector.value(), &selector.path()));
    }
    let is_selected = selectors.iter().any(|member| peer.has(member));
    match peer.find("ipBlock") {
        None if !is_selected => errors.push(peer.required("must specify a peer")),
        None => {}
        Some(block) => {
            check_block(&block, known, errors);
            if is_selected {
                let words = "may not specify both ipBlock and another peer";
                errors.push(peer.forbidden(words));
            }
        }
    }
}

fn check_block(block: &Field<'_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    let cidr = block.get("cidr");
    if cidr.is_empty() {
        return errors.push(cidr.required(""));
    }
    let Some(whole) = check_range(&cidr, known, errors) else { return };
    for except in block.items("except") {
        let part = check_range(&except, known, errors);
        if part.is_some_and(|part| !whole.is_wider_than(part)) {
            errors.push(except.invalid("must be a strict subset of `cidr`"));
        }
    }
}

fn check_range(field: &Field<'_>, known: &BTreeSet<&str>, errors: &mut Errors) -> Option<Range> {
    if !known.contains(field.text()) {
        field.all_invalid(range(field.text()), errors);
    }
    Range::parse(field.text())
}

/// Warnings about valid ranges that are not in canonical form.
pub(super) fn odd_ranges(policy: &Value) -> Vec<String> {
    let odd = |(path, text): (String, &str)| -> Vec<String> {
        odd_range(text).into_iter().map(|odd| format!("{path}: {odd}")).collect()
    };
    ranges(policy).flat_map(odd).take(WARNINGS_MAX).collect()
}

/// The ranges of a policy, with their paths.
fn ranges(policy: &Value) -> impl Iterator<Item = (String, &str)> {
    let directions = [("ingress", "from"), ("egress", "to")];
    directions.into_iter().flat_map(move |(direction, peers)| {
        let rules = items(policy, &["spec", direction]).iter().enumerate();
        rules.flat_map(move |(i, rule)| {
            items(rule, &[peers]).iter().enumerate().flat_map(move |(j, peer)| {
                let at = format!("spec.{direction}[{i}].{peers}[{j}].ipBlock");
                block_ranges(peer, at)
            })
        })
    })
}

fn block_ranges(peer: &Value, at: String) -> impl Iterator<Item = (String, &str)> {
    let cidr = peer.str_at(&["ipBlock", "cidr"]).map(|text| (format!("{at}.cidr"), text));
    let excepts = items(peer, &["ipBlock", "except"]).iter().enumerate();
    cidr.into_iter().chain(
        excepts.map(move |(i, except)| {
            (format!("{at}.except[{i}]"), except.as_str().unwrap_or_default())
        }),
    )
}
