//! What is measured of effects: addresses and node ports of services, certificates that were issued. Dry runs take
//! nothing, and are not counted.

use pintle_measure::{Counter, Distribution, Series, nanoseconds};

/// Upstream's buckets of how long it takes to have an address (Prometheus' own).
pub static ALLOCATION_BOUNDS: [u64; 11] =
    nanoseconds([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);

/// How something was taken: what was asked for, or what is free.
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

/// The measures of effects.
#[derive(Debug)]
pub struct Measures {
    /// Addresses that were taken, by range and scope.
    pub addresses: Series<2, Counter>,
    /// Addresses that could not be had, by range and scope.
    pub address_errors: Series<2, Counter>,
    /// How long it took to have an address, by range.
    pub address_durations: Series<1, Distribution>,
    /// Node ports that were taken, by scope.
    pub ports: Series<1, Counter>,
    /// Node ports that could not be had, by scope.
    pub port_errors: Series<1, Counter>,
    /// What was wrong with the record of node ports when it was repaired, by upstream's names.
    pub port_repairs: Series<1, Counter>,
    /// Repairs of the record that failed.
    pub failed_port_repairs: Counter,
    /// Certificates whose requests said how long they are to be valid, by signer.
    pub requested_validities: Series<1, Counter>,
    /// Of these, those that are valid about as long, by signer.
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
    /// Counts an attempt to take a node port.
    pub(crate) fn port(&self, scope: Scope, taken: bool) {
        let series = if taken { &self.ports } else { &self.port_errors };
        series.with([scope.name()]).add(1);
    }

    /// Counts an attempt to take an address of a range.
    pub(crate) fn address(&self, range: &str, scope: Scope, taken: bool) {
        let series = if taken { &self.addresses } else { &self.address_errors };
        series.with([range, scope.name()]).add(1);
    }
}
