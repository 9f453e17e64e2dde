//! Token buckets, one per key, in an LRU cache.

use super::configuration::EventLimit;
use crate::lru_cache::LruCache;

/// The buckets of one limit.
pub(super) struct Buckets {
    per_second: f64,
    burst: f64,
    by_key: LruCache<Bucket>,
}

struct Bucket {
    tokens: f64,
    filled_at_micros: i64,
}

impl Buckets {
    pub(super) fn new(limit: &EventLimit) -> Self {
        Self {
            per_second: f64::from(limit.qps),
            burst: f64::from(limit.burst),
            by_key: LruCache::new(limit.cache_size),
        }
    }

    /// Takes a token from the bucket of a key. Returns false if the bucket is empty at this time.
    pub(super) fn take(&mut self, key: &str, now_micros: i64) -> bool {
        let full = || Bucket { tokens: self.burst, filled_at_micros: now_micros };
        let bucket = self.by_key.entry(key.as_bytes(), full);
        let passed_micros = now_micros.saturating_sub(bucket.filled_at_micros).max(0);
        let filled = passed_micros as f64 / 1_000_000.0 * self.per_second;
        bucket.tokens = (bucket.tokens + filled).min(self.burst);
        bucket.filled_at_micros = bucket.filled_at_micros.max(now_micros);
        let has_token = bucket.tokens >= 1.0;
        if has_token {
            bucket.tokens -= 1.0;
        }
        has_token
    }
}

#[cfg(test)]
mod tests {
    use super::super::configuration::LimitType;
    use super::*;

    const SECOND: i64 = 1_000_000;

    /// Upstream: `plugin/pkg/admission/eventratelimit/admission_test.go`.
    #[test]
    fn buckets_fill_at_their_rate_up_to_the_burst() {
        let limit_type = LimitType::Namespace;
        let limit = EventLimit { limit_type, qps: 2, burst: 3, cache_size: 2 };
        let mut buckets = Buckets::new(&limit);
        for (key, at, expected) in [
            ("a", 0, true),
            ("a", 0, true),
            ("a", 0, true),
            ("a", 0, false),
            ("b", 0, true),
            ("a", SECOND / 2, true),
            ("a", SECOND / 2, false),
            // A clock that is set back does not fill a bucket.
            ("a", 0, false),
            ("a", SECOND / 2, false),
            ("a", 100 * SECOND, true),
            ("a", 100 * SECOND, true),
            ("a", 100 * SECOND, true),
            ("a", 100 * SECOND, false),
            // A bucket that was evicted from the cache is full when it is created again.
            ("c", 100 * SECOND, true),
            ("b", 100 * SECOND, true),
            ("a", 100 * SECOND, true),
        ] {
            assert_eq!(buckets.take(key, at), expected, "{key} at {at}");
        }
    }
}
