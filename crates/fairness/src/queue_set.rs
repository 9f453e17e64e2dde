//! The executing and the waiting requests of a priority level.
//!
//! Fair queuing as in upstream's package `queueset`: the progress meter R measures how much each
//! queue could have been served so far. Each queue stores the value of R at which its next request
//! starts. The queue whose request would finish first is served.
//!
//! This file has the types and what a caller may do; `dispatching` gives seats to requests and
//! takes them back.

mod dispatching;
mod queue;
mod state;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

pub use state::{Counts, QueueState, RequestState};

use crate::dealer::Dealer;
use crate::demand::{Integrator, Observed};
use crate::work::{SeatSeconds, WorkEstimate, as_f64};
use queue::Queue;

/// The expected duration of a request.
const SERVICE_DURATION: Duration = Duration::from_millis(3);

/// How requests without a free seat are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// They are executed anyway.
    Exempt,
    /// They are rejected.
    Reject,
    /// They wait.
    Queue {
        /// The number of queues.
        queues: usize,
        /// The number of queues of a flow.
        hand_size: usize,
        /// The maximum number of waiting requests in a queue.
        length_max: usize,
    },
}

/// Identifies a request while it waits or has seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// A new request.
#[derive(Clone, Debug)]
pub struct Arriving<'a, T> {
    /// The user: see [`QueueSet::new`].
    pub user: &'a str,
    /// See [`crate::flow_hash`].
    pub flow_hash: u64,
    /// The estimated work.
    pub estimate: WorkEstimate,
    /// The caller's identification of the request.
    pub known_by: T,
}

/// The decision for a new request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The request is executed.
    Executing(Ticket),
    /// The request waits; the number is the length of its queue.
    Waiting(Ticket, usize),
    /// The request is rejected.
    Rejected(Rejection),
}

/// The reason of a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// No seat is free, and the level has no queues.
    ConcurrencyLimit,
    /// The queue is full.
    QueueFull,
    /// The request has waited too long.
    TimeOut,
}

/// The meters at the last time when a request was taken from a queue, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dispatched {
    /// The progress meter R.
    pub r: SeatSeconds,
    /// The value at which the request starts.
    pub start: SeatSeconds,
    /// The minimum and the maximum of the start values of all waiting queues.
    pub bounds: (SeatSeconds, SeatSeconds),
    /// The same, where each start value is less by the work in progress of its queue.
    pub discounted: (SeatSeconds, SeatSeconds),
}

/// The release of an executed request's seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// They are free.
    Released,
    /// They become free at this time; the caller must then call [`QueueSet::release_due`].
    ReleasedAt(Duration),
}

/// The requests of a priority level.
#[derive(Debug)]
pub struct QueueSet<T> {
    discipline: Discipline,
    dealer: Option<Dealer>,
    /// The maximum number of seats in use.
    limit: usize,
    leaves_half: bool,
    queues: Vec<Queue>,
    /// The queues with waiting requests.
    busy: BTreeSet<usize>,
    requests: HashMap<Ticket, Request<T>>,
    /// The requests that stopped waiting since the last call of `take_dispatched`.
    dispatched: Vec<Ticket>,
    /// Executed requests whose seats are released later.
    lingering: BTreeSet<(Duration, Ticket)>,
    /// The number of seats of each user.
    held: HashMap<Box<str>, usize>,
    next_ticket: u64,
    enqueued: usize,
    /// The queue that was served last.
    robin: usize,
    r: SeatSeconds,
    last: Duration,
    counts: Counts,
    /// The number of queues with waiting or executing requests.
    active_queues: usize,
    /// The number of seats that queued requests have or wait for.
    queue_seats: usize,
    last_dispatch: Dispatched,
    demand: Integrator,
}

#[derive(Debug)]
struct Request<T> {
    user: Box<str>,
    known_by: T,
    estimate: WorkEstimate,
    work: SeatSeconds,
    arrived: Duration,
    arrived_at_r: SeatSeconds,
    /// `None` if it did not go through a queue.
    queue: Option<usize>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Executing { since: Duration },
    Lingering,
}

impl<T> QueueSet<T> {
    /// Creates a level without requests. With `leaves_half`, no user takes more seats than remain
    /// free: a user who occupies seats for a long time has at most half of them, and others get a
    /// seat at once. (Upstream has no such limit; exempt levels have none, either.)
    pub fn new(discipline: Discipline, limit: usize, leaves_half: bool, now: Duration) -> Self {
        let mut new = Self {
            discipline: Discipline::Reject,
            dealer: None,
            limit,
            leaves_half,
            queues: Vec::new(),
            busy: BTreeSet::new(),
            requests: HashMap::new(),
            dispatched: Vec::new(),
            lingering: BTreeSet::new(),
            held: HashMap::new(),
            next_ticket: 0,
            enqueued: 0,
            robin: 0,
            r: SeatSeconds::default(),
            last: now,
            counts: Counts::default(),
            active_queues: 0,
            queue_seats: 0,
            last_dispatch: Dispatched::default(),
            demand: Integrator::new(now),
        };
        new.configure(discipline, limit, now);
        new
    }

    /// Changes the configuration. Surplus queues are removed once they are empty.
    pub fn configure(&mut self, discipline: Discipline, limit: usize, now: Duration) {
        self.advance(now);
        self.limit = limit;
        self.discipline = discipline;
        self.dealer = None;
        if let Discipline::Queue { queues, hand_size, .. } = discipline {
            self.dealer = Dealer::new(queues, hand_size);
            if self.queues.len() < queues && self.dealer.is_some() {
                self.queues.resize_with(queues, Queue::default);
            }
        }
        self.remove_surplus_queues();
        self.dispatch_all(now);
    }

    /// Handles a new request. This may dispatch other requests, too: see
    /// [`Self::take_dispatched`].
    pub fn arrive(&mut self, now: Duration, arriving: Arriving<'_, T>) -> Arrival {
        self.release_due(now);
        let Discipline::Queue { length_max, .. } = self.discipline else {
            return self.arrive_without_queue(now, arriving);
        };
        let Some(dealer) = self.dealer else {
            return self.reject(Rejection::ConcurrencyLimit);
        };
        let index = self.shortest_of_hand(&dealer, arriving.flow_hash);
        // Upstream refuses only while no seat is free. But the queue also grows while seats are free
        // that its requests cannot get: they are too wide, or their user must leave seats free.
        if self.queues[index].waiting.len() >= length_max {
            self.raise_start(index);
            return self.reject(Rejection::QueueFull);
        }
        let ticket = self.enqueue(now, index, arriving);
        let length = self.queues[index].waiting.len();
        self.dispatch_all(now);
        match self.dispatched.iter().position(|dispatched| *dispatched == ticket) {
            Some(position) => {
                self.dispatched.swap_remove(position);
                Arrival::Executing(ticket)
            }
            None => Arrival::Waiting(ticket, length),
        }
    }

    /// The requests that stopped waiting and must be executed, since the last call.
    pub fn take_dispatched(&mut self) -> Vec<Ticket> {
        std::mem::take(&mut self.dispatched)
    }

    /// Ends the waiting of a request, because of a timeout or a cancelled client. Returns its
    /// identification if it still waited; otherwise it is executing, and must be finished.
    pub fn cancel(&mut self, now: Duration, ticket: Ticket) -> Option<T> {
        self.advance(now);
        if self.requests.get(&ticket)?.phase != Phase::Waiting {
            return None;
        }
        let request = self.dequeue(now, ticket)?;
        if let Some(index) = request.queue {
            self.update_active(index);
            self.raise_start(index);
        }
        self.counts.rejected += 1;
        self.counts.cancelled += 1;
        self.update_demand(now);
        self.remove_surplus_queues();
        Some(request.known_by)
    }

    /// Ends the execution of a request.
    pub fn finish(&mut self, now: Duration, ticket: Ticket) -> Finished {
        self.release_due(now);
        let Some(request) = self.requests.get_mut(&ticket) else { return Finished::Released };
        let Phase::Executing { since } = request.phase else { return Finished::Released };
        request.phase = Phase::Lingering;
        let (estimate, queue) = (request.estimate, request.queue);
        self.counts.executing -= 1;
        if let Some(index) = queue {
            let took = now.saturating_sub(since);
            let seats = as_f64(estimate.initial_seats);
            let queue = &mut self.queues[index];
            queue.executing -= 1;
            queue.next_dispatch -= SeatSeconds::new(seats, SERVICE_DURATION);
            queue.next_dispatch += SeatSeconds::new(seats, took);
            self.raise_start(index);
            self.update_active(index);
        }
        let finished = if estimate.additional_latency.is_zero() {
            self.release(now, ticket);
            Finished::Released
        } else {
            let at = now.saturating_add(estimate.additional_latency);
            self.lingering.insert((at, ticket));
            Finished::ReleasedAt(at)
        };
        self.dispatch_all(now);
        finished
    }

    /// Releases the seats whose time has come, and dispatches other requests. Returns the time of
    /// the next release.
    pub fn release_due(&mut self, now: Duration) -> Option<Duration> {
        self.advance(now);
        while let Some((at, ticket)) = self.lingering.first().copied().filter(|(at, _)| *at <= now)
        {
            self.lingering.remove(&(at, ticket));
            self.release(now, ticket);
            self.dispatch_all(now);
        }
        self.lingering.first().map(|(at, _)| *at)
    }

    /// Whether no request waits or is executed.
    pub fn is_idle(&self) -> bool {
        self.counts.waiting == 0 && self.counts.executing == 0
    }

    /// The demand for seats since the last call.
    pub fn take_demand(&mut self, now: Duration) -> Observed {
        self.demand.take(now)
    }

    /// Advances the progress meter by the service that each queue could have had since the last
    /// call.
    fn advance(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.last);
        self.last = self.last.max(now);
        if self.active_queues > 0 && !elapsed.is_zero() {
            let seats = as_f64(self.queue_seats.min(self.limit)) / as_f64(self.active_queues);
            self.r += SeatSeconds::new(seats, elapsed);
        }
    }

    /// Raises the start of a queue to the arrival of its oldest request: a queue gains no advantage
    /// from seats that it did not need before.
    fn raise_start(&mut self, index: usize) {
        let Some(oldest) = self.queues[index].waiting.first() else { return };
        let arrived = self.requests[oldest].arrived_at_r;
        let queue = &mut self.queues[index];
        queue.next_dispatch = queue.next_dispatch.max(arrived);
    }

    /// Updates the number of active queues after a request left a queue.
    fn update_active(&mut self, index: usize) {
        if self.queues[index].is_idle() {
            self.active_queues -= 1;
        }
    }

    /// Removes surplus empty queues at the end.
    fn remove_surplus_queues(&mut self) {
        let wanted = match self.discipline {
            Discipline::Queue { queues, .. } => queues,
            Discipline::Exempt | Discipline::Reject => 0,
        };
        while self.queues.len() > wanted && self.queues.last().is_some_and(Queue::is_unused) {
            self.queues.pop();
        }
    }

    fn update_demand(&mut self, now: Duration) {
        self.demand.set(now, as_f64(self.counts.seats_in_use + self.counts.seats_waiting));
    }
}

impl Rejection {
    /// The name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConcurrencyLimit => "concurrency-limit",
            Self::QueueFull => "queue-full",
            Self::TimeOut => "time-out",
        }
    }
}
