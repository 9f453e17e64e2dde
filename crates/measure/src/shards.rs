//! Measures that many threads update concurrently.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A measure in several copies. Each thread updates one of them, so that processors do not contend
/// for cache lines; a reader sums them up.
#[derive(Debug)]
pub struct Shards<M>(Box<[Padded<M>]>);

/// A copy, aligned so that two copies never share a cache line, nor a pair of lines that is
/// prefetched together.
#[derive(Debug)]
#[repr(align(128))]
struct Padded<M>(M);

/// More copies would cost memory and save hardly any time.
const SHARDS_MAX: usize = 4;

thread_local! {
    /// The number of this thread.
    static THREAD: Cell<usize> = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Cell::new(NEXT.fetch_add(1, Ordering::Relaxed))
    };
}

impl<M> Shards<M> {
    /// As many copies as threads can run in parallel, up to the maximum.
    pub fn new(new: impl Fn() -> M) -> Self {
        Self((0..copies()).map(|_| Padded(new())).collect())
    }

    /// The copy that this thread updates.
    pub fn here(&self) -> &M {
        &self.0[THREAD.get() % self.0.len()].0
    }

    /// Every copy.
    pub fn all(&self) -> impl Iterator<Item = &M> {
        self.0.iter().map(|padded| &padded.0)
    }
}

/// The number of copies. It is computed once, because the number of processors is read from files.
fn copies() -> usize {
    static COPIES: OnceLock<usize> = OnceLock::new();
    *COPIES
        .get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from).min(SHARDS_MAX))
}

impl<M: Default> Default for Shards<M> {
    fn default() -> Self {
        Self::new(M::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counter;

    #[test]
    fn counts_of_threads_add_up() {
        let counters = Shards::<Counter>::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1000).for_each(|_| counters.here().add(1)));
            }
        });
        assert_eq!(counters.all().map(Counter::get).sum::<u64>(), 8000);
    }
}
