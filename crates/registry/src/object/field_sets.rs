//! The field sets that several objects have, each held once.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use pintle_value::json;

/// The shortest set that is shared: below, what refers to it takes as much as is saved.
pub(super) const SHARED_MIN: usize = 256;

/// How many sets that one object has are remembered, until another object has them, too.
const SINGLE_MAX: usize = 1 << 14;

/// How many bytes of sets are shared before those that no object has are dropped.
const SWEEP_BYTES_MIN: usize = 1 << 20;

/// How deep a set is nested in an object.
const DEPTH: usize = 4;

/// The shared sets. Hashes are keyed, so that no client can make sets that collide; if two sets
/// collide nevertheless, only the first is shared.
#[derive(Debug, Default)]
pub(crate) struct FieldSets {
    hashes: RandomState,
    shared: HashMap<u64, Arc<str>>,
    /// The sets that one object has, by hash, with the hash of that object's key. The first object
    /// that has a set keeps its own, so that a set that no other object has costs nothing.
    single: HashMap<u64, u64>,
    /// The bytes of the shared sets, those included that no object has any more.
    bytes: usize,
    /// When so many bytes are shared, the sets that no object has are dropped.
    sweep_at: usize,
}

impl FieldSets {
    /// Returns the shared set with this JSON for the object with the key `item`; `None` if no other
    /// object had it, or if it is not valid.
    pub(super) fn share(&mut self, set: &[u8], item: &str) -> Option<Arc<str>> {
        let hash = self.hashes.hash_one(set);
        if let Some(shared) = self.shared.get(&hash) {
            return (shared.as_bytes() == set).then(|| shared.clone());
        }
        let item = self.hashes.hash_one(item);
        if self.single.get(&hash).is_none_or(|other| *other == item) {
            if self.single.len() >= SINGLE_MAX {
                self.single.clear();
            }
            self.single.insert(hash, item);
            return None;
        }
        json::check_within(set, DEPTH).ok()?;
        let shared: Arc<str> = std::str::from_utf8(set).ok()?.into();
        self.single.remove(&hash);
        self.bytes += shared.len();
        self.shared.insert(hash, shared.clone());
        if self.bytes >= self.sweep_at.max(SWEEP_BYTES_MIN) {
            self.sweep();
        }
        Some(shared)
    }

    /// Drops the sets that no object has any more. Besides this, that happens whenever the bytes may
    /// have doubled.
    pub(crate) fn sweep(&mut self) {
        self.shared.retain(|_, set| Arc::strong_count(set) > 1);
        self.shared.shrink_to(self.shared.len() * 2);
        self.bytes = self.shared.values().map(|set| set.len()).sum();
        self.sweep_at = self.bytes * 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(number: usize) -> Vec<u8> {
        format!("{{\"f:{number:0>300}\":{{}}}}").into_bytes()
    }

    #[test]
    fn the_second_object_shares_a_set_with_the_third() {
        let mut sets = FieldSets::default();
        assert!((0..3).all(|_| sets.share(&set(1), "a").is_none()), "one object has it");
        let [second, third] = ["b", "c"].map(|item| sets.share(&set(1), item).unwrap());
        assert!(Arc::ptr_eq(&second, &third) && second.as_bytes() == set(1));
        assert!(sets.share(&set(2), "a").is_none());
    }

    #[test]
    fn sets_that_no_object_has_are_dropped() {
        let mut sets = FieldSets::default();
        let mut held = Vec::new();
        for number in 0..40_000 {
            sets.share(&set(number), "a");
            let shared = sets.share(&set(number), "b").unwrap();
            if number % 1000 == 0 {
                held.push(shared);
            }
            assert!(sets.bytes <= SWEEP_BYTES_MIN + 400);
            assert!(sets.shared.len() * set(0).len() <= sets.bytes);
        }
        sets.sweep();
        assert_eq!(sets.shared.len(), held.len());
        for shared in held {
            assert!(Arc::ptr_eq(&sets.share(shared.as_bytes(), "c").unwrap(), &shared));
        }
        sets.sweep();
        assert_eq!((sets.shared.len(), sets.bytes), (0, 0));
        for number in 0..3 * SINGLE_MAX {
            sets.share(&set(number), "a");
            assert!(sets.single.len() <= SINGLE_MAX);
        }
    }
}
