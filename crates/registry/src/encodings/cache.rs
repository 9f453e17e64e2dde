//! The bound on the memory of further encodings, with random eviction.
//!
//! Random eviction suits repeated reads of a long list. If the list is a little larger than the
//! cache, random eviction keeps most of it, while least-recently-used eviction would always drop
//! the entry that is read next.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::{Encoded, List};

/// The memory of an entry in addition to its encoding, in bytes.
pub(super) const ENTRY_BYTES: usize = size_of::<Entry>();

/// Bounds the memory of all further encodings, which their objects hold.
#[derive(Debug)]
pub(crate) struct EncodingCache {
    bytes_max: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    entries: Vec<Entry>,
    bytes: usize,
    /// The state of the random choices.
    seed: u64,
}

/// An encoding that is in an object's list. The entry keeps neither of them alive.
#[derive(Debug)]
struct Entry {
    list: Weak<List>,
    encoded: Weak<Encoded>,
    bytes: usize,
}

impl EncodingCache {
    /// Makes a cache of at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, entries: Mutex::default() }
    }

    /// Counts a new encoding of a list, and evicts random encodings, perhaps the new one, while
    /// the bound is exceeded.
    pub(super) fn insert(&self, list: &Arc<List>, encoded: &Arc<Encoded>) {
        let entry = Entry {
            list: Arc::downgrade(list),
            encoded: Arc::downgrade(encoded),
            bytes: encoded.size(),
        };
        let evicted = self.entries.lock().add(entry, self.bytes_max);
        for entry in evicted {
            if let Some(list) = entry.list.upgrade() {
                list.encoded
                    .lock()
                    .retain(|encoded| !std::ptr::eq(Arc::as_ptr(encoded), entry.encoded.as_ptr()));
            }
        }
    }

    /// Returns the counted bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.lock().bytes
    }
}

impl Entries {
    /// How many random entries are checked when one is added, so that entries of dropped objects do
    /// not accumulate.
    const CHECKED: usize = 2;

    /// Adds an entry; returns the entries that are evicted for it. The new one may be among them.
    fn add(&mut self, entry: Entry, bytes_max: usize) -> Vec<Entry> {
        for _ in 0..Self::CHECKED {
            let at = self.choose_random();
            if self.entries.get(at).is_some_and(|entry| entry.list.strong_count() == 0) {
                self.take(at);
            }
        }
        self.bytes += entry.bytes;
        self.entries.push(entry);
        let mut evicted = Vec::new();
        while self.bytes > bytes_max && !self.entries.is_empty() {
            let at = self.choose_random();
            evicted.push(self.take(at));
        }
        evicted
    }

    /// Removes the entry at an index.
    fn take(&mut self, at: usize) -> Entry {
        let entry = self.entries.swap_remove(at);
        self.bytes -= entry.bytes;
        entry
    }

    /// Returns the index of a random entry. The numbers are mixed (SplitMix64), because a simple
    /// sequence could run in step with a list that is read repeatedly.
    fn choose_random(&mut self) -> usize {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((mixed >> 32) * self.entries.len() as u64) >> 32) as usize
    }
}
