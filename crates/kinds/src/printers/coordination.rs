//! coordination.k8s.io.

use super::column::Cell::Text;
use super::column::{AGE, NAME, string};
use super::{Columns, Kind};

const GROUP: &str = "coordination.k8s.io";

pub(super) const KINDS: &[Kind] =
    &[Kind::new(GROUP, "Lease", LEASE), Kind::new(GROUP, "LeaseCandidate", LEASE_CANDIDATE)];

const LEASE: Columns = &[NAME, string("Holder", Text("spec.holderIdentity"), "Who has it."), AGE];

const LEASE_CANDIDATE: Columns = &[
    NAME,
    string("LeaseName", Text("spec.leaseName"), "The lease that it wants."),
    string("BinaryVersion", Text("spec.binaryVersion"), "The version of the candidate."),
    string("EmulationVersion", Text("spec.emulationVersion"), "The version it acts as."),
    AGE,
];
