//! A priority level: requests take seats or wait for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pintle_auth::{Attributes, User};
use pintle_fairness::{
    Arrival, Arriving, Discipline, Finished, Observed, QueueSet, Rejection, RetryAfter, Ticket,
    WorkEstimate, flow_hash,
};
use pintle_registry::Verb;
use tokio::sync::oneshot;

use super::Class;
use crate::request_info::RequestInfo;

/// The longest time that a watch holds seats for its initial events.
const INITIALISATION_MAX: Duration = Duration::from_secs(5);

/// A priority level with its requests.
pub(crate) struct ServedLevel {
    origin: Instant,
    is_exempt: bool,
    work: Mutex<Work>,
}

struct Work {
    set: QueueSet<Known>,
    retry_after: RetryAfter,
    /// True if a task will release seats later.
    is_timed: bool,
    /// True until it is configured.
    is_new: bool,
}

/// A request that waits or runs.
pub(super) struct Known {
    pub(super) class: Arc<Class>,
    pub(super) user: Arc<User>,
    pub(super) info: Arc<RequestInfo>,
    /// Notifies the request that it has its seats.
    dispatched: Option<oneshot::Sender<()>>,
}

/// The seats of a request, given back when dropped.
pub(crate) struct Seat {
    class: Arc<Class>,
    ticket: Ticket,
    since: Instant,
    is_watch: bool,
}

/// The seats of a watch that sends its initial events. They are given back when dropped, and after
/// a timeout, because the client may stop reading.
pub(crate) struct InitialSeat(
    #[expect(dead_code, reason = "notifies the receiver by being dropped")] oneshot::Sender<()>,
);

/// The rejection of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rejected {
    /// The value of `Retry-After`.
    pub(crate) retry_after_seconds: u64,
}

/// A waiting request; dropping it gives up.
struct Waiting<'a> {
    class: &'a Arc<Class>,
    /// `None` when the wait is over.
    ticket: Option<Ticket>,
}

/// Waits for a request's seats, at most until `until`.
pub(super) async fn admit(
    class: &Arc<Class>,
    user: &Arc<User>,
    info: &Arc<RequestInfo>,
    estimate: WorkEstimate,
    until: Instant,
) -> Result<Seat, Rejected> {
    let (level, measures) = (&class.level, &class.measures);
    let (sender, receiver) = oneshot::channel();
    let known = Known {
        class: class.clone(),
        user: user.clone(),
        info: info.clone(),
        dispatched: Some(sender),
    };
    let arrived = Instant::now();
    let seat = |ticket| {
        measures.dispatched.add(1);
        Seat {
            class: class.clone(),
            ticket,
            since: Instant::now(),
            is_watch: info.verb.is(Verb::Watch),
        }
    };
    let flow_hash = flow_hash_of(class, user, info);
    match level.arrive(Arriving { user: &user.name, flow_hash, estimate, known_by: known }) {
        Arrival::Executing(ticket) => {
            if !level.is_exempt {
                measures.waited[0].observe(0);
            }
            Ok(seat(ticket))
        }
        Arrival::Rejected(why) => {
            measures.waited[1].observe(0);
            measures.reject(why);
            Err(level.reject())
        }
        Arrival::Waiting(ticket, length) => {
            measures.queue_length.observe(length as u64);
            let mut waiting = Waiting { class, ticket: Some(ticket) };
            let is_dispatched = tokio::time::timeout_at(until.into(), receiver).await.is_ok();
            if is_dispatched || !waiting.give_up() {
                waiting.ticket = None;
                measures.waited[0].took(arrived.elapsed());
                return Ok(seat(ticket));
            }
            measures.waited[1].took(arrived.elapsed());
            measures.reject(Rejection::TimeOut);
            Err(level.reject())
        }
    }
}

fn flow_hash_of(class: &Class, user: &User, info: &RequestInfo) -> u64 {
    if !class.has_queues {
        return 0;
    }
    let asked = Attributes { user, verb: info.verb.as_str(), subject: info.subject() };
    flow_hash(&class.schema.name, class.schema.distinguisher_of(&asked))
}

impl ServedLevel {
    pub(super) fn new(discipline: Discipline, origin: Instant) -> Self {
        let set = QueueSet::new(Discipline::Reject, 0, true, origin.elapsed());
        let work = Work { set, retry_after: RetryAfter::default(), is_timed: false, is_new: true };
        let is_exempt = discipline == Discipline::Exempt;
        Self { origin, is_exempt, work: Mutex::new(work) }
    }

    /// Changes the level's configuration.
    pub(super) fn configure(self: &Arc<Self>, discipline: Discipline, limit: usize, now: Duration) {
        let mut work = self.work.lock();
        work.is_new = false;
        work.set.configure(discipline, limit, now);
        work.notify();
    }

    pub(super) const fn is_exempt(&self) -> bool {
        self.is_exempt
    }

    pub(super) fn is_new(&self) -> bool {
        self.work.lock().is_new
    }

    pub(super) fn is_idle(&self) -> bool {
        self.work.lock().set.is_idle()
    }

    pub(super) fn take_demand(&self, now: Duration) -> Observed {
        self.work.lock().set.take_demand(now)
    }

    /// Reads the queue set.
    pub(super) fn look<R>(&self, look: impl FnOnce(&QueueSet<Known>) -> R) -> R {
        look(&self.work.lock().set)
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn arrive(self: &Arc<Self>, arriving: Arriving<'_, Known>) -> Arrival {
        let now = self.now();
        let mut work = self.work.lock();
        let arrival = work.set.arrive(now, arriving);
        work.notify();
        arrival
    }

    fn finish(self: &Arc<Self>, ticket: Ticket) {
        let now = self.now();
        let mut work = self.work.lock();
        let finished = work.set.finish(now, ticket);
        work.notify();
        if let Finished::ReleasedAt(at) = finished
            && !std::mem::replace(&mut work.is_timed, true)
        {
            drop(work);
            self.release_later(at);
        }
    }

    /// Releases seats when their time has passed, until none are left.
    fn release_later(self: &Arc<Self>, mut at: Duration) {
        let level = self.clone();
        let release = async move {
            loop {
                tokio::time::sleep_until((level.origin + at).into()).await;
                let mut work = level.work.lock();
                let next = work.set.release_due(level.origin.elapsed());
                work.notify();
                match next {
                    Some(next) => at = next,
                    None => {
                        work.is_timed = false;
                        return;
                    }
                }
            }
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(release);
        }
    }

    fn reject(&self) -> Rejected {
        let now = self.now();
        let retry_after_seconds = self.work.lock().retry_after.rejected(now);
        Rejected { retry_after_seconds }
    }
}

impl Work {
    /// Notifies the requests that have got seats.
    fn notify(&mut self) {
        for ticket in self.set.take_dispatched() {
            let sender = self.set.known_by_mut(ticket).and_then(|known| known.dispatched.take());
            // A request that has given up gives its seats back when it is dropped.
            sender.into_iter().for_each(|sender| _ = sender.send(()));
        }
    }
}

impl Waiting<'_> {
    /// Gives up; true if the request still waited.
    fn give_up(&mut self) -> bool {
        let Some(ticket) = self.ticket.take() else { return false };
        let level = &self.class.level;
        let now = level.now();
        let mut work = level.work.lock();
        let given_up = work.set.cancel(now, ticket).is_some();
        work.notify();
        given_up
    }
}

impl Drop for Waiting<'_> {
    /// Ends the wait of a client that has left, or gives back the seats that its request just got.
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        if !self.give_up() {
            self.class.level.finish(ticket);
        }
    }
}

impl Seat {
    /// Holds the seats while initial events are sent, for a few seconds at most.
    pub(crate) fn until_initialised(self) -> InitialSeat {
        let (initialised, receiver) = oneshot::channel::<()>();
        tokio::spawn(async move {
            // A dropped sender ends the wait, too.
            let _ = tokio::time::timeout(INITIALISATION_MAX, receiver).await;
            drop(self);
        });
        InitialSeat(initialised)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let kind = usize::from(!self.is_watch);
        self.class.measures.executed[kind].took(self.since.elapsed());
        self.class.level.finish(self.ticket);
    }
}
