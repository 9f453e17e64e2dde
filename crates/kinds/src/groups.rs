//! The kinds, a module for each API group.

mod admissionregistration;
pub(crate) mod apiextensions;
mod apiregistration;
pub(crate) mod apps;
mod authentication;
mod authorization;
pub(crate) mod autoscaling;
mod batch;
pub(crate) mod certificates;
mod coordination;
mod core;
mod discovery;
mod events;
mod flowcontrol;
mod internal;
mod networking;
mod node;
mod policy;
mod rbac;
mod resource;
mod scheduling;
pub(crate) mod storage;
mod storagemigration;
mod workload;

use crate::kind::Kind;

/// Every group's kinds.
const GROUPS: &[&[Kind]] = &[
    core::KINDS,
    admissionregistration::KINDS,
    apiextensions::KINDS,
    apiregistration::KINDS,
    apps::KINDS,
    authentication::KINDS,
    authorization::KINDS,
    autoscaling::KINDS,
    batch::KINDS,
    certificates::KINDS,
    coordination::KINDS,
    discovery::KINDS,
    events::KINDS,
    flowcontrol::KINDS,
    internal::KINDS,
    networking::KINDS,
    node::KINDS,
    policy::KINDS,
    rbac::KINDS,
    resource::KINDS,
    scheduling::KINDS,
    storage::KINDS,
    storagemigration::KINDS,
];

/// The entry of a resource.
pub(crate) fn find(group: &str, resource: &str) -> Option<&'static Kind> {
    all().find(|kind| kind.group == group && kind.resource == resource)
}

/// Every entry.
pub(crate) fn all() -> impl Iterator<Item = &'static Kind> {
    GROUPS.iter().copied().flatten()
}
