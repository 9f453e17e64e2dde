//! Compacts the history: drops changes that are older than the window in which watches and exact
//! lists may start (RV-28), and reduces the memory of older objects.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pintle_registry::{Head, Registry};
use pintle_store::Revision;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

/// The number of steps in a window: history is retained for up to one step longer than configured.
const STEPS: u32 = 10;
/// The shortest step.
const STEP_MIN: Duration = Duration::from_millis(100);

/// The time between two looks for objects that have left the history.
const SETTLING_STEP: Duration = Duration::from_secs(1);

/// Reduces the memory of objects that have left the history, until the task is dropped. A burst of
/// writes makes them leave long before the window ends.
pub(super) async fn settle_objects(registry: Arc<Registry>) {
    let mut timer = tokio::time::interval(SETTLING_STEP);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        timer.tick().await;
        registry.settle_objects().await;
    }
}

/// Compacts the cache, and the store if this server owns it, until the task is dropped. If servers
/// share an etcd, one of them compacts the etcd, at another interval.
pub(super) async fn run(registry: Arc<Registry>, window: Duration, owns_store: bool) {
    let (floors, floor) = watch::channel(Revision(0));
    let compacting = async {
        if owns_store {
            compact_store(&registry, floor).await;
        }
    };
    tokio::join!(trim_cache(&registry, window, floors), compacting);
}

/// Drops old states from memory, and tells the store's floor.
async fn trim_cache(registry: &Registry, window: Duration, floors: watch::Sender<Revision>) {
    let mut timer = tokio::time::interval((window / STEPS).max(STEP_MIN));
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut history = History::new(window);
    loop {
        let now = timer.tick().await;
        if let Some(floor) = history.step(now, registry.head()) {
            registry.trim(floor);
            floors.send_replace(floor.revision);
        }
    }
}

/// Drops old states from the store. A reader, such as a snapshot, can delay this for long.
async fn compact_store(registry: &Registry, mut floor: watch::Receiver<Revision>) {
    while floor.changed().await.is_ok() {
        let floor = *floor.borrow_and_update();
        if let Err(error) = registry.compact(floor).await {
            tracing::warn!(%error, "cannot compact the store; the server tries again at the next step");
        }
    }
}

/// The heads of the last window, with their times.
struct History {
    window: Duration,
    heads: VecDeque<(Instant, Head)>,
    /// The newest floor.
    floor: Head,
}

impl History {
    fn new(window: Duration) -> Self {
        Self { window, heads: VecDeque::new(), floor: Head::default() }
    }

    /// Records the head. Returns the head before which history can be dropped, if it has changed.
    /// Heads of a history that was lost do not count: its revisions may be used again.
    fn step(&mut self, now: Instant, head: Head) -> Option<Head> {
        self.heads.retain(|(_, earlier)| earlier.resets() == head.resets());
        self.heads.push_back((now, head));
        let mut floor = None;
        while let Some((_, head)) =
            self.heads.pop_front_if(|(then, _)| now.duration_since(*then) >= self.window)
        {
            floor = Some(head);
        }
        let floor = floor.filter(|floor| *floor > self.floor)?;
        self.floor = floor;
        Some(floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_revision_of_a_window_ago_is_compacted_to() {
        let start = Instant::now();
        let mut history = History::new(Duration::from_secs(10));
        let mut step = |seconds, head| {
            let now = start + Duration::from_secs(seconds);
            history.step(now, Head::new(0, Revision(head))).map(|floor| floor.revision.0)
        };
        assert_eq!(step(0, 5), None);
        assert_eq!(step(5, 7), None);
        assert_eq!(step(10, 7), Some(5));
        assert_eq!(step(15, 7), Some(7));
        assert_eq!(step(20, 7), None); // nothing new to compact
        assert_eq!(step(60, 9), None);
        assert_eq!(step(70, 9), Some(9));
    }

    /// A database that was restored from a backup has smaller revisions for some time.
    #[test]
    fn heads_of_a_lost_history_are_forgotten() {
        let start = Instant::now();
        let mut history = History::new(Duration::from_secs(10));
        let mut step = |seconds, resets, head| {
            let now = start + Duration::from_secs(seconds);
            history.step(now, Head::new(resets, Revision(head)))
        };
        assert_eq!(step(0, 0, 1000), None);
        assert_eq!(step(10, 0, 1001), Some(Head::new(0, Revision(1000))));
        assert_eq!(step(15, 1, 900), None);
        assert_eq!(step(20, 1, 905), None);
        assert_eq!(step(25, 1, 905), Some(Head::new(1, Revision(900))));
    }
}
