//! Runs long computations on separate threads, so that they do not delay other connections.
//!
//! Nothing interrupts a future while it is polled, and the runtime has about as many threads as
//! there are processors: a few long polls would stall every connection. So requests run on those
//! threads while their work is small, and polls with [much work ahead](pintle_registry::work) run
//! on a separate thread: another thread takes over the other tasks of the one that computes
//! ([`tokio::task::block_in_place`]). The operating system then shares the processors between the
//! two.
//!
//! Invariants:
//! - At most as many such polls run at a time as there are slots.
//! - Slots are given to users in round robin: between two polls of one user, each other user who
//!   waits has one.
//! - A slot is held for one poll, never while a request waits for anything but the processor.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pintle_auth::User;
use pintle_registry::work::{self, Thread};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

/// A request continues on a separate thread after one poll that took longer, whatever work it
/// announced.
const SHARED_TIME_MAX: Duration = Duration::from_millis(4);

/// Runs polls on separate threads.
pub(crate) struct Compute(Arc<Slots>);

/// One request's access to its user's share of the slots.
pub(crate) struct Lane {
    slots: Arc<Slots>,
    user: Arc<User>,
    /// Receives the slot, while a poll waits for one.
    receiver: Option<oneshot::Receiver<Slot>>,
}

struct Slots(Mutex<Queues>);

struct Queues {
    free: usize,
    /// The users with waiting polls, the next one first.
    order: VecDeque<String>,
    /// The waiting polls by user. No queue is empty, and each user with a queue is in `order`.
    waiting: HashMap<String, VecDeque<oneshot::Sender<Slot>>>,
}

/// The right to compute. When dropped, it passes to the next waiting poll.
struct Slot(Option<Arc<Slots>>);

impl Compute {
    /// Lets as many polls run on separate threads at a time as there are slots.
    pub(crate) fn new(slots: usize) -> Self {
        let queues = Queues { free: slots, order: VecDeque::new(), waiting: HashMap::new() };
        Self(Arc::new(Slots(Mutex::new(queues))))
    }

    /// A request's access to its user's share of the slots.
    pub(crate) fn lane(&self, user: &Arc<User>) -> Lane {
        Lane { slots: self.0.clone(), user: user.clone(), receiver: None }
    }

    /// Runs a user's request; on a separate thread once it has much work ahead.
    pub(crate) async fn run<T>(&self, user: &Arc<User>, request: impl Future<Output = T>) -> T {
        let mut request = pin!(request);
        let mut lane = None;
        poll_fn(|context| {
            if let Some(lane) = &mut lane {
                let poll = |context: &mut Context<'_>| request.as_mut().poll(context);
                return ready!(Lane::poll_separately(lane, context, poll));
            }
            let began = Instant::now();
            let poll = || request.as_mut().poll(context);
            let (polled, wants_separate) = work::watched(Thread::Shared, poll);
            if wants_separate || began.elapsed() > SHARED_TIME_MAX {
                lane = Some(self.lane(user));
            }
            polled
        })
        .await
    }
}

impl Lane {
    /// Does work on a separate thread, as soon as there is a slot for it.
    pub(crate) fn poll_separately<T>(
        &mut self,
        context: &mut Context<'_>,
        work: impl FnOnce(&mut Context<'_>) -> T,
    ) -> Poll<T> {
        let slot = ready!(self.poll_slot(context));
        let (done, _) = on_separate_thread(|| work::watched(Thread::Separate, || work(context)));
        drop(slot);
        Poll::Ready(done)
    }

    fn poll_slot(&mut self, context: &mut Context<'_>) -> Poll<Slot> {
        loop {
            let receiver = match &mut self.receiver {
                Some(receiver) => receiver,
                None => match self.slots.enter(&self.user.name) {
                    Ok(slot) => return Poll::Ready(slot),
                    Err(receiver) => self.receiver.insert(receiver),
                },
            };
            let received = ready!(Pin::new(receiver).poll(context));
            self.receiver = None;
            // A sender is always used before it is dropped; if one were not, the poll would wait
            // again.
            if let Ok(slot) = received {
                return Poll::Ready(slot);
            }
        }
    }
}

impl Slots {
    /// Returns a slot, or a receiver that gets one when the queue reaches it.
    fn enter(self: &Arc<Self>, user: &str) -> Result<Slot, oneshot::Receiver<Slot>> {
        let mut queues = self.0.lock();
        if queues.free > 0 {
            queues.free -= 1;
            return Ok(Slot(Some(self.clone())));
        }
        let (sender, receiver) = oneshot::channel();
        match queues.waiting.get_mut(user) {
            Some(queue) => queue.push_back(sender),
            None => {
                queues.waiting.insert(user.to_owned(), VecDeque::from([sender]));
                queues.order.push_back(user.to_owned());
            }
        }
        Err(receiver)
    }
}

impl Queues {
    /// The next waiting poll, if there is one.
    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
        let user = self.order.pop_front()?;
        let queue = self.waiting.get_mut(&user)?;
        let sender = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&user);
        } else {
            self.order.push_back(user);
        }
        sender
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
            let Some(sender) = next else { return };
            match sender.send(Self(Some(slots.clone()))) {
                Ok(()) => return,
                // That request was cancelled: the next one gets the slot.
                Err(mut refused) => refused.0 = None,
            }
        }
    }
}

/// Computes while the runtime moves this thread's other tasks to another thread.
fn on_separate_thread<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // A runtime with one thread, as in some tests, has no other thread for the tasks.
        _ => work(),
    }
}

#[cfg(test)]
mod tests;
