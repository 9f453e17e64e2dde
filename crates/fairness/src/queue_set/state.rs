//! The visible state of a level.

use std::time::Duration;

use super::{Dispatched, Phase, QueueSet, Ticket};
use crate::work::{SeatSeconds, WorkEstimate};

/// The numbers of requests of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Waiting requests.
    pub waiting: usize,
    /// Executing requests.
    pub executing: usize,
    /// The seats of executing requests, and those that are not free yet after an execution.
    pub seats_in_use: usize,
    /// The seats of waiting requests.
    pub seats_waiting: usize,
    /// The total number of requests whose execution has begun.
    pub dispatched: u64,
    /// The total number of rejected requests.
    pub rejected: u64,
    /// The rejected requests that waited too long or whose clients cancelled.
    pub cancelled: u64,
    /// How often there were no seats for the next request.
    pub without_seats: u64,
}

/// A queue of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Waiting requests.
    pub waiting: usize,
    /// Executing requests.
    pub executing: usize,
    /// The seats of executing requests, and those that are not free yet.
    pub seats_in_use: usize,
    /// The seats of waiting requests.
    pub seats_waiting: usize,
    /// The seats that the waiting requests need while executing.
    pub initial_seats_waiting: usize,
    /// The value of the meter at which the next request starts.
    pub next_dispatch: SeatSeconds,
    /// The work of the waiting requests.
    pub work: SeatSeconds,
}

/// A request of a level that waits, is executed, or was executed and still has seats.
#[derive(Debug)]
pub struct RequestState<'a, T> {
    /// The caller's identification.
    pub known_by: &'a T,
    /// The queue, if the request went through one.
    pub queue: Option<usize>,
    /// The number of requests before it; `None` unless it waits.
    pub position: Option<usize>,
    /// The estimated work.
    pub estimate: WorkEstimate,
    /// The time of arrival.
    pub arrived: Duration,
    /// The start of the execution.
    pub executing_since: Option<Duration>,
    /// Whether the execution has ended.
    pub is_finished: bool,
}

impl<T> QueueSet<T> {
    /// The numbers of requests.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The maximum number of seats in use.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// The value of the progress meter.
    pub const fn r(&self) -> SeatSeconds {
        self.r
    }

    /// The meters at the last dispatch.
    pub const fn last_dispatch(&self) -> &Dispatched {
        &self.last_dispatch
    }

    /// The caller's identification of a request that waits or executes.
    pub fn known_by(&self, ticket: Ticket) -> Option<&T> {
        self.requests.get(&ticket).map(|request| &request.known_by)
    }

    /// Like `known_by`, mutable.
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

    /// The requests by queue and in order.
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
