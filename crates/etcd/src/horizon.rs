//! How far followers are, who waits for them to come further, and how far back can be read.
//!
//! Must not know: records, etcd.
//!
//! Invariants: the head grows, but for a reset. Nothing at or above the lowest pin is compacted by this
//! process.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use pintle_store::{self as store, Revision};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

#[derive(Debug)]
pub(crate) struct Horizon {
    /// Its head is the newest revision that all followers have.
    readable: store::Horizon,
    awaited: Mutex<Awaited>,
    /// Told when a revision is wanted that followers do not have.
    pub(crate) wanted: Notify,
    /// Told when a pin is gone.
    unpinned: Notify,
}

/// What is waited for. The head is read under its lock before somebody begins to wait, and it has moved
/// before those who wait are told: so nobody misses that.
#[derive(Debug, Default)]
struct Awaited {
    wanted: Revision,
    waiters: BTreeMap<Revision, Vec<oneshot::Sender<()>>>,
}

/// A reader at a revision, which stays readable while it lives.
#[derive(Debug)]
pub(crate) struct Pin<'a> {
    horizon: &'a Horizon,
    pin: Option<store::Pin<'a>>,
    pub(crate) revision: Revision,
}

impl Horizon {
    pub(crate) fn new(floor: Revision, head: Revision) -> Self {
        Self {
            readable: store::Horizon::new(floor, head),
            awaited: Mutex::default(),
            wanted: Notify::new(),
            unpinned: Notify::new(),
        }
    }

    /// The newest revision that all followers have.
    pub(crate) fn head(&self) -> Revision {
        self.readable.head()
    }

    /// The oldest revision that can be read, as far as is known: others compact, too.
    pub(crate) fn floor(&self) -> Revision {
        self.readable.floor()
    }

    /// Followers have everything up to `head`.
    pub(crate) fn advance(&self, head: Revision) {
        self.readable.advance(head);
        let mut awaited = self.awaited.lock();
        let waiting = awaited.waiters.split_off(&Revision(head.0.saturating_add(1)));
        let reached = std::mem::replace(&mut awaited.waiters, waiting);
        drop(awaited);
        for waiter in reached.into_values().flatten() {
            let _ = waiter.send(());
        }
    }

    /// Followers were given the state anew. Where revisions went back, those who wait for one may mean one
    /// of before or one of after: they wait on.
    pub(crate) fn reset(&self, floor: Revision, head: Revision) {
        if head < self.head() {
            self.awaited.lock().wanted = Revision(0);
        }
        self.readable.reset(floor, head);
        self.advance(head);
    }

    /// What is before `floor` cannot be read any more.
    pub(crate) fn raise(&self, floor: Revision) {
        // What is beyond the head is gone for others, who are further; followers will be told.
        let _ = self.readable.raise(floor.min(self.head()));
    }

    /// Waits until followers have `revision`, for a bounded time; false if they do not.
    pub(crate) async fn reached(&self, revision: Revision, patience: Duration) -> bool {
        let reached = {
            let mut awaited = self.awaited.lock();
            if self.head() >= revision {
                return true;
            }
            awaited.wanted = awaited.wanted.max(revision);
            let (reach, reached) = oneshot::channel();
            awaited.waiters.entry(revision).or_default().push(reach);
            reached
        };
        self.wanted.notify_one();
        matches!(timeout(patience, reached).await, Ok(Ok(())))
    }

    /// Says that somebody will wait for a revision.
    pub(crate) fn want(&self, revision: Revision) {
        let mut awaited = self.awaited.lock();
        if self.head() < revision {
            awaited.wanted = awaited.wanted.max(revision);
            self.wanted.notify_one();
        }
    }

    /// Whether somebody waits for a newer head.
    pub(crate) fn is_behind(&self) -> bool {
        self.head() < self.awaited.lock().wanted
    }

    /// Whether somebody waits for a revision, or for a newer one.
    pub(crate) fn is_wanted(&self, revision: Revision) -> bool {
        self.awaited.lock().wanted >= revision
    }

    /// Begins to read at the floor.
    pub(crate) fn pin(&self) -> Pin<'_> {
        let pin = self.readable.pin_floor();
        Pin { horizon: self, revision: pin.revision, pin: Some(pin) }
    }

    /// Waits until nobody reads below `floor`.
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

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.pin = None;
        self.horizon.unpinned.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn waiters_wake_when_the_head_has_come_so_far() {
        let horizon = Horizon::new(Revision(1), Revision(5));
        assert!(horizon.reached(Revision(5), LONG).await, "at once");
        assert!(!horizon.is_behind());
        let waits = async |revision| horizon.reached(Revision(revision), LONG).await;
        let moves = async {
            tokio::task::yield_now().await;
            assert!(horizon.is_behind());
            horizon.advance(Revision(7));
            horizon.reset(Revision(3), Revision(7));
            assert!(horizon.is_behind());
            horizon.reset(Revision(3), Revision(4));
            assert!(!horizon.is_behind(), "nobody is known to want what is to come");
        };
        let (six, seven, eight, ()) = tokio::join!(waits(6), waits(7), waits(8), moves);
        assert_eq!((six, seven, eight), (true, true, false), "only so far");
        assert_eq!((horizon.floor(), horizon.head()), (Revision(3), Revision(4)));
        assert!(!horizon.reached(Revision(9), LONG).await, "not in time");
    }

    #[tokio::test(start_paused = true)]
    async fn compaction_waits_for_pins_below_it() {
        let horizon = Horizon::new(Revision(1), Revision(5));
        let pin = horizon.pin();
        horizon.raise(Revision(3));
        let later = horizon.pin();
        assert!(timeout(LONG, horizon.unpinned_below(Revision(3))).await.is_err());
        let drops = async {
            tokio::task::yield_now().await;
            drop(pin);
        };
        tokio::join!(horizon.unpinned_below(Revision(3)), drops);
        assert_eq!(later.revision, Revision(3));
    }
}
