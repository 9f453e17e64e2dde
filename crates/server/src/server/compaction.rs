//! Compacts the history: drops changes that are older than the window in which watches and exact
//! lists may start (RV-28), and reduces the memory of older objects.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pintle_registry::Registry;
use pintle_store::Revision;
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
    let mut timer = tokio::time::interval((window / STEPS).max(STEP_MIN));
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut history = History::new(window);
    loop {
        let now = timer.tick().await;
        let Some(floor) = history.step(now, registry.head().revision) else { continue };
        if !owns_store {
            registry.trim(floor);
            continue;
        }
        if let Err(error) = registry.compact(floor).await {
            tracing::warn!(%error, "cannot compact the store; the server tries again at the next step");
        }
    }
}

/// The newest revisions of the last window, with their times.
struct History {
    window: Duration,
    heads: VecDeque<(Instant, Revision)>,
    floor: Revision,
}

impl History {
    const fn new(window: Duration) -> Self {
        Self { window, heads: VecDeque::new(), floor: Revision(0) }
    }

    /// Records the newest revision. Returns the revision before which history can be dropped, if it
    /// has changed.
    fn step(&mut self, now: Instant, head: Revision) -> Option<Revision> {
        self.heads.push_back((now, head));
        let mut floor = None;
        while let Some((_, revision)) =
            self.heads.pop_front_if(|(then, _)| now.duration_since(*then) >= self.window)
        {
            floor = Some(revision);
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
            history.step(now, Revision(head)).map(|revision| revision.0)
        };
        assert_eq!(step(0, 5), None);
        assert_eq!(step(5, 7), None);
        assert_eq!(step(10, 7), Some(5));
        assert_eq!(step(15, 7), Some(7));
        assert_eq!(step(20, 7), None); // nothing new to compact
        assert_eq!(step(60, 9), None);
        assert_eq!(step(70, 9), Some(9));
    }
}
