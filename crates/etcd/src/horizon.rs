//! The horizon of a store on etcd: how far followers are, who waits for a newer head, and the
//! oldest readable revision.
//!
//! It must not know records or etcd.
//!
//! Invariants: the head grows, except by a reset. This process compacts nothing at or above the
//! lowest pin.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pintle_store::{self as store, Revision};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

#[derive(Debug)]
pub(crate) struct Horizon {
    /// The head is the newest revision that all followers have, except those that still read the
    /// history.
    readable: Arc<store::Horizon>,
    awaited: Mutex<Awaited>,
    /// Notified when a revision is wanted that followers do not have.
    pub(crate) wanted: Notify,
    /// Notified when a pin is dropped.
    unpinned: Notify,
}

/// The waiters for newer heads. A waiter reads the head under this lock before it registers, and
/// the head is advanced before waiters are notified: so no waiter misses a head.
#[derive(Debug, Default)]
struct Awaited {
    wanted: Revision,
    waiters: BTreeMap<Place, oneshot::Sender<()>>,
    /// The number of waiters so far.
    count: u64,
}

/// The place of a waiter: the revision that it waits for, and its number.
type Place = (Revision, u64);

/// A waiter, which leaves its place when it is dropped: its revision may never be reached.
struct Waiter<'a> {
    horizon: &'a Horizon,
    place: Place,
    reached: oneshot::Receiver<()>,
}

/// A reader at a revision, which stays readable while this value lives.
#[derive(Debug)]
pub(crate) struct Pin<'a> {
    horizon: &'a Horizon,
    pin: Option<store::Pin<'a>>,
    pub(crate) revision: Revision,
}

/// As [`Pin`], but without a borrow of the horizon.
#[derive(Debug)]
pub(crate) struct LastingPin {
    horizon: Arc<Horizon>,
    pin: Option<store::LastingPin>,
    pub(crate) revision: Revision,
}

impl Horizon {
    pub(crate) fn new(floor: Revision, head: Revision) -> Self {
        Self {
            readable: Arc::new(store::Horizon::new(floor, head)),
            awaited: Mutex::default(),
            wanted: Notify::new(),
            unpinned: Notify::new(),
        }
    }

    /// Returns the newest revision that all followers have.
    pub(crate) fn head(&self) -> Revision {
        self.readable.head()
    }

    /// Returns the oldest readable revision, as far as known, because other processes compact, too.
    pub(crate) fn floor(&self) -> Revision {
        self.readable.floor()
    }

    /// Records that followers have everything up to `head`.
    pub(crate) fn advance(&self, head: Revision) {
        self.readable.advance(head);
        let mut awaited = self.awaited.lock();
        let waiting = awaited.waiters.split_off(&(Revision(head.0.saturating_add(1)), 0));
        let reached = std::mem::replace(&mut awaited.waiters, waiting);
        drop(awaited);
        for waiter in reached.into_values() {
            let _ = waiter.send(());
        }
    }

    /// Records that followers got the state again. If revisions went back, a waiter's revision may
    /// belong to the old history or to the new one, so the waiter waits until its timeout.
    pub(crate) fn reset(&self, floor: Revision, head: Revision) {
        if head < self.head() {
            self.awaited.lock().wanted = Revision(0);
        }
        self.readable.reset(floor, head);
        self.advance(head);
    }

    /// Makes revisions before `floor` unreadable.
    pub(crate) fn raise_floor(&self, floor: Revision) {
        // Another process, whose head is newer, may compact beyond this head. The followers of this
        // process will reach that revision, too.
        let _ = self.readable.raise_floor(floor.min(self.head()));
    }

    /// Waits until followers have `revision`; returns false after the timeout.
    pub(crate) async fn reached(&self, revision: Revision, limit: Duration) -> bool {
        let Some(mut waiter) = self.waiter(revision) else { return true };
        self.wanted.notify_one();
        matches!(timeout(limit, &mut waiter.reached).await, Ok(Ok(())))
    }

    /// Registers a waiter, unless followers have the revision.
    fn waiter(&self, revision: Revision) -> Option<Waiter<'_>> {
        let mut awaited = self.awaited.lock();
        if self.head() >= revision {
            return None;
        }
        awaited.wanted = awaited.wanted.max(revision);
        awaited.count += 1;
        let (place, (reach, reached)) = ((revision, awaited.count), oneshot::channel());
        awaited.waiters.insert(place, reach);
        Some(Waiter { horizon: self, place, reached })
    }

    /// Records that a reader will wait for a revision.
    pub(crate) fn want(&self, revision: Revision) {
        let mut awaited = self.awaited.lock();
        if self.head() < revision {
            awaited.wanted = awaited.wanted.max(revision);
            self.wanted.notify_one();
        }
    }

    /// Whether a reader waits for a newer head.
    pub(crate) fn is_behind(&self) -> bool {
        self.head() < self.awaited.lock().wanted
    }

    /// Whether a reader waits for this revision or a newer one.
    pub(crate) fn is_wanted(&self, revision: Revision) -> bool {
        self.awaited.lock().wanted >= revision
    }

    /// Pins the floor for a reader.
    pub(crate) fn pin(&self) -> Pin<'_> {
        let pin = self.readable.pin_floor();
        Pin { horizon: self, revision: pin.revision, pin: Some(pin) }
    }

    /// Pins the head for a reader that outlives the caller's borrow.
    pub(crate) fn pin_head(self: &Arc<Self>) -> LastingPin {
        let pin = self.readable.pin_head();
        LastingPin { horizon: self.clone(), revision: pin.revision, pin: Some(pin) }
    }

    /// Waits until no reader reads below `floor`.
    pub(crate) async fn unpinned_below(&self, floor: Revision) {
        loop {
            let unpinned = self.unpinned.notified();
            if self.readable.lowest_pin().is_none_or(|lowest| lowest >= floor) {
                return;
            }
            unpinned.await;
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.horizon.awaited.lock().waiters.remove(&self.place);
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.pin = None;
        self.horizon.unpinned.notify_waiters();
    }
}

impl Drop for LastingPin {
    fn drop(&mut self) {
        self.pin = None;
        self.horizon.unpinned.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn waiters_wake_when_the_head_reaches_their_revision() {
        let horizon = Horizon::new(Revision(1), Revision(5));
        assert!(horizon.reached(Revision(5), TIMEOUT).await, "at once");
        assert!(!horizon.is_behind());
        let waits = async |revision| horizon.reached(Revision(revision), TIMEOUT).await;
        let moves = async {
            tokio::task::yield_now().await;
            assert!(horizon.is_behind());
            horizon.advance(Revision(7));
            horizon.reset(Revision(3), Revision(7));
            assert!(horizon.is_behind());
            horizon.reset(Revision(3), Revision(4));
            assert!(!horizon.is_behind(), "no wanted revision is known");
        };
        let (six, seven, eight, ()) = tokio::join!(waits(6), waits(7), waits(8), moves);
        assert_eq!((six, seven, eight), (true, true, false), "only so far");
        assert_eq!((horizon.floor(), horizon.head()), (Revision(3), Revision(4)));
        assert!(!horizon.reached(Revision(9), TIMEOUT).await, "not in time");
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_leaves_when_it_stops_waiting() {
        let horizon = Horizon::new(Revision(1), Revision(5));
        let waiting = || horizon.awaited.lock().waiters.len();
        let waits = || horizon.reached(Revision(6), TIMEOUT);
        let counts = async {
            tokio::task::yield_now().await;
            waiting()
        };
        let (is_reached, during) = tokio::join!(waits(), counts);
        assert_eq!((is_reached, during, waiting()), (false, 1, 0), "not in time");
        assert!(timeout(Duration::from_secs(1), waits()).await.is_err());
        assert_eq!(waiting(), 0, "cancelled");
    }

    #[test]
    fn the_floor_is_never_beyond_the_head() {
        let horizon = Horizon::new(Revision(1), Revision(5));
        horizon.reset(Revision(9), Revision(4));
        assert_eq!((horizon.floor(), horizon.head()), (Revision(4), Revision(4)));
        horizon.raise_floor(Revision(7));
        assert_eq!((horizon.floor(), horizon.head()), (Revision(4), Revision(4)));
    }

    #[tokio::test(start_paused = true)]
    async fn compaction_waits_for_pins_below_it() {
        let horizon = Horizon::new(Revision(1), Revision(5));
        let pin = horizon.pin();
        horizon.raise_floor(Revision(3));
        let later = horizon.pin();
        assert!(timeout(TIMEOUT, horizon.unpinned_below(Revision(3))).await.is_err());
        let drops = async {
            tokio::task::yield_now().await;
            drop(pin);
        };
        tokio::join!(horizon.unpinned_below(Revision(3)), drops);
        assert_eq!(later.revision, Revision(3));
    }
}
