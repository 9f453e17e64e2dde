//! Measures that many threads count at the same time.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A measure in several copies. A thread counts in one of them, so that processors do not take each
/// other's cache lines at each request; who reads adds them up.
#[derive(Debug)]
pub struct Shards<M>(Box<[Padded<M>]>);

/// Two copies are on no cache line together (nor on the pair of lines that is fetched at once).
#[derive(Debug)]
#[repr(align(128))]
struct Padded<M>(M);

/// More copies cost more memory than they save time.
const SHARDS_MAX: usize = 4;

thread_local! {
    /// The number of this thread.
    static THREAD: Cell<usize> = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Cell::new(NEXT.fetch_add(1, Ordering::Relaxed))
    };
}

impl<M> Shards<M> {
    /// As many copies as threads can run at the same time, up to a few.
    pub fn new(new: impl Fn() -> M) -> Self {
        Self((0..copies()).map(|_| Padded(new())).collect())
    }

    /// The copy that this thread counts in.
    pub fn here(&self) -> &M {
        &self.0[THREAD.get() % self.0.len()].0
    }

    /// Every copy.
    pub fn all(&self) -> impl Iterator<Item = &M> {
        self.0.iter().map(|padded| &padded.0)
    }
}

/// Asked once, as the answer is read from files.
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
    fn what_threads_count_adds_up() {
        let counters = Shards::<Counter>::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1000).for_each(|_| counters.here().add(1)));
            }
        });
        assert_eq!(counters.all().map(Counter::get).sum::<u64>(), 8000);
    }
}
