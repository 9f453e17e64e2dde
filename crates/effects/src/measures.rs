//! Measurements of effects: addresses and node ports of services, and issued certificates. Dry runs
//! allocate nothing and are not counted.

use pintle_measure::{Counter, Distribution, Series, nanoseconds};

/// Upstream's buckets for the duration of an allocation (Prometheus' defaults).
pub static ALLOCATION_BOUNDS: [u64; 11] =
    nanoseconds([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);

/// Whether the client or the server chose a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Static,
    Dynamic,
}

impl Scope {
    /// Upstream's label.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        }
    }
}

/// The measurements of effects.
#[derive(Debug)]
pub struct Measures {
    /// Allocated addresses, by range and scope.
    pub addresses: Series<2, Counter>,
    /// Failed allocations of addresses, by range and scope.
    pub address_errors: Series<2, Counter>,
    /// The durations of address allocations, by range.
    pub address_durations: Series<1, Distribution>,
    /// Allocated node ports, by scope.
    pub ports: Series<1, Counter>,
    /// Failed allocations of node ports, by scope.
    pub port_errors: Series<1, Counter>,
    /// Problems found by repairs of the node port record, by upstream's names.
    pub port_repairs: Series<1, Counter>,
    /// Failed repairs of the record.
    pub failed_port_repairs: Counter,
    /// Certificates whose requests named a validity, by signer.
    pub requested_validities: Series<1, Counter>,
    /// The certificates of these requests that are valid for about the named time, by signer.
    pub honored_validities: Series<1, Counter>,
}

impl Default for Measures {
    fn default() -> Self {
        Self {
            addresses: Series::default(),
            address_errors: Series::default(),
            address_durations: Series::new(|| Distribution::new(&ALLOCATION_BOUNDS)),
            ports: Series::default(),
            port_errors: Series::default(),
            port_repairs: Series::default(),
            failed_port_repairs: Counter::default(),
            requested_validities: Series::default(),
            honored_validities: Series::default(),
        }
    }
}

impl Measures {
    /// Counts an attempt to allocate a node port.
    pub(crate) fn port(&self, scope: Scope, taken: bool) {
        let series = if taken { &self.ports } else { &self.port_errors };
        series.with([scope.name()]).add(1);
    }

    /// Counts an attempt to allocate an address of a range.
    pub(crate) fn address(&self, range: &str, scope: Scope, taken: bool) {
        let series = if taken { &self.addresses } else { &self.address_errors };
        series.with([range, scope.name()]).add(1);
    }
}
