//! The dispatcher: wakes the watches whose scope has a change, and only those.
//!
//! An update of one pod wakes the watch of its kubelet, not the watches of 5,000 other kubelets.
//! The store's thread does none of this work: [`run`] follows the cache's head on the runtime. It
//! dispatches a collection at intervals that grow with the number of watches that it wakes. So a
//! frame carries several events when writes are faster than frames can be sent to every watch.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::{Cache, Collection, Head};

/// The outcome of [`Collection::dispatch`].
pub(super) struct Dispatched {
    /// The approximate number of watches that were woken.
    woken: usize,
    /// Whether the log has changes that are in no topic yet.
    pub(super) is_behind: bool,
}

/// About twice the processor time of one frame to one watch. The interval between two dispatches is
/// this time for each woken watch (10 ms for 1,000 watches), up to [`INTERVAL_MAX`]. So frames to
/// at most 4,000 watches take at most half of one processor's time from writers.
const FRAME_COST: Duration = Duration::from_micros(10);
/// A collection with a shorter interval is dispatched without one: the timer's resolution is 1 ms.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
/// The longest time by which an event is delayed so that later events join its frame.
const INTERVAL_MAX: Duration = Duration::from_millis(40);

/// Dispatches the changes of all collections after `seen`, until the cache is dropped.
pub(super) async fn run(cache: Weak<Cache>, mut heads: watch::Receiver<Head>, mut seen: Head) {
    // Collections within their interval: when it ends, and whether they have changed in it.
    let mut paced: HashMap<Arc<str>, (Instant, bool)> = HashMap::new();
    loop {
        let due = paced.values().map(|(at, _)| *at).min();
        tokio::select! {
            changed = heads.changed() => if changed.is_err() { return },
            () = until(due) => {}
        }
        let Some(cache) = cache.upgrade() else { return };
        let head = *heads.borrow_and_update();
        for name in cache.changed_since(seen) {
            match paced.get_mut(&name) {
                Some((_, changed)) => *changed = true,
                None => dispatch(&cache, name, &mut paced).await,
            }
        }
        seen = head;
        let now = Instant::now();
        let due: Vec<_> = paced.extract_if(|_, (at, _)| *at <= now).collect();
        for (name, (_, changed)) in due {
            if changed {
                dispatch(&cache, name, &mut paced).await;
            }
        }
    }
}

/// Dispatches the changes of one collection and records when it may be dispatched again.
async fn dispatch(cache: &Cache, name: Arc<str>, paced: &mut HashMap<Arc<str>, (Instant, bool)>) {
    let collection = cache.collection(&name);
    let woken = loop {
        let Dispatched { woken, is_behind } = collection.dispatch();
        if !is_behind {
            break woken;
        }
        tokio::task::yield_now().await;
    };
    let interval = FRAME_COST.saturating_mul(u32::try_from(woken).unwrap_or(u32::MAX));
    if interval >= INTERVAL_MIN {
        paced.insert(name, (Instant::now() + interval.min(INTERVAL_MAX), false));
    }
}

/// Waits until a moment, if there is one.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

impl Collection {
    /// Appends new changes to the topics that they concern, and wakes the topics' watches.
    pub(super) fn dispatch(&self) -> Dispatched {
        let mut topics = self.topics.lock();
        let (concerned, is_behind) = topics.append_new(&self.state);
        let of_collection = topics.of_collection;
        drop(topics);
        self.changed.notify_waiters();
        concerned.iter().for_each(|topic| topic.wake());
        // A topic is held by the map, by `concerned` and by its subscriptions.
        let of_topics = concerned.iter().map(|topic| Arc::strong_count(topic).saturating_sub(2));
        Dispatched { woken: of_collection + of_topics.sum::<usize>(), is_behind }
    }
}
