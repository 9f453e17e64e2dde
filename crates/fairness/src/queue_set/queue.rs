//! One queue.

use std::collections::BTreeSet;

use super::Ticket;
use crate::work::SeatSeconds;

/// Requests that wait, and how far the queue has been served.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The oldest first.
    pub(super) waiting: BTreeSet<Ticket>,
    /// The work of those that wait.
    pub(super) work: SeatSeconds,
    pub(super) seats_waiting: usize,
    /// How many of its requests are executed.
    pub(super) executing: usize,
    /// The seats of those, and of those whose seats are not free yet.
    pub(super) seats_in_use: usize,
    /// The reading of the meter at which the next request is to be executed.
    pub(super) next_dispatch: SeatSeconds,
}

impl Queue {
    /// Whether none of its requests waits or is executed.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.executing == 0
    }

    /// Whether it is idle and its seats are free.
    pub(super) fn is_unused(&self) -> bool {
        self.is_idle() && self.seats_in_use == 0
    }
}
