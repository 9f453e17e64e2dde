//! The rules for the devices that drivers offer, in upstream's order.

use std::collections::BTreeMap;

use pintle_meta::{field::Error, names};
use pintle_value::{Map, Value};

use super::{classes::check_taint, named, policies::check_policy, status::check_bindings};
use crate::{
    checks::{frozen, items, unchanged},
    field::{Errors, Field},
    pods,
};

const DEVICES_MAX: usize = 128;
const ADVANCED_DEVICES_MAX: usize = 64;
const COUNTER_SETS_MAX: usize = 8;
const COUNTERS_MAX: usize = 32;
const CONSUMPTIONS_MAX: usize = 2;
const MEMBERS_MAX: usize = 32;
const VALUES_MAX: usize = 48;
const TAINTS_MAX: usize = 16;
const TEXT_LENGTH_MAX: usize = 64;

/// Validates a slice.
pub(super) fn validate(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let slice = Field::root(new);
    let spec = slice.get("spec");
    named::driver(&spec.get("driver"), &mut errors);
    check_pool(&spec.get("pool"), &mut errors);
    let frozen = [
        frozen(&["spec", "pool", "name"]),
        frozen(&["spec", "driver"]),
        frozen(&["spec", "nodeName"]),
    ];
    errors.extend(unchanged(new, old, &frozen));
    check_reach(&spec, &mut errors);
    if spec.has("sharedCounters") && spec.has("devices") {
        let words = "only one of `sharedCounters` or `devices` is allowed";
        errors.push(spec.invalid_as("", words));
    }
    let stored: BTreeMap<&str, &Value> = old
        .map(|old| items(old, &["spec", "devices"]))
        .unwrap_or_default()
        .iter()
        .map(|device| (device.str_at(&["name"]).unwrap_or_default(), device))
        .collect();
    let is_per_device = spec.get("perDeviceNodeSelection").is_true();
    let most = if is_advanced(&spec) { ADVANCED_DEVICES_MAX } else { DEVICES_MAX };
    named::each_of_set(&spec, "devices", (most, "name"), &mut errors, &mut |device, errors| {
        check_device(device, stored.get(device.str("name")).copied(), errors);
        check_own_reach(device, is_per_device, errors);
        check_bindings(device, errors);
    });
    let bounds = (COUNTER_SETS_MAX, "name");
    named::each_of_set(&spec, "sharedCounters", bounds, &mut errors, &mut |set, errors| {
        check_counters(set, "name", errors);
    });
    errors
}

/// Warns of driver names with capital letters.
pub(super) fn warn(slice: &Field<'_>) -> Vec<String> {
    let driver = slice.at(&["spec", "driver"]);
    let is_lower = driver.text().to_lowercase() == driver.text();
    let words = format!(
        "{}: driver names should be lowercase; {:?} contains uppercase characters",
        driver.path(),
        driver.text()
    );
    (!is_lower).then_some(words).into_iter().collect()
}

fn check_pool(pool: &Field<'_>, errors: &mut Errors) {
    named::pool(&pool.get("name"), errors);
    let (count, generation) = (pool.get("resourceSliceCount"), pool.get("generation"));
    let number = count.int().unwrap_or(0);
    if number <= 0 {
        errors.push(count.invalid_as(number, "must be greater than zero"));
    }
    if generation.int().is_some_and(|number| number < 0) {
        errors.push(generation.invalid("must be greater than or equal to zero"));
    }
}

/// Whether devices have taints, consumed counters or list attributes, for which lower limits hold.
fn is_advanced(spec: &Field<'_>) -> bool {
    const LISTS: &[&str] = &["bools", "ints", "strings", "versions"];
    spec.items("devices").any(|device| {
        let attributes = device.map("attributes");
        let is_list = |attribute: &Value| LISTS.iter().any(|list| attribute.get(list).is_some());
        !device.get("taints").is_empty()
            || !device.get("consumesCounters").is_empty()
            || attributes.values().any(is_list)
    })
}

fn is_true_or_unset(field: &Field<'_>, errors: &mut Errors) -> bool {
    if field.is_false() {
        errors.push(field.invalid("must be either unset or set to true"));
    }
    field.is_true()
}

/// Checks the nodes that can reach the devices: exactly one of the members must be set.
fn check_reach(spec: &Field<'_>, errors: &mut Errors) {
    const ONE_OF: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, \
                          `perDeviceNodeSelection` is required";
    let mut set = Vec::new();
    if let Some(node) = spec.find("nodeName") {
        if node.is_empty() {
            errors.push(node.invalid("must be either unset or set to a non-empty string"));
        } else {
            set.push("`nodeName`");
            node.all_invalid(names::dns1123_subdomain(node.text()), errors);
        }
    }
    if let Some(selector) = spec.find("nodeSelector") {
        set.push("`nodeSelector`");
        pods::check_node_selector(&selector, false, errors);
        if selector.items("nodeSelectorTerms").len() != 1 {
            let terms = selector.get("nodeSelectorTerms");
            errors.push(terms.invalid("must have exactly one node selector term"));
        }
    }
    for (member, name) in
        [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")]
    {
        if is_true_or_unset(&spec.get(member), errors) {
            set.push(name);
        }
    }
    match set.len() {
        0 => errors.push(spec.required(ONE_OF)),
        1 => {}
        _ => {
            let words = format!("{ONE_OF}, but multiple fields are set");
            errors.push(spec.invalid_as(format!("{{{}}}", set.join(", ")), words));
        }
    }
}

/// Checks the nodes that can reach one device, if the slice lets each device select its nodes.
fn check_own_reach(device: &Field<'_>, is_per_device: bool, errors: &mut Errors) {
    const ONE_OF: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                          `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    if !is_per_device {
        if ["nodeName", "nodeSelector", "allNodes"].iter().any(|member| device.has(member)) {
            let words = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
                         `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
            errors.push(device.invalid_as(Value::Null, words));
        }
        return;
    }
    let mut set = Vec::new();
    if let Some(node) = device.find("nodeName") {
        if node.is_empty() {
            errors.push(node.invalid("must not be empty"));
        } else {
            set.push("`nodeName`");
            node.all_invalid(names::dns1123_subdomain(node.text()), errors);
        }
    }
    if let Some(selector) = device.find("nodeSelector") {
        set.push("`nodeSelector`");
        pods::check_node_selector(&selector, false, errors);
    }
    if is_true_or_unset(&device.get("allNodes"), errors) {
        set.push("`allNodes`");
    }
    match set.len() {
        0 => errors.push(device.required(ONE_OF)),
        1 => {}
        _ => errors.push(device.invalid_as(format!("{{{}}}", set.join(", ")), ONE_OF)),
    }
}

fn check_device(device: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    named::label(&device.get("name"), errors);
    let (attributes, capacity) = (device.get("attributes"), device.get("capacity"));
    let members = |field: &Field<'_>| field.value().as_object().map_or(0, Map::len);
    let count = members(&attributes) + members(&capacity);
    if count > MEMBERS_MAX {
        let words =
            format!("the total number of attributes and capacities must not exceed {MEMBERS_MAX}");
        errors.push(device.invalid_as(count as i64, words));
    }
    let values: usize = attributes.pairs().map(|(_, attribute)| value_count(&attribute)).sum();
    if values > VALUES_MAX {
        let words = format!("the total number of attribute values must not exceed {VALUES_MAX}");
        errors.push(device.invalid_as(values as i64, words));
    }
    for (name, attribute) in attributes.pairs() {
        named::qualified(&attributes, name, errors);
        check_attribute(&attribute, errors);
    }
    let is_new = |member: &str| old.is_none_or(|old| old.get(member) != device.value().get(member));
    if is_new("capacity") {
        let is_shared = device.get("allowMultipleAllocations").is_true();
        for (name, amount) in capacity.pairs() {
            named::qualified(&capacity, name, errors);
            if let Some(policy) = amount.find("requestPolicy") {
                match is_shared {
                    true => check_policy(&amount.get("value"), &policy, errors),
                    false => {
                        errors.push(policy.forbidden("allowMultipleAllocations must be true"));
                    }
                }
            }
        }
    }
    if is_new("taints") {
        let check = &mut |taint: &Field<'_>, errors: &mut Errors| check_taint(taint, None, errors);
        named::each(device, "taints", TAINTS_MAX, errors, check);
    }
    let bounds = (CONSUMPTIONS_MAX, "counterSet");
    named::each_of_set(device, "consumesCounters", bounds, errors, &mut |consumed, errors| {
        check_counters(consumed, "counterSet", errors);
    });
}

/// Checks counters by name, and the name of their set, which is in `member`.
fn check_counters(holder: &Field<'_>, member: &str, errors: &mut Errors) {
    let (name, counters) = (holder.get(member), holder.get("counters"));
    if name.is_empty() {
        errors.push(name.required(""));
    } else {
        named::label(&name, errors);
    }
    let count = counters.value().as_object().map_or(0, Map::len);
    match count {
        0 => errors.push(counters.required("")),
        1..=COUNTERS_MAX => {
            for (name, _) in counters.pairs() {
                counters.all_invalid_as(name, names::dns1123_label(name), errors);
            }
        }
        _ => errors.push(Error::too_many(&counters.path(), count, COUNTERS_MAX)),
    }
}

/// The members of an attribute: one of them has its value.
const KINDS: &[&str] =
    &["bool", "int", "string", "version", "bools", "ints", "strings", "versions"];

fn value_count(attribute: &Field<'_>) -> usize {
    let listed: usize = KINDS.iter().map(|kind| attribute.items(kind).len()).sum();
    listed.max(1)
}

fn check_attribute(attribute: &Field<'_>, errors: &mut Errors) {
    let mut count = 0;
    for kind in KINDS {
        let Some(value) = attribute.find(kind) else { continue };
        count += 1;
        if kind.ends_with('s') && value.is_empty() {
            errors.push(value.invalid("must not be empty if specified"));
        }
        match *kind {
            "string" => check_text(&value, false, errors),
            "version" => check_text(&value, true, errors),
            "strings" | "versions" => {
                let is_version = *kind == "versions";
                attribute.items(kind).for_each(|item| check_text(&item, is_version, errors));
            }
            _ => {}
        }
    }
    match count {
        0 => errors.push(attribute.invalid_as("", "exactly one value must be specified")),
        1 => {}
        _ => errors.push(attribute.invalid("exactly one value must be specified")),
    }
}

fn check_text(text: &Field<'_>, is_version: bool, errors: &mut Errors) {
    if is_version && !is_semantic_version(text.text()) {
        let words = "must be a string compatible with semver.org spec 2.0.0";
        errors.push(text.invalid(words));
    }
    if text.text().len() > TEXT_LENGTH_MAX {
        errors.push(Error::too_long(&text.path(), TEXT_LENGTH_MAX));
    }
}

/// Whether a text is a semantic version such as `1.2.3-alpha.1+build.5`.
fn is_semantic_version(text: &str) -> bool {
    let (rest, build) = match text.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (text, None),
    };
    let (numbers, before) = match rest.split_once('-') {
        Some((numbers, before)) => (numbers, Some(before)),
        None => (rest, None),
    };
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let is_number = |word: &str| {
        let has_digits = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        has_digits && (word == "0" || !word.starts_with('0'))
    };
    let is_before = |word: &str| {
        is_word(word) && (is_number(word) || !word.bytes().all(|b| b.is_ascii_digit()))
    };
    numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && before.is_none_or(|before| before.split('.').all(is_before))
        && build.is_none_or(|build| build.split('.').all(is_word))
}
