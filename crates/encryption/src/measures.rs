//! What is measured of single values, by upstream's labels (`apiserver/pkg/storage/value/metrics.go`).

use std::time::Instant;

use pintle_measure::{Counter, Distribution, Series, nanoseconds};

use crate::Error;

/// The bounds of [`Measures::took`], upstream's: each twice the one before.
pub const TRANSFORMATION_BOUNDS: [u64; 25] = {
    let mut bounds = nanoseconds([5e-6; 25]);
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = 2 * bounds[at - 1];
        at += 1;
    }
    bounds
};

/// What there is to count of values that are encrypted and decrypted: once for the provider, and once for the
/// key where a provider has several.
#[derive(Debug)]
pub struct Measures {
    /// How many: by resource, outcome (`OK`), direction (`to_storage`) and prefix.
    pub operations: Series<4, Counter>,
    /// How long those took that succeeded: by direction and prefix.
    pub took: Series<2, Distribution>,
}

impl Default for Measures {
    fn default() -> Self {
        let took = Series::new(|| Distribution::new(&TRANSFORMATION_BOUNDS));
        Self { operations: Series::default(), took }
    }
}

/// A value that is encrypted or decrypted.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// Of which resource: `deployments.apps`.
    pub(crate) resource: &'a str,
    /// Where it is stored.
    pub(crate) path: &'a [u8],
    pub(crate) measures: &'a Measures,
}

pub(crate) const FROM_STORAGE: &str = "from_storage";
pub(crate) const TO_STORAGE: &str = "to_storage";

impl Subject<'_> {
    /// Counts what one prefix led to.
    pub(crate) fn ended<T>(
        &self,
        direction: &str,
        prefix: &[u8],
        began: Instant,
        outcome: &Result<T, Error>,
    ) {
        let prefix = String::from_utf8_lossy(prefix);
        let status = if outcome.is_ok() { "OK" } else { "unknown-non-grpc" };
        self.measures.operations.with([self.resource, status, direction, &prefix]).add(1);
        if outcome.is_ok() {
            self.measures.took.with([direction, &prefix]).took(began.elapsed());
        }
    }
}
