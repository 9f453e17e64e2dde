//! What is counted where it happens: counters, gauges, distributions, and series of them by labels.
//!
//! A crate that does something worth measuring keeps its measures in a struct of its own; the server reads
//! them and knows under which names they are told.
//!
//! Must not know: names of metrics, formats of text, where measures are kept.
//!
//! Invariants:
//! - To count takes no lock and allocates nothing. To find a series by its labels may; so whatever happens
//!   at each request finds its series once.
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
    /// Counts.
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
    /// Changes the number.
    pub fn add(&self, change: i64) {
        self.0.fetch_add(change, Ordering::Relaxed);
    }

    /// Replaces the number.
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The number.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}
