//! Measures of impersonation (upstream: `endpoints/filters/impersonation/metrics`).

use std::time::Duration;

use pintle_measure::{Distribution, Series, nanoseconds};

/// Upstream's buckets of impersonations.
pub(crate) static IMPERSONATION_BOUNDS: [u64; 15] = nanoseconds([
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096,
    8.192, 16.384,
]);

/// The durations of impersonations, by decision and mode.
pub(crate) struct Measures {
    pub(crate) attempts: Series<2, Distribution>,
    /// The durations of the single authorizations that impersonations need.
    pub(crate) authorizations: Series<2, Distribution>,
}

impl Default for Measures {
    fn default() -> Self {
        let durations = || Series::new(|| Distribution::new(&IMPERSONATION_BOUNDS));
        Self { attempts: durations(), authorizations: durations() }
    }
}

impl Measures {
    /// Counts an impersonation that `mode` permitted (`""` for the legacy one), or that was denied
    /// if `mode` is `None`.
    pub(super) fn attempted(&self, mode: Option<&str>, took: Duration) {
        self.attempts.with([decision(mode.is_some()), mode.map_or("", label)]).took(took);
    }

    /// Counts an authorization in a mode.
    pub(super) fn authorized(&self, mode: &str, is_allowed: bool, took: Duration) {
        self.authorizations.with([decision(is_allowed), label(mode)]).took(took);
    }
}

const fn decision(is_allowed: bool) -> &'static str {
    if is_allowed { "allowed" } else { "denied" }
}

/// Upstream's label of a mode.
fn label(mode: &str) -> &str {
    if mode.is_empty() { "legacy" } else { mode }
}
