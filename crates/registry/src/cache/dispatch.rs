//! The dispatcher: wakes the watches whose scope has a change, and only those.
//!
//! An update of one pod wakes the watch of its kubelet, not the watches of 5,000 other kubelets.
//! A commit does none of this work: [`run`] follows the cache's head on the runtime. It dispatches a
//! collection at intervals that grow with the number of watches that it wakes, and grow further
//! while each of them gets several events. So a frame carries several events when writes are faster
//! than frames can be sent to every watch.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::topics::Appended;
use super::{Cache, Collection, Head};

/// The outcome of [`Collection::dispatch`].
pub(super) struct Dispatched {
    /// The approximate number of watches that were woken.
    woken: usize,
    /// The approximate number of events that they will send.
    events: usize,
    /// Whether the log has changes that are in no topic yet.
    pub(super) is_behind: bool,
}

/// About twice the processor time of one frame to one watch. The interval between two dispatches is
/// this time for each woken watch (10 ms for 1,000 watches), up to [`INTERVAL_MAX`]. So with up to
/// 4,000 watches, sending frames takes at most half of one processor.
const FRAME_COST: Duration = Duration::from_micros(10);
/// A collection with a shorter interval is dispatched without one: the timer's resolution is 1 ms.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
/// The longest time by which an event is delayed so that later events join its frame.
const INTERVAL_MAX: Duration = Duration::from_millis(40);
/// While each frame has several events, the interval doubles up to this multiple: sending frames
/// then takes most of the processors' time, and events that wait longer cost less.
const STRETCH_MAX: u32 = 4;

/// The interval of a collection that was dispatched.
struct Interval {
    end: Instant,
    /// Whether the collection has changed in it.
    changed: bool,
    /// Its multiple of the time that the frames cost, 1 to [`STRETCH_MAX`].
    stretch: u32,
}

/// Dispatches the changes of all collections after `seen`, until the cache is dropped.
pub(super) async fn run(cache: Weak<Cache>, mut heads: watch::Receiver<Head>, mut seen: Head) {
    let mut intervals: HashMap<Arc<str>, Interval> = HashMap::new();
    loop {
        let due = intervals.values().map(|interval| interval.end).min();
        tokio::select! {
            changed = heads.changed() => if changed.is_err() { return },
            () = until(due) => {}
        }
        let Some(cache) = cache.upgrade() else { return };
        let head = *heads.borrow_and_update();
        for name in cache.changed_since(seen) {
            match intervals.get_mut(&name) {
                Some(interval) => interval.changed = true,
                None => dispatch(&cache, name, 1, &mut intervals).await,
            }
        }
        seen = head;
        let now = Instant::now();
        let due: Vec<_> = intervals.extract_if(|_, interval| interval.end <= now).collect();
        for (name, Interval { stretch, .. }) in due.into_iter().filter(|(_, it)| it.changed) {
            dispatch(&cache, name, stretch, &mut intervals).await;
        }
    }
}

/// Dispatches the changes of one collection, and begins its next interval. `stretch` is that of the
/// interval before.
async fn dispatch(
    cache: &Cache,
    name: Arc<str>,
    stretch: u32,
    intervals: &mut HashMap<Arc<str>, Interval>,
) {
    let collection = cache.collection(&name);
    let (mut woken, mut events) = (0, 0);
    loop {
        let dispatched = collection.dispatch();
        woken = dispatched.woken.max(woken);
        events += dispatched.events;
        if !dispatched.is_behind {
            break;
        }
        tokio::task::yield_now().await;
    }
    let are_several = events >= woken.saturating_mul(2);
    let stretch = if are_several { (stretch * 2).min(STRETCH_MAX) } else { (stretch / 2).max(1) };
    let cost = FRAME_COST.saturating_mul(u32::try_from(woken).unwrap_or(u32::MAX));
    if cost >= INTERVAL_MIN {
        let end = Instant::now() + cost.saturating_mul(stretch).min(INTERVAL_MAX);
        intervals.insert(name, Interval { end, changed: false, stretch });
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
        let Appended { concerned, changes, is_behind } = topics.append_new(&self.state);
        let of_collection = topics.of_collection;
        drop(topics);
        self.changed.notify_waiters();
        let (mut woken, mut events) = (of_collection, of_collection * changes);
        for (topic, appended) in concerned {
            topic.wake();
            let watches = topic.watches();
            woken += watches;
            events += watches * appended;
        }
        Dispatched { woken, events, is_behind }
    }
}
