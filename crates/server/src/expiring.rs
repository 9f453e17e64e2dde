//! A bounded cache whose values expire: verdicts of webhooks, and verified tokens.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use parking_lot::Mutex;

/// Values that expire, by key. When the cache is full, the key that was added first is evicted.
pub(crate) struct ExpiringCache<V> {
    values_max: usize,
    cached: Mutex<Cached<V>>,
}

struct Cached<V> {
    by_key: HashMap<Box<[u8]>, (V, Instant)>,
    /// The keys, the oldest first.
    order: VecDeque<Box<[u8]>>,
}

impl<V: Clone> ExpiringCache<V> {
    /// A cache of at most `values_max` values.
    pub(crate) fn new(values_max: usize) -> Self {
        let cached = Cached { by_key: HashMap::new(), order: VecDeque::new() };
        Self { values_max, cached: Mutex::new(cached) }
    }

    /// The value of a key, if it is cached and has not expired.
    pub(crate) fn get(&self, key: &[u8]) -> Option<V> {
        let cached = self.cached.lock();
        let (value, until) = cached.by_key.get(key)?;
        (Instant::now() < *until).then(|| value.clone())
    }

    /// Caches a value that expires at `until`.
    pub(crate) fn put(&self, key: Box<[u8]>, value: V, until: Instant) {
        let Cached { by_key, order } = &mut *self.cached.lock();
        if by_key.insert(key.clone(), (value, until)).is_none() {
            order.push_back(key);
        }
        if order.len() > self.values_max {
            order.pop_front().map(|oldest| by_key.remove(&oldest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const VALUES_MAX: usize = 8192;

    #[test]
    fn values_expire_and_the_oldest_is_evicted() {
        let cache = ExpiringCache::new(VALUES_MAX);
        let (now, minute) = (Instant::now(), Duration::from_secs(60));
        let key = |number: usize| number.to_string().into_bytes().into_boxed_slice();
        cache.put(key(0), 0, now);
        assert_eq!(cache.get(b"0"), None, "expired");
        for number in 0..=VALUES_MAX {
            cache.put(key(number), number, now + minute);
        }
        assert_eq!(cache.get(b"0"), None, "evicted as the oldest");
        assert!(cache.get(b"1").is_some());
        assert_eq!(cache.cached.lock().by_key.len(), VALUES_MAX);
    }
}
