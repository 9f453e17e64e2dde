//! A bounded least-recently-used cache.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};

/// Values by key, at most `count_max`; the value that was used least recently is removed first.
///
/// Clients choose the keys, which may be long. So the cache stores 128 bits of a hash with a random
/// seed instead of a key.
pub(crate) struct LruCache<V> {
    count_max: usize,
    hashers: [RandomState; 2],
    by_key: HashMap<[u64; 2], Entry<V>>,
    /// The keys in the order of their last use.
    by_use: BTreeMap<u64, [u64; 2]>,
    uses: u64,
}

struct Entry<V> {
    value: V,
    used: u64,
}

impl<V> LruCache<V> {
    /// An empty cache.
    pub(crate) fn new(count_max: usize) -> Self {
        Self {
            count_max: count_max.max(1),
            hashers: [RandomState::new(), RandomState::new()],
            by_key: HashMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
        }
    }

    /// The value of a key; a new one if the cache has none.
    pub(crate) fn entry(&mut self, key: &[u8], new: impl FnOnce() -> V) -> &mut V {
        let hash = self.hashers.each_ref().map(|hasher| hasher.hash_one(key));
        if !self.by_key.contains_key(&hash)
            && self.by_key.len() >= self.count_max
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.by_key.remove(&oldest);
        }
        self.uses += 1;
        let entry = self.by_key.entry(hash).or_insert_with(|| Entry { value: new(), used: 0 });
        self.by_use.remove(&entry.used);
        entry.used = self.uses;
        self.by_use.insert(self.uses, hash);
        &mut entry.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream: `k8s.io/utils/lru`, `plugin/pkg/admission/eventratelimit/cache_test.go`.
    #[test]
    fn the_least_recently_used_value_is_removed_first() {
        let mut cache = LruCache::new(2);
        let mut made = 0;
        for (key, expected) in
            [("a", 1), ("b", 2), ("a", 1), ("c", 3), ("a", 1), ("b", 4), ("c", 5), ("c", 5)]
        {
            let found = *cache.entry(key.as_bytes(), || {
                made += 1;
                made
            });
            assert_eq!(found, expected, "{key}");
            assert!(cache.by_key.len() <= 2 && cache.by_use.len() == cache.by_key.len());
        }
    }
}
