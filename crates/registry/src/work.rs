//! Work announcements: how much a request will compute, from the size of a body, of stored objects
//! or of a collection.
//!
//! Nothing interrupts a future while it is polled, and few threads poll. So the server
//! [watches](watched) the polls of a request and moves requests with much work to a separate
//! thread. Code announces such work before it starts ([`ahead`]) and divides long work ([`pause`]).
//! Both do nothing outside of [`watched`].

use std::cell::Cell;
use std::future::poll_fn;
use std::task::{Context, Poll};

/// How many bytes one poll may decode, compare or encode on a shared thread: about 4 ms of the
/// slowest kind of work.
pub const SHARED_BYTES_MAX: usize = 32 * 1024;

/// After how many bytes long work yields: about 16 ms of the slowest kind of work.
pub const YIELD_BYTES: usize = 128 * 1024;

/// The thread of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    /// The thread serves other connections, too.
    Shared,
    /// The thread runs nothing else during the poll.
    Separate,
}

thread_local! {
    /// The thread of the watched poll, and whether the poll has asked for a separate one.
    static WATCHED: Cell<Option<(Thread, bool)>> = const { Cell::new(None) };
}

/// Runs a poll; `thread` is the kind of the current thread. Returns also whether the future asks
/// for a [separate](Thread::Separate) thread for its next poll.
pub fn watched<T>(thread: Thread, poll: impl FnOnce() -> T) -> (T, bool) {
    let before = WATCHED.replace(Some((thread, false)));
    let done = poll();
    let wants_separate = WATCHED.replace(before).is_some_and(|(_, wants_separate)| wants_separate);
    (done, wants_separate)
}

/// Announces work on `bytes` bytes. Work on more than [`SHARED_BYTES_MAX`] continues on a separate
/// thread.
pub async fn ahead(bytes: usize) {
    if bytes > SHARED_BYTES_MAX {
        move_from(|thread| thread == Thread::Shared).await;
    }
}

/// Announces the evaluation of users' expressions, which may use their whole cost budget.
pub async fn ahead_of_expressions() {
    ahead(usize::MAX).await;
}

/// Yields to other requests in the middle of long work.
pub async fn pause() {
    move_from(|_| true).await;
}

/// Ends the poll if it is watched and `from` selects its thread; the next poll is on a separate
/// thread.
async fn move_from(from: impl Fn(Thread) -> bool) {
    let mut moved = false;
    poll_fn(|context: &mut Context<'_>| {
        if moved {
            return Poll::Ready(());
        }
        match WATCHED.get() {
            Some((thread, _)) if from(thread) => {
                moved = true;
                WATCHED.set(Some((thread, true)));
                context.waker().wake_by_ref();
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use super::*;

    /// Returns the thread of each poll of a future.
    fn threads(future: impl Future<Output = ()>) -> Vec<Thread> {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        let (mut thread, mut threads) = (Thread::Shared, Vec::new());
        loop {
            threads.push(thread);
            let (polled, separate) = watched(thread, || future.as_mut().poll(&mut context));
            if polled.is_ready() {
                return threads;
            }
            assert!(separate, "it waits for nothing else");
            thread = Thread::Separate;
        }
    }

    #[test]
    fn much_work_continues_on_a_separate_thread() {
        use Thread::{Separate, Shared};
        assert_eq!(threads(ahead(SHARED_BYTES_MAX)), [Shared]);
        assert_eq!(threads(ahead(SHARED_BYTES_MAX + 1)), [Shared, Separate]);
        assert_eq!(threads(pause()), [Shared, Separate]);
        let twice = async {
            ahead(usize::MAX).await;
            ahead(usize::MAX).await; // already on a separate thread
            pause().await;
        };
        assert_eq!(threads(twice), [Shared, Separate, Separate]);
    }

    #[test]
    fn unwatched_polls_do_not_yield() {
        let mut future = pin!(async {
            ahead(usize::MAX).await;
            pause().await;
        });
        let mut context = Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(&mut context).is_ready());
    }
}
