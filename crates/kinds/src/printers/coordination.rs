//! coordination.k8s.io.

use super::column::Cell::Text;
use super::column::Description::{Field, Words};
use super::column::{AGE, NAME, string};
use super::{Columns, Kind};

const GROUP: &str = "coordination.k8s.io";

pub(super) const KINDS: &[Kind] =
    &[Kind::new(GROUP, "Lease", LEASE), Kind::new(GROUP, "LeaseCandidate", LEASE_CANDIDATE)];

const LEASE: Columns = &[
    NAME,
    string(
        "Holder",
        Text("spec.holderIdentity"),
        Field("coordination.v1.LeaseSpec", "holderIdentity"),
    ),
    AGE,
];

const LEASE_CANDIDATE: Columns = &[
    NAME,
    string(
        "LeaseName",
        Text("spec.leaseName"),
        Field("coordination.v1alpha2.LeaseCandidateSpec", "leaseName"),
    ),
    string("BinaryVersion", Text("spec.binaryVersion"), Words("")),
    string("EmulationVersion", Text("spec.emulationVersion"), Words("")),
    AGE,
];
