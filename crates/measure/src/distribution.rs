//! Distributions of values over buckets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A histogram: the number of values in each bucket, and their sum. Durations are values in
/// nanoseconds.
#[derive(Debug)]
pub struct Distribution {
    /// The upper bounds of the buckets, inclusive and ascending.
    bounds: &'static [u64],
    /// A cell for each bucket, one for values beyond the last bound, and the sum.
    cells: Box<[AtomicU64]>,
}

/// A snapshot of a distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The upper bounds of the buckets.
    pub bounds: &'static [u64],
    /// The number of values in each bucket; the last number is that of values beyond all bounds.
    pub buckets: Vec<u64>,
    /// The sum of the values.
    pub sum: u64,
}

impl Distribution {
    /// An empty distribution with these upper bounds.
    pub fn new(bounds: &'static [u64]) -> Self {
        debug_assert!(bounds.is_sorted(), "the bounds of buckets are in order");
        Self { bounds, cells: (0..bounds.len() + 2).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Counts a value.
    pub fn observe(&self, value: u64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        self.cells[at].fetch_add(1, Ordering::Relaxed);
        self.cells[self.bounds.len() + 1].fetch_add(value, Ordering::Relaxed);
    }

    /// Counts a duration.
    pub fn took(&self, duration: Duration) {
        self.observe(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Returns a snapshot.
    pub fn observed(&self) -> Observed {
        let mut buckets: Vec<u64> =
            self.cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect();
        let sum = buckets.pop().unwrap_or_default();
        Observed { bounds: self.bounds, buckets, sum }
    }
}

impl Observed {
    /// An empty snapshot with these upper bounds.
    pub fn none(bounds: &'static [u64]) -> Self {
        Self { bounds, buckets: vec![0; bounds.len() + 1], sum: 0 }
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Adds another snapshot with the same buckets.
    pub fn add(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(mine, other)| *mine += other);
        self.sum += other.sum;
    }
}

/// Converts bounds of durations from seconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounds are small")]
pub const fn nanoseconds<const N: usize>(seconds: [f64; N]) -> [u64; N] {
    let mut bounds = [0; N];
    let mut at = 0;
    while at < N {
        bounds[at] = (seconds[at] * 1e9 + 0.5) as u64;
        at += 1;
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_in_the_first_matching_bucket() {
        const BOUNDS: [u64; 3] = nanoseconds([0.005, 0.025, 60.0]);
        let distribution = Distribution::new(&BOUNDS);
        for ms in [1, 5, 6, 70_000] {
            distribution.took(Duration::from_millis(ms));
        }
        let observed = distribution.observed();
        assert_eq!(observed.buckets, [2, 1, 0, 1]);
        assert_eq!((observed.count(), observed.sum), (4, 70_012_000_000));
        let mut twice = Observed::none(&BOUNDS);
        twice.add(&observed);
        twice.add(&observed);
        assert_eq!((twice.buckets, twice.sum), (vec![4, 2, 0, 2], 140_024_000_000));
    }
}
