//! The field sets that several objects have, each held once.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use pintle_value::json;

/// The shortest set that is shared: below, what refers to it takes as much as is saved.
const SHARED_MIN: usize = 256;

/// How many sets that one object has are remembered, until another object has them, too.
const SINGLE_MAX: usize = 1 << 14;

/// How many sets are shared before those that no object has are looked for the first time.
const SWEEP_MIN: usize = 1 << 10;

/// The shared sets. Hashes are keyed, so that no client can make sets that collide; if two sets
/// collide nevertheless, only the first is shared.
#[derive(Debug, Default)]
pub(crate) struct FieldSets {
    hashes: RandomState,
    shared: HashMap<u64, Arc<str>>,
    /// The hashes of sets that one object has. The first object that has a set keeps its own, so
    /// that a set that no other object has costs nothing.
    single: HashSet<u64>,
    /// When as many sets are shared, those that no object has are dropped.
    sweep_at: usize,
}

impl FieldSets {
    /// Returns the shared set with this JSON; `None` if no other object had it, or if it is short
    /// or not valid.
    pub(super) fn share(&mut self, set: &[u8]) -> Option<Arc<str>> {
        if set.len() < SHARED_MIN {
            return None;
        }
        let hash = self.hashes.hash_one(set);
        if let Some(shared) = self.shared.get(&hash) {
            return (shared.as_bytes() == set).then(|| shared.clone());
        }
        if !self.single.remove(&hash) {
            if self.single.len() >= SINGLE_MAX {
                self.single.clear();
            }
            self.single.insert(hash);
            return None;
        }
        json::check(set).ok()?;
        let shared: Arc<str> = std::str::from_utf8(set).ok()?.into();
        self.sweep();
        self.shared.insert(hash, shared.clone());
        Some(shared)
    }

    /// Drops the sets that no object has any more, each time when they may have doubled.
    fn sweep(&mut self) {
        if self.shared.len() < self.sweep_at.max(SWEEP_MIN) {
            return;
        }
        self.shared.retain(|_, set| Arc::strong_count(set) > 1);
        self.shared.shrink_to(self.shared.len() * 2);
        self.sweep_at = self.shared.len() * 2;
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
        assert!(sets.share(&set(1)).is_none());
        let (second, third) = (sets.share(&set(1)).unwrap(), sets.share(&set(1)).unwrap());
        assert!(Arc::ptr_eq(&second, &third) && second.as_bytes() == set(1));
        assert!(sets.share(&set(2)).is_none());
        assert!((0..3).all(|_| sets.share(b"{}").is_none()), "a short set");
    }

    #[test]
    fn sets_that_no_object_has_are_dropped() {
        let mut sets = FieldSets::default();
        let mut held = Vec::new();
        for number in 0..10 * SWEEP_MIN {
            sets.share(&set(number));
            let shared = sets.share(&set(number)).unwrap();
            if number % 1000 == 0 {
                held.push(shared);
            }
            assert!(sets.shared.len() <= SWEEP_MIN + held.len());
        }
        for shared in held {
            assert!(Arc::ptr_eq(&sets.share(shared.as_bytes()).unwrap(), &shared));
        }
        for number in 0..3 * SINGLE_MAX {
            sets.share(&set(1_000_000 + number));
            assert!(sets.single.len() <= SINGLE_MAX);
        }
    }
}
