//! The way of a request to its seats: admitted or put into a queue, chosen as the next one,
//! executed, and released.

use std::time::Duration;

use super::{
    Arrival, Arriving, Discipline, Dispatched, Phase, QueueSet, Rejection, Request,
    SERVICE_DURATION, Ticket,
};
use crate::dealer::{Dealer, MAX_HAND_SIZE};
use crate::work::{SeatSeconds, as_f64};

impl<T> QueueSet<T> {
    pub(super) fn arrive_without_queue(
        &mut self,
        now: Duration,
        arriving: Arriving<'_, T>,
    ) -> Arrival {
        let is_exempt = self.discipline == Discipline::Exempt;
        let seats = arriving.estimate.max_seats();
        if !is_exempt && (!self.has_seats(seats) || self.is_over_half(arriving.user)) {
            return self.reject(Rejection::ConcurrencyLimit);
        }
        let ticket = self.admit(now, None, arriving);
        self.execute(now, ticket);
        Arrival::Executing(ticket)
    }

    pub(super) const fn reject(&mut self, why: Rejection) -> Arrival {
        self.counts.rejected += 1;
        Arrival::Rejected(why)
    }

    /// The queue of a hand with the least waiting work.
    pub(super) fn shortest_of_hand(&mut self, dealer: &Dealer, flow_hash: u64) -> usize {
        let mut hand = [0; MAX_HAND_SIZE];
        let size = dealer.deal(flow_hash, &mut hand);
        let first = self.enqueued % size;
        self.enqueued += 1;
        let candidates = (0..size).map(|n| hand[(first + n) % size]);
        candidates.min_by_key(|index| self.queues[*index].work).unwrap_or(hand[0])
    }

    pub(super) fn enqueue(
        &mut self,
        now: Duration,
        index: usize,
        arriving: Arriving<'_, T>,
    ) -> Ticket {
        let seats = arriving.estimate.max_seats();
        let ticket = self.admit(now, Some(index), arriving);
        let work = self.requests[&ticket].work;
        let r = self.r;
        let queue = &mut self.queues[index];
        if queue.is_idle() {
            queue.next_dispatch = r;
            self.active_queues += 1;
        }
        queue.waiting.insert(ticket);
        queue.work += work;
        queue.seats_waiting += seats;
        self.busy.insert(index);
        self.counts.waiting += 1;
        self.counts.seats_waiting += seats;
        self.queue_seats += seats;
        self.update_demand(now);
        self.raise_start(index);
        ticket
    }

    fn admit(&mut self, now: Duration, queue: Option<usize>, arriving: Arriving<'_, T>) -> Ticket {
        let Arriving { user, estimate, known_by, .. } = arriving;
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let initial = SeatSeconds::new(as_f64(estimate.initial_seats), SERVICE_DURATION);
        let request = Request {
            user: user.into(),
            known_by,
            estimate,
            work: initial + estimate.final_work(),
            arrived: now,
            arrived_at_r: self.r,
            queue,
            phase: Phase::Waiting,
        };
        self.requests.insert(ticket, request);
        ticket
    }

    pub(super) fn dispatch_all(&mut self, now: Duration) {
        while self.counts.waiting > 0 && self.counts.seats_in_use < self.limit {
            let Some(ticket) = self.next_to_dispatch() else { break };
            self.dispatch(now, ticket);
        }
    }

    /// The request to dispatch next, if there are seats for it. Of equal queues, the next one after
    /// the last served queue is chosen.
    fn next_to_dispatch(&mut self) -> Option<Ticket> {
        let mut best: Option<(SeatSeconds, usize, Ticket)> = None;
        let mut seen = Dispatched { r: self.r, ..Dispatched::default() };
        let mut is_first = true;
        let behind = self.busy.range(self.robin + 1..);
        for index in behind.chain(self.busy.range(..=self.robin)) {
            let queue = &self.queues[*index];
            // Users can share a queue: one who must leave seats free does not block the others.
            let mut waiting = queue.waiting.iter().map(|ticket| (ticket, &self.requests[ticket]));
            let may_go = waiting.find(|(_, request)| !self.is_over_half(&request.user));
            let Some((ticket, request)) = may_go else { continue };
            let in_progress = SeatSeconds::new(as_f64(queue.seats_in_use), SERVICE_DURATION);
            let (start, discounted) = (queue.next_dispatch, queue.next_dispatch - in_progress);
            seen.add(start, discounted, std::mem::take(&mut is_first));
            let finish = start + request.work;
            if best.is_none_or(|(least, ..)| finish < least) {
                best = Some((finish, *index, *ticket));
            }
        }
        let (_, index, ticket) = best?;
        if !self.has_seats(self.requests[&ticket].estimate.max_seats()) {
            self.counts.without_seats += 1;
            return None;
        }
        seen.start = self.queues[index].next_dispatch;
        self.last_dispatch = seen;
        self.robin = index;
        Some(ticket)
    }

    fn dispatch(&mut self, now: Duration, ticket: Ticket) {
        let Some(mut request) = self.dequeue(now, ticket) else { return };
        let limit = self.limit;
        let estimate = &mut request.estimate;
        if estimate.final_seats > limit {
            let work = estimate.final_work();
            estimate.final_seats = limit;
            estimate.additional_latency = work.per_seat(limit);
        }
        let seats = estimate.max_seats();
        if let Some(index) = request.queue {
            let queue = &mut self.queues[index];
            queue.executing += 1;
            queue.seats_in_use += seats;
            queue.next_dispatch += request.work;
            self.queue_seats += seats;
        }
        let queue = request.queue;
        self.requests.insert(ticket, request);
        self.execute(now, ticket);
        queue.into_iter().for_each(|index| self.raise_start(index));
        self.dispatched.push(ticket);
    }

    /// Removes a request from its queue.
    pub(super) fn dequeue(&mut self, now: Duration, ticket: Ticket) -> Option<Request<T>> {
        let request = self.requests.remove(&ticket)?;
        let seats = request.estimate.max_seats();
        if let Some(index) = request.queue {
            let queue = &mut self.queues[index];
            queue.waiting.remove(&ticket);
            queue.work -= request.work;
            queue.seats_waiting -= seats;
            if queue.waiting.is_empty() {
                self.busy.remove(&index);
            }
        }
        self.counts.waiting -= 1;
        self.counts.seats_waiting -= seats;
        self.queue_seats -= seats;
        self.update_demand(now);
        Some(request)
    }

    /// Occupies the seats of a request.
    fn execute(&mut self, now: Duration, ticket: Ticket) {
        let Some(request) = self.requests.get_mut(&ticket) else { return };
        request.phase = Phase::Executing { since: now };
        let seats = request.estimate.max_seats();
        if self.leaves_half && self.discipline != Discipline::Exempt {
            match self.held.get_mut(&request.user) {
                Some(held) => *held += seats,
                None => drop(self.held.insert(request.user.clone(), seats)),
            }
        }
        self.counts.executing += 1;
        self.counts.dispatched += 1;
        self.counts.seats_in_use += seats;
        self.update_demand(now);
    }

    /// Frees the seats of an executed request.
    pub(super) fn release(&mut self, now: Duration, ticket: Ticket) {
        let Some(request) = self.requests.remove(&ticket) else { return };
        let seats = request.estimate.max_seats();
        self.counts.seats_in_use -= seats;
        if let Some(held) = self.held.get_mut(&request.user) {
            *held = held.saturating_sub(seats);
            if *held == 0 {
                self.held.remove(&request.user);
            }
        }
        if let Some(index) = request.queue {
            self.queues[index].seats_in_use -= seats;
            self.queue_seats -= seats;
        }
        self.update_demand(now);
        self.remove_surplus_queues();
    }

    /// Whether there are seats for a request. One that is wider than the limit is executed alone.
    const fn has_seats(&self, seats: usize) -> bool {
        if seats > self.limit {
            return self.counts.executing == 0;
        }
        self.counts.seats_in_use + seats <= self.limit
    }

    /// Whether a user has at least as many seats as are free.
    fn is_over_half(&self, user: &str) -> bool {
        let free = self.limit.saturating_sub(self.counts.seats_in_use);
        let held = if self.leaves_half { self.held.get(user).copied() } else { None };
        held.is_some_and(|held| held >= free)
    }
}

impl Dispatched {
    fn add(&mut self, start: SeatSeconds, discounted: SeatSeconds, is_first: bool) {
        if is_first {
            (self.bounds, self.discounted) = ((start, start), (discounted, discounted));
        }
        self.bounds = (self.bounds.0.min(start), self.bounds.1.max(start));
        let (least, greatest) = self.discounted;
        self.discounted = (least.min(discounted), greatest.max(discounted));
    }
}
