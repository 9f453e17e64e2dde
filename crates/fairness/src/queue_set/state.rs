//! What can be seen of a level from outside.

use std::time::Duration;

use super::{Dispatched, Phase, QueueSet, Ticket};
use crate::work::{SeatSeconds, WorkEstimate};

/// The requests of a level, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that wait.
    pub waiting: usize,
    /// Requests that are executed.
    pub executing: usize,
    /// The seats of those, and the seats that are not free yet after an execution.
    pub seats_in_use: usize,
    /// The seats that are waited for.
    pub seats_waiting: usize,
    /// Requests that were executed.
    pub dispatched: u64,
    /// Requests that were rejected.
    pub rejected: u64,
    /// Requests of those that waited too long, or whose client went.
    pub cancelled: u64,
    /// How often a request was to be executed next that there was no room for.
    pub without_room: u64,
}

/// A queue of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Requests that wait.
    pub waiting: usize,
    /// Requests that are executed.
    pub executing: usize,
    /// The seats of those, and the seats that are not free yet.
    pub seats_in_use: usize,
    /// The seats that requests wait for.
    pub seats_waiting: usize,
    /// The seats that they take while they are executed.
    pub initial_seats_waiting: usize,
    /// The reading of the meter at which the next request is to be executed.
    pub next_dispatch: SeatSeconds,
    /// The work of those that wait.
    pub work: SeatSeconds,
}

/// A request of a level that waits, is executed, or was executed and still has seats.
#[derive(Debug)]
pub struct RequestState<'a, T> {
    /// What it is known by.
    pub known_by: &'a T,
    /// Its queue, if it went through one.
    pub queue: Option<usize>,
    /// How many wait before it; nothing while it is executed.
    pub position: Option<usize>,
    /// What it is expected to take.
    pub estimate: WorkEstimate,
    /// When it arrived.
    pub arrived: Duration,
    /// Since when it is executed.
    pub executing_since: Option<Duration>,
    /// Whether it was executed.
    pub is_finished: bool,
}

impl<T> QueueSet<T> {
    /// The requests, counted.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The seats that requests may take.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// How far the progress meter is.
    pub const fn r(&self) -> SeatSeconds {
        self.r
    }

    /// The readings at the last time a request was taken from a queue.
    pub const fn last_dispatch(&self) -> &Dispatched {
        &self.last_dispatch
    }

    /// What a request that waits or is executed is known by.
    pub fn known_by(&self, ticket: Ticket) -> Option<&T> {
        self.requests.get(&ticket).map(|request| &request.known_by)
    }

    /// The same, to change it.
    pub fn known_by_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        self.requests.get_mut(&ticket).map(|request| &mut request.known_by)
    }

    /// The queues.
    pub fn queues(&self) -> impl Iterator<Item = QueueState> {
        self.queues.iter().map(|queue| QueueState {
            waiting: queue.waiting.len(),
            executing: queue.executing,
            seats_in_use: queue.seats_in_use,
            seats_waiting: queue.seats_waiting,
            initial_seats_waiting: queue
                .waiting
                .iter()
                .map(|ticket| self.requests[ticket].estimate.initial_seats)
                .sum(),
            next_dispatch: queue.next_dispatch,
            work: queue.work,
        })
    }

    /// The requests by their queues and in their order.
    pub fn requests(&self) -> Vec<RequestState<'_, T>> {
        let mut tickets: Vec<_> = self.requests.iter().collect();
        tickets.sort_by_key(|(ticket, request)| {
            (request.queue.is_none(), request.queue, request.phase != Phase::Waiting, **ticket)
        });
        let mut before = (None, 0);
        let states = tickets.into_iter().map(|(_, request)| {
            let executing_since = match request.phase {
                Phase::Executing { since } => Some(since),
                Phase::Waiting | Phase::Lingering => None,
            };
            if before.0 != request.queue {
                before = (request.queue, 0);
            }
            let position = (request.phase == Phase::Waiting).then_some(before.1);
            before.1 += 1;
            RequestState {
                known_by: &request.known_by,
                queue: request.queue,
                position,
                estimate: request.estimate,
                arrived: request.arrived,
                executing_since,
                is_finished: request.phase == Phase::Lingering,
            }
        });
        states.collect()
    }
}
