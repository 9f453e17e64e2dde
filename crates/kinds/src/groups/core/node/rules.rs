//! The rules for Nodes, in upstream's order. The rules for updates hold for writes of the status,
//! too.

use std::collections::BTreeSet;

use pintle_meta::field::Error;
use pintle_meta::quote::quote;
use pintle_value::{Value, order::Ordered};

use super::{annotations, taints};
use crate::{
    addresses::{Range, canonical_range},
    amounts::amount,
    checks::{path, same},
    field::{Errors, Field},
};

/// Validates a node; `old` is the stored one.
pub(super) fn validate(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let node = Field::root(new);
    let metadata = node.get("metadata");
    annotations::check(&metadata.get("annotations"), &mut errors);
    check_taints(&node, &mut errors);
    check_resources(&node, &mut errors);
    check_swap(&node, &mut errors);
    check_features(&node, &mut errors);
    check_ranges(&node, &mut errors);
    // Some rules apply to nodes and to updates, and upstream reports their errors twice.
    errors.extend(old.into_iter().flat_map(|old| validate_update(new, old)));
    errors
}

/// Validates an update of a node, or of its status.
pub(super) fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    let node = Field::root(new);
    check_resources(&node, &mut errors);
    check_features(&node, &mut errors);
    check_update(&node, &Field::root(old), &mut errors);
    errors
}

/// Upstream's paths have `metadata` instead of `spec`.
fn check_taints(node: &Field<'_>, errors: &mut Errors) {
    let spec = node.get("spec");
    taints::check(&spec.called("metadata"), "taints", errors);
}

fn check_resources(node: &Field<'_>, errors: &mut Errors) {
    let status = node.get("status");
    for list in ["capacity", "allocatable"] {
        let list = status.get(list);
        for (name, _) in list.pairs() {
            amount(&list.get(name), name, errors);
        }
    }
}

/// Checks the capacity of swap space. Upstream's path begins with `metadata`.
fn check_swap(node: &Field<'_>, errors: &mut Errors) {
    let capacity = node.at(&["status", "nodeInfo", "swap", "capacity"]);
    if let Some(bytes @ ..=0) = capacity.int() {
        let path = path(&["metadata", "nodeSwapStatus", "capacity"]);
        errors.push(Error::invalid(&path, &bytes.into(), "must be greater than zero"));
    }
}

/// Checks the declared features: names in sorted order.
fn check_features(node: &Field<'_>, errors: &mut Errors) {
    const LENGTH_MAX: usize = 253;
    let mut before: Option<&str> = None;
    let status = node.get("status");
    for feature in status.items("declaredFeatures") {
        let name = feature.text();
        match before {
            Some(before) if before == name => errors.push(feature.duplicate()),
            Some(before) if before > name => {
                errors.push(feature.invalid("list must be sorted alphabetically"));
            }
            _ => {}
        }
        let words = if name.len() > LENGTH_MAX {
            format!("must be no more than {LENGTH_MAX} characters")
        } else if !is_feature(name) {
            "must start with an UpperCamelCase segment, with subsequent segments separated by '/' \
             (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters \
             and slashes"
                .to_owned()
        } else {
            before = Some(name);
            continue;
        };
        errors.push(feature.invalid(format!("invalid feature name {}: {words}", quote(name))));
        before = Some(name);
    }
}

fn is_feature(name: &str) -> bool {
    let is_segment = |segment: &str| {
        segment.bytes().all(|b| b.is_ascii_alphanumeric())
            && segment.starts_with(|c: char| c.is_ascii_alphabetic())
    };
    name.starts_with(|c: char| c.is_ascii_uppercase()) && name.split('/').all(is_segment)
}

fn check_ranges(node: &Field<'_>, errors: &mut Errors) {
    let spec = node.get("spec");
    let list = spec.get("podCIDRs");
    for range in spec.items("podCIDRs") {
        range.all_invalid(canonical_range(range.text()), errors);
    }
    let count = spec.items("podCIDRs").len();
    if count < 2 {
        return;
    }
    let ranges: Vec<_> = spec.items("podCIDRs").map(|range| Range::parse(range.text())).collect();
    if let Some(i) = ranges.iter().position(Option::is_none) {
        let text = spec.items("podCIDRs").nth(i).map_or("", |range| range.text());
        let why = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{i}]: <nil> \
             (invalid CIDR address: {text})"
        );
        errors.push(Error::internal(&list.path(), why));
    }
    let has = |v6: bool| ranges.iter().flatten().any(|range| range.is_ipv6() == v6);
    if !(has(true) && has(false)) || count > 2 {
        errors.push(list.invalid("may specify no more than one CIDR for each IP family"));
    }
}

/// Checks what an update may not change: `externalID`, and the pod ranges and the provider ID once
/// they are set. Checks the addresses and taints, too.
fn check_update(node: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    let status = node.get("status");
    for address in status.items("addresses") {
        if !seen.insert(Ordered(address.value())) {
            errors.push(same_address(&address));
        }
    }
    let (new, old) = (node.get("spec"), old.get("spec"));
    let from_nothing = |member: &str, name: &str| {
        let words = format!("node updates may not change {name} except from \"\" to valid");
        Error::forbidden(&path(&["spec", member]), words)
    };
    let ranges = |spec: &Field<'_>| -> Vec<String> {
        spec.items("podCIDRs").map(|range| range.text().to_owned()).collect()
    };
    let (now, before) = (ranges(&new), ranges(&old));
    if !before.is_empty() {
        let changes = if now.len() == before.len() {
            now.iter().zip(&before).filter(|(now, before)| now != before).count()
        } else {
            1
        };
        errors.extend((0..changes).map(|_| from_nothing("podCIDRs", "podCIDR")));
    }
    let provider = old.str("providerID");
    if !provider.is_empty() && provider != new.str("providerID") {
        errors.push(from_nothing("providerID", "providerID"));
    }
    check_taints(node, errors);
    if !same(new.get("externalID").some(), old.get("externalID").some()) {
        errors.push(new.get("externalID").forbidden("may not be updated"));
    }
}

/// The error for a duplicate address, which shows the address in upstream's internal form.
fn same_address(address: &Field<'_>) -> Error {
    let shown = |member: &str| pintle_value::json::to_string(&address.str(member).into());
    Error {
        value: Some(format!(r#"{{"Type":{},"Address":{}}}"#, shown("type"), shown("address"))),
        ..address.duplicate()
    }
}
