//! How far followers are, who waits for them to come further, and how far back can be read.
//!
//! Must not know: records, etcd.
//!
//! Invariants: the head grows, but for a reset. Nothing at or above the lowest pin is compacted by this
//! process.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use pintle_store::Revision;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

#[derive(Debug)]
pub(crate) struct Horizon {
    state: Mutex<State>,
    /// Told when a revision is wanted that followers do not have.
    pub(crate) wanted: Notify,
    /// Told when a pin is gone.
    unpinned: Notify,
}

#[derive(Debug)]
struct State {
    head: Revision,
    floor: Revision,
    wanted: Revision,
    waiters: BTreeMap<Revision, Vec<oneshot::Sender<()>>>,
    pins: BTreeMap<Revision, usize>,
}

/// A reader at a revision, which stays readable while it lives.
#[derive(Debug)]
pub(crate) struct Pin<'a> {
    horizon: &'a Horizon,
    pub(crate) revision: Revision,
}

impl Horizon {
    pub(crate) fn new(floor: Revision, head: Revision) -> Self {
        let state = State {
            head,
            floor,
            wanted: Revision(0),
            waiters: BTreeMap::new(),
            pins: BTreeMap::new(),
        };
        Self { state: Mutex::new(state), wanted: Notify::new(), unpinned: Notify::new() }
    }

    /// The newest revision that all followers have.
    pub(crate) fn head(&self) -> Revision {
        self.state.lock().head
    }

    /// The oldest revision that can be read, as far as is known: others compact, too.
    pub(crate) fn floor(&self) -> Revision {
        self.state.lock().floor
    }

    /// Followers have everything up to `head`.
    pub(crate) fn advance(&self, head: Revision) {
        let mut state = self.state.lock();
        state.head = state.head.max(head);
        let waiting = state.waiters.split_off(&Revision(head.0.saturating_add(1)));
        let reached = std::mem::replace(&mut state.waiters, waiting);
        drop(state);
        for waiter in reached.into_values().flatten() {
            let _ = waiter.send(());
        }
    }

    /// Followers were given the state anew. Where revisions went back, those who wait for one may mean one
    /// of before or one of after: they wait on.
    pub(crate) fn reset(&self, floor: Revision, head: Revision) {
        let mut state = self.state.lock();
        if head < state.head {
            state.wanted = Revision(0);
        }
        (state.floor, state.head) = (floor, head);
        drop(state);
        self.advance(head);
    }

    /// What is before `floor` cannot be read any more.
    pub(crate) fn raise(&self, floor: Revision) {
        let mut state = self.state.lock();
        state.floor = state.floor.max(floor);
    }

    /// Waits until followers have `revision`, for a bounded time; false if they do not.
    pub(crate) async fn reached(&self, revision: Revision, patience: Duration) -> bool {
        let reached = {
            let mut state = self.state.lock();
            if state.head >= revision {
                return true;
            }
            state.wanted = state.wanted.max(revision);
            let (reach, reached) = oneshot::channel();
            state.waiters.entry(revision).or_default().push(reach);
            reached
        };
        self.wanted.notify_one();
        matches!(timeout(patience, reached).await, Ok(Ok(())))
    }

    /// Says that somebody will wait for a revision.
    pub(crate) fn want(&self, revision: Revision) {
        let mut state = self.state.lock();
        if state.head < revision {
            state.wanted = state.wanted.max(revision);
            self.wanted.notify_one();
        }
    }

    /// Whether somebody waits for a newer head.
    pub(crate) fn is_behind(&self) -> bool {
        let state = self.state.lock();
        state.head < state.wanted
    }

    /// Begins to read at the floor.
    pub(crate) fn pin(&self) -> Pin<'_> {
        let mut state = self.state.lock();
        let revision = state.floor;
        *state.pins.entry(revision).or_insert(0) += 1;
        Pin { horizon: self, revision }
    }

    /// Waits until nobody reads below `floor`.
    pub(crate) async fn unpinned_below(&self, floor: Revision) {
        loop {
            let unpinned = self.unpinned.notified();
            let lowest = self.state.lock().pins.keys().next().copied();
            if lowest.is_none_or(|lowest| lowest >= floor) {
                return;
            }
            unpinned.await;
        }
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        let mut state = self.horizon.state.lock();
        if let Some(count) = state.pins.get_mut(&self.revision) {
            *count -= 1;
            if *count == 0 {
                state.pins.remove(&self.revision);
            }
        }
        drop(state);
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
