//! How much computing a request has ahead of it, said where it becomes known: a body's size, a stored
//! object's, a collection's.
//!
//! Nothing interrupts a future while it is polled, and the threads that poll are few. So whoever runs a
//! request [watches](watched) its polls, and runs those with much work ahead elsewhere; code with such work
//! ahead says so first ([`ahead`]), and breaks long work into stretches ([`pause`]). Neither does anything
//! where nobody watches.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::{Context, Poll};

/// What is worked on in one poll between connections' other tasks, in bytes that are read, compared or
/// encoded: about 4 ms of the slowest kind of work.
pub const SHARED_BYTES_MAX: usize = 32 * 1024;

/// After so many bytes long work makes way for others: about 10 ms of the slowest kind of work.
pub const STRETCH_BYTES: usize = 128 * 1024;

/// Where a poll takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On a thread that serves other connections too.
    Shared,
    /// On a thread of its own.
    Apart,
}

thread_local! {
    /// Where the poll that is watched takes place, and whether it has asked for another place.
    static WATCHED: Cell<Option<(Place, bool)>> = const { Cell::new(None) };
}

/// Polls a future that takes place somewhere; true if it wants its next poll [apart](Place::Apart).
pub fn watched<T>(place: Place, poll: impl FnOnce() -> T) -> (T, bool) {
    let before = WATCHED.replace(Some((place, false)));
    let done = poll();
    let wants_apart = WATCHED.replace(before).is_some_and(|(_, wants_apart)| wants_apart);
    (done, wants_apart)
}

/// Says that work on so many bytes comes next. More than [`SHARED_BYTES_MAX`] goes on apart from others'
/// tasks.
pub async fn ahead(bytes: usize) {
    if bytes > SHARED_BYTES_MAX {
        leave(|place| place == Place::Shared).await;
    }
}

/// Says that work comes next whose length no size tells: users' expressions may run up to their budget.
pub async fn ahead_of_expressions() {
    ahead(usize::MAX).await;
}

/// Lets others have their turn, in the midst of long work.
pub async fn pause() {
    leave(|_| true).await;
}

/// Ends the poll if it is watched and takes place where `from` says; goes on in the next one, apart.
async fn leave(from: impl Fn(Place) -> bool) {
    let mut left = false;
    poll_fn(|context: &mut Context<'_>| {
        if left {
            return Poll::Ready(());
        }
        match WATCHED.get() {
            Some((place, _)) if from(place) => {
                left = true;
                WATCHED.set(Some((place, true)));
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

    /// The places where a future was polled until it was done.
    fn places(future: impl Future<Output = ()>) -> Vec<Place> {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        let (mut place, mut places) = (Place::Shared, Vec::new());
        loop {
            places.push(place);
            let (polled, apart) = watched(place, || future.as_mut().poll(&mut context));
            if polled.is_ready() {
                return places;
            }
            assert!(apart, "it waits for nothing else");
            place = Place::Apart;
        }
    }

    #[test]
    fn much_work_goes_on_apart() {
        use Place::{Apart, Shared};
        assert_eq!(places(ahead(SHARED_BYTES_MAX)), [Shared]);
        assert_eq!(places(ahead(SHARED_BYTES_MAX + 1)), [Shared, Apart]);
        assert_eq!(places(pause()), [Shared, Apart]);
        let twice = async {
            ahead(usize::MAX).await;
            ahead(usize::MAX).await; // is apart already
            pause().await;
        };
        assert_eq!(places(twice), [Shared, Apart, Apart]);
    }

    #[test]
    fn nothing_waits_where_nobody_watches() {
        let mut future = pin!(async {
            ahead(usize::MAX).await;
            pause().await;
        });
        let mut context = Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(&mut context).is_ready());
    }
}
