//! What is measured of tokens: how often one is known already, and which sorts of them are used.

use std::time::Instant;

use pintle_measure::{Counter, Distribution, Gauge, nanoseconds};

/// Upstream's buckets of how long it takes to find out whose a token is (Prometheus' own).
pub static TOKEN_BOUNDS: [u64; 11] =
    nanoseconds([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);

/// The measures of service accounts' tokens.
#[derive(Debug)]
pub struct Measures {
    /// How long it took to know a token: one that was verified before.
    pub hits: Distribution,
    /// One that was not.
    pub misses: Distribution,
    /// Tokens that were verified and are signed well.
    pub verified: Counter,
    /// Tokens that were verified and are not.
    pub refused: Counter,
    /// Tokens that are being verified.
    pub verifying: Gauge,
    /// Uses of tokens in secrets.
    pub legacy: Counter,
    /// Of these, of tokens whose account names their secret.
    pub legacy_automatic: Counter,
    /// Of other secrets.
    pub legacy_manual: Counter,
    /// Uses of tokens in secrets that are marked invalid.
    pub legacy_invalidated: Counter,
    /// Uses of other tokens: before their client should have got a new one,
    pub valid: Counter,
    /// and after.
    pub stale: Counter,
}

impl Default for Measures {
    fn default() -> Self {
        Self {
            hits: Distribution::new(&TOKEN_BOUNDS),
            misses: Distribution::new(&TOKEN_BOUNDS),
            verified: Counter::default(),
            refused: Counter::default(),
            verifying: Gauge::default(),
            legacy: Counter::default(),
            legacy_automatic: Counter::default(),
            legacy_manual: Counter::default(),
            legacy_invalidated: Counter::default(),
            valid: Counter::default(),
            stale: Counter::default(),
        }
    }
}

impl Measures {
    /// Counts a verification.
    pub(super) fn verified<T, E>(&self, verify: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let began = Instant::now();
        self.verifying.add(1);
        let verified = verify();
        self.verifying.add(-1);
        if verified.is_ok() { &self.verified } else { &self.refused }.add(1);
        self.misses.took(began.elapsed());
        verified
    }
}
