//! One queue.

use std::collections::BTreeSet;

use super::Ticket;
use crate::work::SeatSeconds;

/// Waiting requests, and the progress of the queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The oldest is first.
    pub(super) waiting: BTreeSet<Ticket>,
    /// The work of the waiting requests.
    pub(super) work: SeatSeconds,
    pub(super) seats_waiting: usize,
    /// The number of executing requests.
    pub(super) executing: usize,
    /// The seats of executing requests, and of executed ones whose seats are not free yet.
    pub(super) seats_in_use: usize,
    /// The value of the meter at which the next request starts.
    pub(super) next_dispatch: SeatSeconds,
}

impl Queue {
    /// Whether no request waits or executes.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.executing == 0
    }

    /// Whether the queue is idle and its seats are free.
    pub(super) fn is_unused(&self) -> bool {
        self.is_idle() && self.seats_in_use == 0
    }
}
