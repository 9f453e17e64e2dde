//! The members of an object: a vector sorted by key.
//!
//! Objects are small (a Pod's largest has about forty members), so a sorted vector beats a tree or
//! a hash table in time and memory, and the order makes equality and encoding canonical.

use crate::{Str, Value};

/// Maps up to this size are searched linearly.
const SCANNED_MAX: usize = 32;

/// Members of an object, sorted by key, each key once.
#[derive(Clone, Debug, Default)]
pub struct Map {
    entries: Vec<(Str, Value)>,
    /// The marks of all keys, and perhaps of removed ones. Most searches are for members that an
    /// object may have but lacks: a key without its mark here is not compared with any other.
    marks: u64,
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

/// The mark of a key: one bit of 64. The compiler computes those of literals.
#[inline]
const fn mark(key: &str) -> u64 {
    let bytes = key.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            1 << ((*first as usize + 4 * *last as usize + 16 * bytes.len()) % u64::BITS as usize)
        }
        _ => 1,
    }
}

/// The marks of all keys of some members.
fn marks(entries: &[(Str, Value)]) -> u64 {
    entries.iter().fold(0, |marks, (key, _)| marks | mark(key))
}

impl Map {
    /// An empty map.
    pub const fn new() -> Self {
        Self { entries: Vec::new(), marks: 0 }
    }

    /// An empty map with capacity for `members`.
    pub fn with_capacity(members: usize) -> Self {
        Self { entries: Vec::with_capacity(members), marks: 0 }
    }

    /// The number of members.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the map is empty.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The index of `key`.
    #[inline]
    fn position(&self, key: &str) -> Option<usize> {
        if self.marks & mark(key) == 0 { None } else { self.search(key) }
    }

    /// Searches a key. In a small map, a scan that mostly compares lengths only is faster than a
    /// binary search, which compares whole keys and mispredicts at every step.
    fn search(&self, key: &str) -> Option<usize> {
        match self.entries.len() {
            ..=SCANNED_MAX => self.entries.iter().position(|(other, _)| other.as_str() == key),
            _ => self.find(key).ok(),
        }
    }

    /// The index of `key`, or the index at which it would be inserted.
    fn find(&self, key: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|(k, _)| k.as_str().cmp(key))
    }

    /// The value of `key`.
    #[inline]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.position(key).map(|i| &self.entries[i].1)
    }

    /// The value of `key`, mutably.
    #[inline]
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.position(key).map(|i| &mut self.entries[i].1)
    }

    /// Whether there is a member `key`.
    #[inline]
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// Sets `key`, and returns the previous value.
    pub fn insert(&mut self, key: impl Into<Str>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        self.marks |= mark(&key);
        // Keys mostly arrive in order, so the end is checked first.
        if self.entries.last().is_none_or(|(last, _)| *last < key) {
            self.entries.push((key, value));
            return None;
        }
        match self.find(&key) {
            Ok(i) => Some(std::mem::replace(&mut self.entries[i].1, value)),
            Err(i) => {
                self.entries.insert(i, (key, value));
                None
            }
        }
    }

    /// Removes `key`, and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.position(key).map(|i| self.entries.remove(i).1)
    }

    /// Returns the value of `key`, inserting `default()` if it is absent.
    pub fn entry_or(&mut self, key: &str, default: impl FnOnce() -> Value) -> &mut Value {
        let i = match self.find(key) {
            Ok(i) => i,
            Err(i) => {
                self.marks |= mark(key);
                self.entries.insert(i, (Str::from(key), default()));
                i
            }
        };
        &mut self.entries[i].1
    }

    /// Returns the member `key` as an object. A missing member, or one of another type, becomes an
    /// empty object.
    pub fn entry_object(&mut self, key: &str) -> &mut Self {
        self.entry_or(key, Value::object).make_object()
    }

    /// The members, ordered by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Str, &Value)> + DoubleEndedIterator {
        self.entries.iter().map(|(k, v)| (k, v))
    }

    /// The members, ordered by key, with mutable values.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&Str, &mut Value)> {
        self.entries.iter_mut().map(|(k, v)| (&*k, v))
    }

    /// The members as a slice, ordered by key.
    pub fn as_slice(&self) -> &[(Str, Value)] {
        &self.entries
    }

    /// The keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Str> + DoubleEndedIterator {
        self.entries.iter().map(|(k, _)| k)
    }

    /// The values, ordered by key.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> {
        self.entries.iter().map(|(_, v)| v)
    }

    /// Keeps the members for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&Str, &mut Value) -> bool) {
        self.entries.retain_mut(|(k, v)| keep(k, v));
    }

    /// Creates a map from members that are sorted by key and unique.
    pub fn from_sorted(entries: Vec<(Str, Value)>) -> Self {
        debug_assert!(entries.is_sorted_by(|a, b| a.0 < b.0), "sorted and unique");
        Self { marks: marks(&entries), entries }
    }

    /// Creates a map from members in any order. Of equal keys the last one wins, as in Go's decoder
    /// (JSON and YAML do not define which); `duplicate` is called for each key that occurs again.
    pub fn from_unsorted(mut entries: Vec<(Str, Value)>, mut duplicate: impl FnMut(&Str)) -> Self {
        let sorted = entries.is_sorted_by(|a, b| a.0 < b.0);
        if !sorted {
            entries.sort_by(|a, b| a.0.cmp(&b.0)); // stable: equal keys keep their order
            entries.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    duplicate(&later.0);
                    std::mem::swap(later, earlier);
                }
                same
            });
        }
        Self { marks: marks(&entries), entries }
    }
}

impl FromIterator<(Str, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Str, Value)>>(iter: I) -> Self {
        Self::from_unsorted(iter.into_iter().collect(), |_| {})
    }
}

impl IntoIterator for Map {
    type Item = (Str, Value);
    type IntoIter = std::vec::IntoIter<(Str, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_map_behaves_as_a_sorted_map(
            steps in prop::collection::vec((0..6, "[ab]{0,3}|[a-z]{1,2}", any::<i64>()), 0..80),
        ) {
            let (mut map, mut model) = (Map::new(), BTreeMap::new());
            for (step, key, number) in steps {
                let value = Value::Int(number);
                match step {
                    0 | 1 => prop_assert_eq!(
                        map.insert(&*key, number),
                        model.insert(key.clone(), value)
                    ),
                    2 => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                    3 => prop_assert_eq!(
                        map.entry_or(&key, || value.clone()).clone(),
                        model.entry(key.clone()).or_insert(value).clone()
                    ),
                    4 => {
                        map.retain(|other, _| other.as_str() > key.as_str());
                        model.retain(|other, _| *other > key);
                    }
                    _ => {}
                }
                prop_assert_eq!(map.get(&key), model.get(&key));
                prop_assert_eq!(map.contains_key(&key), model.contains_key(&key));
                let members = model.iter().map(|(key, value)| (Str::from(key), value.clone()));
                prop_assert_eq!(&map, &members.rev().collect::<Map>(), "whatever was removed");
                prop_assert!(map.keys().eq(model.keys()));
            }
        }
    }

    #[test]
    fn keys_are_found_in_small_and_large_maps() {
        for count in 0..100_i64 {
            let key = |n| Str::from(format!("{:.*}", n as usize % 40, format!("{n:040}")));
            let map: Map = (0..count).map(|n| (key(n), Value::Int(n))).collect();
            for (found, value) in map.iter() {
                assert_eq!(map.get(found), Some(value), "{found} of {count}");
            }
            for absent in ["x", "00", "0x", "x0", "0000x0000"] {
                let there = map.keys().any(|key| key == absent);
                assert_eq!(map.contains_key(absent), there, "{absent} of {count}");
            }
        }
    }

    #[test]
    fn unsorted_members_are_sorted_and_the_last_duplicate_wins() {
        let mut seen = Vec::new();
        let entries = [("b", 1), ("a", 2), ("b", 3), ("b", 4)];
        let entries = entries.map(|(k, n)| (Str::from(k), Value::Int(n))).to_vec();
        let map = Map::from_unsorted(entries, |key| seen.push(key.to_string()));
        assert_eq!(Value::Object(map), Value::from([("a", 2), ("b", 4)]));
        assert_eq!(seen, ["b", "b"]);
    }
}
