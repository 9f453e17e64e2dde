//! resource.k8s.io: devices, and claims on them.

use pintle_registry::table::Cell;
use pintle_value::Value;

use super::column::Cell::{AgeOr, By, ByTime, Int, Text};
use super::column::Description::{Field, Words};
use super::column::{AGE, NAME, NAME_AND_AGE, integer, string};
use super::read::{count_at, deleting, has, int_at, is_true, items_at, str_at, time_at};
use super::text::{age, joined};
use super::{Columns, Kind};

const GROUP: &str = "resource.k8s.io";

pub(super) const KINDS: &[Kind] = &[
    Kind::new(GROUP, "DeviceClass", NAME_AND_AGE),
    Kind::new(GROUP, "DeviceTaintRule", DEVICE_TAINT_RULE),
    Kind::new(GROUP, "ResourceClaim", RESOURCE_CLAIM),
    Kind::new(GROUP, "ResourceClaimTemplate", NAME_AND_AGE),
    Kind::new(GROUP, "ResourcePoolStatusRequest", RESOURCE_POOL_STATUS_REQUEST),
    Kind::new(GROUP, "ResourceSlice", RESOURCE_SLICE),
];

const DEVICE_TAINT_RULE: Columns = &[
    NAME,
    string("Key", Text("spec.taint.key"), Field("resource.v1.DeviceTaint", "key")),
    string("Value", Text("spec.taint.value"), Field("resource.v1.DeviceTaint", "value")),
    string("Effect", Text("spec.taint.effect"), Field("resource.v1.DeviceTaint", "effect")),
    string(
        "TimeAdded",
        AgeOr("spec.taint.timeAdded", ""),
        Field("resource.v1.DeviceTaint", "timeAdded"),
    ),
    AGE,
];

const RESOURCE_CLAIM: Columns = &[
    NAME,
    string(
        "State",
        By(claim_state),
        Words("A summary of the current state (allocated, pending, reserved, etc.)."),
    ),
    AGE,
];

const RESOURCE_POOL_STATUS_REQUEST: Columns = &[
    NAME,
    string("Driver", Text("spec.driver"), Words("The driver to query pools for.")),
    string(
        "Total",
        By(|r| devices(r, "totalDevices")),
        Words("Total number of devices across all pools."),
    ),
    string(
        "Available",
        By(|r| devices(r, "availableDevices")),
        Words("Number of available devices across all pools."),
    ),
    string(
        "Allocated",
        By(|r| devices(r, "allocatedDevices")),
        Words("Number of allocated devices across all pools."),
    ),
    string(
        "Unavailable",
        By(|r| devices(r, "unavailableDevices")),
        Words("Number of unavailable devices across all pools."),
    ),
    string("Errors", By(pool_errors), Words("Number of pools with validation errors.")),
    integer("Pools", Int("status.poolCount"), Words("Total number of matching pools.")),
    string("Status", By(request_status), Words("Processing status.")),
    string("Completed", ByTime(completed), Words("Time since the observation completed.")),
];

const RESOURCE_SLICE: Columns = &[
    NAME,
    string("Node", Text("spec.nodeName"), Field("resource.v1.ResourceSliceSpec", "nodeName")),
    string("Driver", Text("spec.driver"), Field("resource.v1.ResourceSliceSpec", "driver")),
    string("Pool", Text("spec.pool.name"), Field("resource.v1.ResourcePool", "name")),
    AGE,
];

fn claim_state(claim: &Value) -> Value {
    let (deleted, allocated) = (deleting(claim), has(claim, "status.allocation"));
    let reserved = allocated && !items_at(claim, "status.reservedFor").is_empty();
    let states = [
        ("deleted", deleted),
        ("allocated", allocated),
        ("reserved", reserved),
        ("pending", !deleted && !allocated),
    ];
    joined(states.iter().filter(|(_, is)| *is).map(|(state, _)| state)).into()
}

/// The condition with the outcome of a request for the status of pools.
fn outcome(request: &Value) -> Option<&Value> {
    let mut conditions = items_at(request, "status.conditions").iter();
    conditions.find(|c| is_true(c) && matches!(str_at(c, "type"), "Complete" | "Failed"))
}

fn outcome_type(request: &Value) -> &str {
    outcome(request).map_or("Pending", |condition| str_at(condition, "type"))
}

/// The pools in a request's status; `None` if there is no status, or if the request failed.
fn pools(request: &Value) -> Option<&[Value]> {
    (has(request, "status") && outcome_type(request) != "Failed")
        .then(|| items_at(request, "status.pools"))
}

/// The sum of a number over all pools.
fn devices(request: &Value, member: &str) -> Value {
    match pools(request) {
        Some(pools) => {
            pools.iter().map(|pool| int_at(pool, member)).fold(0, i64::saturating_add).into()
        }
        None => "-".into(),
    }
}

fn pool_errors(request: &Value) -> Value {
    match pools(request) {
        Some(pools) => {
            let wrong = pools.iter().filter(|pool| has(pool, "validationError"));
            (wrong.count() as i64).into()
        }
        None => "-".into(),
    }
}

fn request_status(request: &Value) -> Value {
    let listed = count_at(request, "status.pools");
    match (outcome_type(request), int_at(request, "status.poolCount")) {
        ("Complete", count) if count > listed => {
            format!("Complete ({listed}/{count} pools)").into()
        }
        (outcome, _) => outcome.into(),
    }
}

fn completed(request: &Value) -> Cell {
    match outcome(request).filter(|condition| str_at(condition, "type") == "Complete") {
        Some(condition) => age(time_at(condition, "lastTransitionTime")),
        None => "<none>".into(),
    }
}
