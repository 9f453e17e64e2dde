//! Measurements of transformed values, with upstream's labels
//! (`apiserver/pkg/storage/value/metrics.go`).

use std::time::Instant;

use pintle_measure::{Counter, Distribution, Series, nanoseconds};

use crate::Error;

/// The bounds of [`Measures::took`], upstream's: each is twice the previous one.
pub const TRANSFORMATION_BOUNDS: [u64; 25] = {
    let mut bounds = nanoseconds([5e-6; 25]);
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = 2 * bounds[at - 1];
        at += 1;
    }
    bounds
};

/// Measurements of encrypted and decrypted values: one for the provider, and one for its key if it
/// can have several.
#[derive(Debug)]
pub struct Measures {
    /// The number of operations by resource, outcome (`OK`), direction (`to_storage`) and prefix.
    pub operations: Series<4, Counter>,
    /// The durations of the successful operations by direction and prefix.
    pub took: Series<2, Distribution>,
}

impl Default for Measures {
    fn default() -> Self {
        let took = Series::new(|| Distribution::new(&TRANSFORMATION_BOUNDS));
        Self { operations: Series::default(), took }
    }
}

/// A value to encrypt or decrypt.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// The resource: `deployments.apps`.
    pub(crate) resource: &'a str,
    /// The storage path.
    pub(crate) path: &'a [u8],
    pub(crate) measures: &'a Measures,
}

pub(crate) const FROM_STORAGE: &str = "from_storage";
pub(crate) const TO_STORAGE: &str = "to_storage";

impl Subject<'_> {
    /// Counts an operation of one prefix.
    pub(crate) fn record<T>(
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
