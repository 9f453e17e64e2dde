//! Compressed runs of list items, which all lists that contain the same run share.
//!
//! A list is cut into runs behind objects that their keys choose, so the runs of a collection stay
//! where they are: after a write to one object only its run is compressed anew, and pages and lists
//! of a namespace have most runs in common with the whole list.
//!
//! Invariants:
//! - A stored object never changes, and objects with other bytes have other numbers. So runs of the
//!   same numbers are the same runs.
//! - All runs together take no more memory than the cache allows.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use pintle_registry::request::Encoding;
use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};

use super::Item;
use crate::negotiation::Form;
use crate::respond::gzip::Fragment;

/// The memory of all cached runs, in bytes.
const CACHED_BYTES_MAX: u64 = 64 << 20;
/// The expected number of cached runs, from which the cache's first tables are made.
const CACHED_EXPECTED: usize = 64;
/// The bytes of JSON after which a run may end, those after which it ends on average, and those
/// after which it always ends.
const RUN_BYTES_MIN: usize = 16 << 10;
const RUN_BYTES_MEAN: u64 = 64 << 10;
const RUN_BYTES_MAX: usize = 256 << 10;

/// The compressed runs that are cached.
pub(crate) struct Runs {
    cached: Cache<Run, Fragment, Weight>,
    /// Chooses the objects behind which runs end. Clients cannot know the choice.
    ends: RandomState,
}

/// How the items of a run are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Writing {
    /// The number of the resource.
    pub(super) resource: u64,
    pub(super) encoding: Encoding,
    pub(super) form: Form,
    /// Whether the run begins the list, so that nothing separates it from an item before.
    pub(super) begins: bool,
}

/// The key of a cached run.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    writing: Writing,
    /// The numbers of the objects.
    objects: Box<[u64]>,
}

/// A run that may be cached.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    writing: Writing,
    items: &'a [Item],
}

impl Runs {
    /// No runs yet.
    pub(crate) fn new() -> Self {
        Self::of(CACHED_BYTES_MAX)
    }

    /// No runs yet, and room for as many as take `bytes_max` bytes.
    pub(crate) fn of(bytes_max: u64) -> Self {
        let cached = Cache::with_weighter(CACHED_EXPECTED, bytes_max, Weight);
        Self { cached, ends: RandomState::new() }
    }

    /// The memory of the cached runs in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.cached.weight()
    }

    /// The number of cached runs.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.cached.len()
    }

    /// The number of items in the run that these items begin with.
    pub(super) fn first_run(&self, items: &[Item]) -> usize {
        let mut bytes = 0;
        let end = items.iter().position(|item| {
            bytes += item.size();
            bytes >= RUN_BYTES_MAX || bytes >= RUN_BYTES_MIN && self.is_end(item)
        });
        end.map_or(items.len(), |end| end + 1)
    }

    /// Whether a run may end behind an item. The larger the item the likelier, so that the mean
    /// length of runs does not depend on the size of items.
    fn is_end(&self, item: &Item) -> bool {
        let key = item.stored().map_or("", |object| &*object.item);
        let chosen = self.ends.hash_one(key) >> 32;
        chosen * RUN_BYTES_MEAN < (item.size() as u64) << 32
    }

    /// The compressed run, if it is cached.
    pub(super) fn get(&self, writing: Writing, items: &[Item]) -> Option<Fragment> {
        self.cached.get(&Wanted { writing, items })
    }

    /// Caches a compressed run of stored objects, if there is room for it.
    pub(super) fn cache(&self, writing: Writing, items: &[Item], fragment: &Fragment) {
        let objects = items.iter().map(|item| Some(item.stored()?.number())).collect();
        if let Some(objects) = objects {
            self.cached.insert(Run { writing, objects }, fragment.clone());
        }
    }
}

impl Hash for Run {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.writing.hash(state);
        self.objects.iter().for_each(|number| number.hash(state));
    }
}

impl Hash for Wanted<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.writing.hash(state);
        self.items.iter().filter_map(Item::stored).for_each(|object| object.number().hash(state));
    }
}

impl Equivalent<Run> for Wanted<'_> {
    fn equivalent(&self, run: &Run) -> bool {
        let same = |(item, number): (&Item, &u64)| {
            item.stored().is_some_and(|stored| stored.number() == *number)
        };
        self.writing == run.writing
            && self.items.len() == run.objects.len()
            && self.items.iter().zip(&run.objects).all(same)
    }
}

/// Counts the memory of cached runs.
#[derive(Clone)]
struct Weight;

impl Weight {
    /// The memory of an entry besides its bytes and its objects, about.
    const ENTRY: usize = size_of::<Run>() + size_of::<Fragment>() + 64;
}

impl Weighter<Run, Fragment> for Weight {
    fn weight(&self, run: &Run, fragment: &Fragment) -> u64 {
        (Self::ENTRY + size_of_val(&*run.objects) + fragment.len()) as u64
    }
}
