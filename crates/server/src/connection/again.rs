//! Polls the task of a connection once more at once if it woke itself.
//!
//! A request with a body always does that: its handler waits for the body, which the same task reads
//! from the socket next. The runtime would move the task to the end of its queue and wake another
//! thread, which takes longer than a small write.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// How many times a future that woke itself is polled again at once. Further polls wait until other
/// tasks had their turn.
const AGAIN_MAX: usize = 1;

/// Nothing polls the future.
const IDLE: u8 = 0;
/// The future is polled.
const POLLED: u8 = 1;
/// The future is polled and was woken meanwhile.
const WOKEN: u8 = 2;

/// Runs a future, and polls it again at once if it was woken while it was polled.
pub(super) async fn polled_again<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let state = Arc::new(State { now: AtomicU8::new(IDLE), task: AtomicWaker::new() });
    let waker = Waker::from(state.clone());
    std::future::poll_fn(|context| state.poll(future.as_mut(), &waker, context)).await
}

struct State {
    /// [`IDLE`], [`POLLED`] or [`WOKEN`].
    now: AtomicU8,
    /// Wakes the task that runs the future.
    task: AtomicWaker,
}

impl State {
    fn poll<F: Future>(
        &self,
        mut future: Pin<&mut F>,
        waker: &Waker,
        context: &Context<'_>,
    ) -> Poll<F::Output> {
        self.task.register(context.waker());
        for _ in 0..=AGAIN_MAX {
            self.now.store(POLLED, Ordering::Release);
            let polled = future.as_mut().poll(&mut Context::from_waker(waker));
            let is_woken = self.now.swap(IDLE, Ordering::AcqRel) == WOKEN;
            if polled.is_ready() || !is_woken {
                return polled;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let set = |now| (now != IDLE).then_some(WOKEN);
        if self.now.fetch_update(Ordering::AcqRel, Ordering::Acquire, set).is_err() {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, poll_fn};
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts how often the task is woken.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Task {
        fn poll<T>(self: &Arc<Self>, future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
            future.poll(&mut Context::from_waker(&Waker::from(self.clone())))
        }

        fn woken(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again_at_once_but_not_for_ever() {
        let (task, polls) = (Arc::new(Task::default()), Cell::new(0));
        // Woken by itself, or by another thread, until it was polled so often.
        for (wakes, by_thread, polled, woken) in
            [(0, false, 1, 0), (1, false, 2, 0), (1, true, 2, 0), (2, false, 2, 1), (9, true, 2, 1)]
        {
            let before = task.woken();
            polls.set(0);
            let mut future = pin!(polled_again(poll_fn(|context| {
                polls.set(polls.get() + 1);
                if polls.get() <= wakes {
                    let waker = context.waker().clone();
                    match by_thread {
                        true => std::thread::spawn(|| waker.wake()).join().unwrap(),
                        false => waker.wake(),
                    }
                }
                Poll::<()>::Pending
            })));
            assert!(task.poll(future.as_mut()).is_pending());
            assert_eq!((polls.get(), task.woken() - before), (polled, woken), "{wakes} wakes");
        }
    }

    #[test]
    fn an_idle_future_wakes_its_newest_task() {
        let (first, second) = (Arc::new(Task::default()), Arc::new(Task::default()));
        let waker = Cell::new(None);
        let mut future = pin!(polled_again(async {
            poll_fn(|context| {
                waker.set(Some(context.waker().clone()));
                Poll::Ready(())
            })
            .await;
            pending::<()>().await;
        }));
        assert!(first.poll(future.as_mut()).is_pending());
        assert!(second.poll(future.as_mut()).is_pending());
        waker.take().unwrap().wake();
        assert_eq!((first.woken(), second.woken()), (0, 1));
    }

    #[test]
    fn the_outcome_of_a_second_poll_is_returned() {
        let (task, mut first) = (Arc::new(Task::default()), true);
        let future = polled_again(poll_fn(move |context| {
            if std::mem::take(&mut first) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(7)
        }));
        assert_eq!(task.poll(pin!(future)), Poll::Ready(7));
    }
}
