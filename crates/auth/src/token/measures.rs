//! Measures of service account tokens: hits of the cache, verifications, and uses by kind of token.

use std::time::Instant;

use pintle_measure::{Counter, Distribution, Gauge, nanoseconds};

/// Upstream's buckets for the time to verify a token, which are Prometheus' defaults.
pub static TOKEN_BOUNDS: [u64; 11] =
    nanoseconds([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);

/// The measures of service accounts' tokens.
#[derive(Debug)]
pub struct Measures {
    /// The time to find a token in the cache.
    pub hits: Distribution,
    /// The time to verify a token that was not in the cache.
    pub misses: Distribution,
    /// Verifications without an error, including those of tokens that are no service account's.
    pub verified: Counter,
    /// Verifications with an error: an invalid signature or, in a legacy token, invalid claims.
    pub refused: Counter,
    /// Tokens that are being verified.
    pub verifying: Gauge,
    /// Accepted uses of legacy tokens, which are in secrets.
    pub legacy: Counter,
    /// Accepted uses of legacy tokens whose service account names the secret.
    pub legacy_automatic: Counter,
    /// Accepted uses of legacy tokens in other secrets.
    pub legacy_manual: Counter,
    /// Refused uses of legacy tokens in secrets that are marked invalid.
    pub legacy_invalidated: Counter,
    /// Uses of tokens with an extended lifetime before they are stale.
    pub valid: Counter,
    /// Uses of stale tokens.
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
    /// Runs a verification and measures it.
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
