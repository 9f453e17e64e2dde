//! Measures: counters, gauges, distributions, and series of them by labels.
//!
//! A crate that has something to measure keeps its measures in a struct of its own; the server
//! reads them and gives them their metric names.
//!
//! Must not know: names of metrics, text formats, where measures are stored.
//!
//! Invariants:
//! - Counting takes no lock and allocates nothing. Finding a series by its labels may do both, so
//!   code on the path of every request looks up its series once.
//! - The memory of a [`Series`] is bounded, whatever its labels are.

mod distribution;
mod series;
mod shards;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

pub use distribution::{Distribution, Observed, nanoseconds};
pub use series::Series;
pub use shards::Shards;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// Adds `change`, which may be negative.
    pub fn add(&self, change: i64) {
        self.0.fetch_add(change, Ordering::Relaxed);
    }

    /// Replaces the number.
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The current number.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}
