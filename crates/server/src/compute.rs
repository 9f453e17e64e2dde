//! Long computing, kept off the threads that serve connections.
//!
//! Nothing interrupts a future while it is polled, and the runtime has about as many threads as there are
//! processors: a few long polls would stall every connection. So requests run on those threads while
//! their work is small, and polls with [much work ahead](pintle_registry::work) take place apart: another
//! thread takes over the tasks of the one that computes ([`tokio::task::block_in_place`]). The operating
//! system then shares the processors between the two.
//!
//! Invariants:
//! - As many polls take place apart at a time as there are slots, and no more.
//! - Users take turns at the slots: however many requests one user has, another's next poll waits for no
//!   more than one poll of each.
//! - A slot is held for one poll, never while a request waits for something else than the processor.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pintle_auth::User;
use pintle_registry::work::{self, Place};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

/// A request of which one poll took longer goes on apart, whatever it said of its work.
const SHARED_TIME_MAX: Duration = Duration::from_millis(4);

/// What computes apart.
pub(crate) struct Compute(Arc<Slots>);

/// A user's way to the slots, for one request.
pub(crate) struct Lane {
    slots: Arc<Slots>,
    user: Arc<User>,
    /// The place in the queue, while a poll waits for its slot.
    turn: Option<oneshot::Receiver<Slot>>,
}

struct Slots(Mutex<Queues>);

struct Queues {
    free: usize,
    /// The users of whom polls wait, the next one first.
    turns: VecDeque<String>,
    /// The polls that wait, by user. No queue is empty, and each user who has one has a turn.
    waiting: HashMap<String, VecDeque<oneshot::Sender<Slot>>>,
}

/// The right to compute; goes to the next in turn when dropped.
struct Slot(Option<Arc<Slots>>);

impl Compute {
    /// So many polls may take place apart at the same time.
    pub(crate) fn new(slots: usize) -> Self {
        let queues = Queues { free: slots, turns: VecDeque::new(), waiting: HashMap::new() };
        Self(Arc::new(Slots(Mutex::new(queues))))
    }

    /// A user's way to the slots.
    pub(crate) fn lane(&self, user: &Arc<User>) -> Lane {
        Lane { slots: self.0.clone(), user: user.clone(), turn: None }
    }

    /// Runs a user's request: apart, from when it has much work ahead.
    pub(crate) async fn run<T>(&self, user: &Arc<User>, request: impl Future<Output = T>) -> T {
        let mut request = pin!(request);
        let mut lane = None;
        poll_fn(|context| {
            if let Some(lane) = &mut lane {
                let poll = |context: &mut Context<'_>| request.as_mut().poll(context);
                return ready!(Lane::poll_apart(lane, context, poll));
            }
            let began = Instant::now();
            let poll = || request.as_mut().poll(context);
            let (polled, wants_apart) = work::watched(Place::Shared, poll);
            if wants_apart || began.elapsed() > SHARED_TIME_MAX {
                lane = Some(self.lane(user));
            }
            polled
        })
        .await
    }
}

impl Lane {
    /// Does work apart, as soon as there is a slot for it.
    pub(crate) fn poll_apart<T>(
        &mut self,
        context: &mut Context<'_>,
        work: impl FnOnce(&mut Context<'_>) -> T,
    ) -> Poll<T> {
        let slot = ready!(self.poll_slot(context));
        let (done, _) = apart(|| work::watched(Place::Apart, || work(context)));
        drop(slot);
        Poll::Ready(done)
    }

    fn poll_slot(&mut self, context: &mut Context<'_>) -> Poll<Slot> {
        loop {
            let turn = match &mut self.turn {
                Some(turn) => turn,
                None => match self.slots.enter(&self.user.name) {
                    Ok(slot) => return Poll::Ready(slot),
                    Err(turn) => self.turn.insert(turn),
                },
            };
            let told = ready!(Pin::new(turn).poll(context));
            self.turn = None;
            // A queue is never dropped before what waits in it; if it were, the next one serves as well.
            if let Ok(slot) = told {
                return Poll::Ready(slot);
            }
        }
    }
}

impl Slots {
    /// A slot, or a place in the queue of a user.
    fn enter(self: &Arc<Self>, user: &str) -> Result<Slot, oneshot::Receiver<Slot>> {
        let mut queues = self.0.lock();
        if queues.free > 0 {
            queues.free -= 1;
            return Ok(Slot(Some(self.clone())));
        }
        let (place, turn) = oneshot::channel();
        match queues.waiting.get_mut(user) {
            Some(queue) => queue.push_back(place),
            None => {
                queues.waiting.insert(user.to_owned(), VecDeque::from([place]));
                queues.turns.push_back(user.to_owned());
            }
        }
        Err(turn)
    }
}

impl Queues {
    /// The poll that is next in turn, if one waits.
    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
        let user = self.turns.pop_front()?;
        let queue = self.waiting.get_mut(&user)?;
        let place = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&user);
        } else {
            self.turns.push_back(user);
        }
        place
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(slots) = self.0.take() else { return };
        loop {
            let next = {
                let mut queues = slots.0.lock();
                let next = queues.next();
                queues.free += usize::from(next.is_none());
                next
            };
            let Some(place) = next else { return };
            match place.send(Self(Some(slots.clone()))) {
                Ok(()) => return,
                // Who waited there has left: the slot is given to the next.
                Err(mut refused) => refused.0 = None,
            }
        }
    }
}

/// Computes while another thread takes over this one's tasks.
fn apart<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // A runtime of one thread, as some tests have it, has no other to take over.
        _ => work(),
    }
}

#[cfg(test)]
mod tests;
