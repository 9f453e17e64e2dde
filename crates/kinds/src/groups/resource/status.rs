//! The rules for the allocations of claims, in upstream's order.

use std::collections::BTreeSet;

use pintle_meta::field::Error;
use pintle_value::{Value, json, order::Ordered};

use super::{
    claims::{Requests, check_config, check_raw},
    named,
};
use crate::{
    addresses,
    checks::{IMMUTABLE, items},
    conditions,
    field::{Errors, Field},
    pods,
    rules::{Rule::Given, check, choice},
};

const CONSUMERS_MAX: usize = 256;
const RESULTS_MAX: usize = 32;
/// The most configurations from classes and the claim.
const CONFIGS_MAX: usize = 64;
const CONDITIONS_MAX: usize = 8;
const DATA_LENGTH_MAX: usize = 10 * 1024;
const ADDRESSES_MAX: usize = 16;

/// The driver, pool, device and share ID that identify an allocated device.
type Device<'a> = [&'a str; 4];

fn device(value: &Value) -> Device<'_> {
    ["driver", "pool", "device", "shareID"].map(|m| value.str_at(&[m]).unwrap_or_default())
}

const RESULTS: &[&str] = &["status", "allocation", "devices", "results"];

/// Drops the drivers' status of devices that are no longer allocated to the claim.
pub(super) fn drop_deallocated(new: &mut Value, old: &Value) {
    fn whole(value: &Value) -> [String; 3] {
        let [driver, pool, device, _] = device(value);
        [driver, pool, device].map(str::to_owned)
    }
    let remaining: BTreeSet<_> = items(new, RESULTS).iter().map(whole).collect();
    let mut gone: BTreeSet<_> = items(old, RESULTS).iter().map(whole).collect();
    gone.retain(|device| !remaining.contains(device));
    let Some(status) = new.get_mut("status").and_then(Value::as_object_mut) else { return };
    if let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) {
        devices.retain(|device| !gone.contains(&whole(device)));
        if devices.is_empty() {
            status.remove("devices");
        }
    }
}

/// Validates a claim's status.
pub(super) fn validate(new: &Value, old: &Value) -> Errors {
    let claim = Field::root(new);
    let status = claim.get("status");
    let mut errors = Errors::new();
    let requests = claim.at(&["spec", "devices"]);
    let requests = Requests::of(requests.value());
    let bounds = (CONSUMERS_MAX, "uid");
    named::each_of_set(&status, "reservedFor", bounds, &mut errors, &mut |user, errors| {
        for member in ["resource", "name", "uid"] {
            let field = user.get(member);
            if field.is_empty() {
                errors.push(field.required(""));
            }
        }
    });
    let allocated: BTreeSet<_> = items(new, RESULTS).iter().map(device).collect();
    let mut seen = BTreeSet::new();
    for field in status.items("devices") {
        check_device(&field, &allocated, &mut errors);
    }
    for field in status.items("devices") {
        let name = device(field.value());
        if !seen.insert(name.map(str::to_owned)) {
            errors.push(Error::duplicate(&field.path(), &joined(name).into()));
        }
    }
    check_reserved(&claim, old, &mut errors);
    let allocation = status.get("allocation");
    match old.at(&["status", "allocation"]).filter(|stored| !stored.is_null()) {
        Some(stored) if allocation.is_set() && stored != allocation.value() => {
            errors.push(allocation.invalid(IMMUTABLE));
        }
        Some(_) => {}
        None if allocation.is_set() => check_allocation(&allocation, &requests, &mut errors),
        None => {}
    }
    errors
}

fn joined([driver, pool, device, share]: Device<'_>) -> String {
    let mut name = format!("{driver}/{pool}/{device}");
    if !share.is_empty() {
        name.push('/');
        name.push_str(share);
    }
    name
}

/// A device in upstream's internal form.
fn shown(device: Device<'_>) -> String {
    let [driver, pool, device, share] = device.map(|text| json::to_string(&text.into()));
    format!(r#"{{"Driver":{driver},"Pool":{pool},"Device":{device},"ShareID":{share}}}"#)
}

/// Only an allocated claim can be reserved, and a terminating one gets no new reservation.
fn check_reserved(claim: &Field<'_>, old: &Value, errors: &mut Errors) {
    let status = claim.get("status");
    let reserved = status.get("reservedFor");
    if reserved.is_empty() {
        return;
    }
    if !status.has("allocation") {
        errors.push(reserved.forbidden("may not be specified when `allocated` is not set"));
    } else if claim.at(&["metadata", "deletionTimestamp"]).is_set() {
        let stored = items(old, &["status", "reservedFor"]).iter();
        let stored: BTreeSet<Ordered<&Value>> = stored.map(Ordered).collect();
        if status.items("reservedFor").any(|user| !stored.contains(&Ordered(user.value()))) {
            let words = "new entries may not be added while `deallocationRequested` or \
                         `deletionTimestamp` are set";
            errors.push(reserved.forbidden(words));
        }
    }
}

fn check_allocation(allocation: &Field<'_>, requests: &Requests<'_>, errors: &mut Errors) {
    let devices = allocation.get("devices");
    named::each(&devices, "results", RESULTS_MAX, errors, &mut |result, errors| {
        requests.check(&result.get("request"), errors);
        check_name(result, errors);
        check_bindings(result, errors);
    });
    named::each(&devices, "config", CONFIGS_MAX, errors, &mut |config, errors| {
        choice(&config.get("source"), &["FromClaim", "FromClass"], errors);
        requests.check_all(config, errors);
        check_config(config, errors);
    });
    if let Some(selector) = allocation.find("nodeSelector") {
        pods::check_node_selector(&selector, false, errors);
    }
}

fn check_name(holder: &Field<'_>, errors: &mut Errors) {
    named::driver(&holder.get("driver"), errors);
    named::pool(&holder.get("pool"), errors);
    named::label(&holder.get("device"), errors);
    check(holder, &[Given("shareID", named::uuid)], errors);
}

fn check_device(field: &Field<'_>, allocated: &BTreeSet<Device<'_>>, errors: &mut Errors) {
    check_name(field, errors);
    let name = device(field.value());
    if !allocated.contains(&name) {
        let words = "must be an allocated device in the claim";
        errors.push(Error::invalid_shown(&field.path(), shown(name), words));
    }
    let count = field.items("conditions").len();
    if count > CONDITIONS_MAX {
        let path = field.get("conditions").path();
        errors.push(Error::too_many(&path, count, CONDITIONS_MAX));
    }
    conditions::check(field, errors);
    if let Some(data) = field.find("data") {
        check_raw(&data, DATA_LENGTH_MAX, errors);
    }
    let network = field.get("networkData");
    for (member, length_max) in [("interfaceName", 256), ("hardwareAddress", 128)] {
        let text = network.get(member);
        if text.text().len() > length_max {
            errors.push(Error::too_long(&text.path(), length_max));
        }
    }
    named::each_of_set(&network, "ips", (ADDRESSES_MAX, ""), errors, &mut |address, errors| {
        address.all_invalid(addresses::interface(address.text()), errors);
    });
}

/// Checks the conditions under which an allocation holds, and those under which it has failed: a
/// device has both lists or none.
pub(super) fn check_bindings(holder: &Field<'_>, errors: &mut Errors) {
    const LISTS: [&str; 2] = ["bindingConditions", "bindingFailureConditions"];
    const COUNT_MAX: usize = 4;
    let [conditions, failures] = LISTS;
    for list in LISTS {
        named::each(holder, list, COUNT_MAX, errors, &mut |condition, errors| {
            let wrong = pintle_meta::names::qualified_name(condition.text());
            condition.all_invalid(wrong, errors);
        });
    }
    let of = |list| holder.items(list).map(|condition| condition.text().to_owned());
    let good: BTreeSet<String> = of(conditions).collect();
    for list in LISTS {
        let mut seen = BTreeSet::new();
        for condition in holder.items(list) {
            if !seen.insert(condition.text().to_owned()) {
                errors.push(condition.duplicate());
            }
            if list == failures && good.contains(condition.text()) {
                let words = "bindingFailureConditions must not overlap with bindingConditions";
                errors.push(condition.invalid(words));
            }
        }
    }
    for (list, other) in [(conditions, failures), (failures, conditions)] {
        let field = holder.get(list);
        if field.is_empty() && !holder.get(other).is_empty() {
            errors.push(field.invalid(format!("{list} are required to use {other}")));
        }
    }
}
