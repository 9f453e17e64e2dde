//! A work queue with delays and back-off.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::measures::QueueMeasures;

const DELAY_MIN: Duration = Duration::from_millis(10);
/// The longest pause before a name that failed is tried again, unless a controller sets another.
pub(crate) const DELAY_MAX: Duration = Duration::from_secs(5);

/// Names with the time when each is due. A name is in the queue at most once.
#[derive(Debug)]
pub(crate) struct Queue<N> {
    due: BTreeSet<(Instant, N)>,
    entries: HashMap<N, Entry>,
    delay_max: Duration,
    measures: Arc<QueueMeasures>,
}

/// The state of a name. A name that is [begun](Queue::begin) is not among those that are due.
#[derive(Clone, Copy, Debug)]
struct Entry {
    due: Instant,
    attempts: u32,
    begun: Option<Instant>,
    /// When it is due again, if it was enqueued after it was begun.
    again: Option<Instant>,
}

impl Entry {
    const fn at(due: Instant, attempts: u32) -> Self {
        Self { due, attempts, begun: None, again: None }
    }
}

impl<N> Default for Queue<N> {
    fn default() -> Self {
        Self {
            due: BTreeSet::new(),
            entries: HashMap::new(),
            delay_max: DELAY_MAX,
            measures: Arc::default(),
        }
    }
}

impl<N: Clone + Eq + Hash + Ord> Queue<N> {
    /// Makes an empty queue with measures and the longest pause before a retry.
    pub(crate) fn measured(measures: Arc<QueueMeasures>, delay_max: Duration) -> Self {
        Self { delay_max, measures, ..Self::default() }
    }

    /// Makes a name due after `delay`, or earlier if it is queued already. A name that is begun is
    /// due again when it is done.
    pub(crate) fn enqueue(&mut self, name: &N, delay: Duration) {
        let due = Instant::now() + delay;
        match self.entries.get_mut(name) {
            None => self.set(name.clone(), Entry::at(due, 0)),
            Some(entry) if entry.begun.is_some() => {
                entry.again = Some(entry.again.map_or(due, |again| again.min(due)));
            }
            Some(entry) if entry.due <= due => {}
            Some(entry) => {
                let attempts = entry.attempts;
                self.set(name.clone(), Entry::at(due, attempts));
            }
        }
    }

    /// Returns a name that is due, which stays in the queue.
    pub(crate) fn due(&self) -> Option<&N> {
        let now = Instant::now();
        self.due.first().filter(|(due, _)| *due <= now).map(|(_, name)| name)
    }

    /// The number of queued names.
    pub(crate) fn len(&self) -> usize {
        self.due.len()
    }

    /// Begins to work on a name. It is not due until [`Queue::done`] or [`Queue::retry`].
    pub(crate) fn begin(&mut self, name: &N) {
        if let Some(entry) = self.entries.get_mut(name) {
            let now = Instant::now();
            if self.due.remove(&(entry.due, name.clone())) {
                self.measures.depth.add(-1);
            }
            self.measures.begin(entry.due, now);
            (entry.begun, entry.again) = (Some(now), None);
        }
    }

    /// Ends the work on a name. If it was enqueued during the work, it stays queued.
    pub(crate) fn done(&mut self, name: &N) {
        match self.entries.get(name).and_then(|entry| entry.again) {
            Some(due) => self.set(name.clone(), Entry::at(due, 0)),
            None => self.forget(name),
        }
    }

    /// Makes a name due again after a pause that doubles with each retry.
    pub(crate) fn retry(&mut self, name: &N) {
        let attempts = self.entries.get(name).map_or(0, |entry| entry.attempts);
        let delay = DELAY_MIN.saturating_mul(1 << attempts.min(16)).min(self.delay_max);
        let entry = Entry::at(Instant::now() + delay, attempts.saturating_add(1));
        self.measures.retries.add(1);
        self.set(name.clone(), entry);
    }

    /// Removes a name.
    pub(crate) fn forget(&mut self, name: &N) {
        if let Some(entry) = self.entries.remove(name) {
            if self.due.remove(&(entry.due, name.clone())) {
                self.measures.depth.add(-1);
            }
            entry.begun.into_iter().for_each(|began| self.measures.end(began));
        }
    }

    /// Waits until a name is due and returns it; it stays in the queue. Waits forever if the queue
    /// is empty. Cancel safe.
    pub(crate) async fn next(&self) -> N {
        match self.due.first() {
            Some((due, name)) => {
                tokio::time::sleep_until(*due).await;
                name.clone()
            }
            None => std::future::pending().await,
        }
    }

    fn set(&mut self, name: N, entry: Entry) {
        let waits = self.entries.get(&name).is_some_and(|entry| entry.begun.is_none());
        self.measures.adds.add(u64::from(!waits));
        self.forget(&name);
        self.due.insert((entry.due, name.clone()));
        self.measures.depth.add(1);
        self.entries.insert(name, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn due_names_are_returned_in_order_and_retries_back_off() {
        let start = Instant::now();
        let mut queue = Queue::default();
        queue.enqueue(&"a", Duration::ZERO);
        queue.enqueue(&"a", Duration::ZERO);
        assert_eq!(queue.next().await, "a");
        let mut delays = Vec::new();
        for _ in 0..12 {
            queue.retry(&"a");
            let before = Instant::now();
            assert_eq!(queue.next().await, "a");
            delays.push(before.elapsed().as_millis());
        }
        assert_eq!(delays, [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000, 5000]);

        queue.retry(&"a");
        queue.enqueue(&"b", Duration::ZERO);
        assert_eq!(queue.next().await, "b", "what is due comes first");
        queue.forget(&"b");
        queue.enqueue(&"a", Duration::ZERO);
        let before = Instant::now();
        assert_eq!(queue.next().await, "a");
        assert_eq!(before.elapsed().as_secs(), 0, "the new delay is shorter");
        queue.forget(&"a");
        let nothing = tokio::time::timeout(Duration::from_secs(60), queue.next()).await;
        assert!(nothing.is_err(), "{nothing:?} after {:?}", start.elapsed());
    }
    #[tokio::test(start_paused = true)]
    async fn a_begun_name_that_is_enqueued_is_due_again_when_done() {
        let mut queue = Queue::default();
        queue.enqueue(&"a", Duration::ZERO);
        queue.enqueue(&"b", Duration::from_secs(1));
        assert_eq!(queue.next().await, "a");
        queue.begin(&"a");
        assert_eq!(queue.next().await, "b", "a begun name is not due");
        queue.enqueue(&"a", Duration::from_secs(2));
        queue.enqueue(&"a", Duration::ZERO);
        queue.done(&"a");
        assert_eq!(queue.next().await, "a");
        queue.begin(&"a");
        queue.done(&"a");
        assert_eq!(queue.next().await, "b");
        queue.begin(&"b");
        queue.enqueue(&"b", Duration::ZERO);
        queue.retry(&"b");
        let before = Instant::now();
        assert_eq!(queue.next().await, "b");
        assert_eq!(before.elapsed(), DELAY_MIN, "a failed name backs off");
    }
}
