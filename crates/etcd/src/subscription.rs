//! The place of a follower among those that the publisher serves.
//!
//! A new follower reads the state and the history by itself while others write. From its
//! subscription on, the changes that the publisher passes to followers wait for it. So it needs to
//! read no further than to the publisher's head at that moment, however fast others write.
//!
//! It must not know etcd.

use std::sync::Arc;

use parking_lot::Mutex;
use pintle_store::{Follower, Record, Revision};

/// The most bytes of values that wait for a follower.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// A follower, and what waits for it.
pub(crate) struct Subscription {
    follower: Arc<dyn Follower>,
    stage: Mutex<Stage>,
}

enum Stage {
    /// The follower reads what came before the subscription; later changes wait.
    Reading(Waiting),
    /// The follower gets changes at once. It has everything up to `seen`, which may be newer than
    /// the next change.
    Served { seen: Revision },
    /// The follower gets nothing: it gave up, or too much waited for it.
    Ended,
}

/// Changes that wait for a follower.
#[derive(Default)]
struct Waiting {
    /// The state that replaces everything before `records`, if the history was lost, and its
    /// revision.
    state: Option<(Vec<Record>, Revision)>,
    records: Vec<Record>,
    /// The revision up to which everything is in `records`; 0 if nothing was passed on.
    head: Revision,
    bytes: usize,
}

impl Subscription {
    pub(crate) fn new(follower: Arc<dyn Follower>) -> Self {
        Self { follower, stage: Mutex::new(Stage::Reading(Waiting::default())) }
    }

    /// Passes changes on, which are everything up to `head`.
    pub(crate) fn apply(&self, records: &[Record], head: Revision) {
        let mut stage = self.stage.lock();
        match &mut *stage {
            Stage::Served { seen } => pass_on(&*self.follower, records, head, seen),
            Stage::Ended => {}
            Stage::Reading(waiting) => {
                waiting.records.extend_from_slice(records);
                waiting.head = head;
                waiting.bytes += records.iter().map(|record| record.body.len()).sum::<usize>();
                if waiting.bytes > WAITING_BYTES_MAX {
                    *stage = Stage::Ended;
                }
            }
        }
    }

    /// Passes the state at `head` on, after a loss of history.
    pub(crate) fn reset(&self, state: &[Record], head: Revision) {
        match &mut *self.stage.lock() {
            Stage::Served { seen } => {
                self.follower.reset(state, head);
                *seen = head;
            }
            Stage::Ended => {}
            Stage::Reading(waiting) => {
                let state = Some((state.to_vec(), head));
                *waiting = Waiting { state, head, ..Waiting::default() };
            }
        }
    }

    /// Whether the follower need not read further, because a state waits for it or because it will
    /// get nothing.
    pub(crate) fn replaces_reading(&self) -> bool {
        match &*self.stage.lock() {
            Stage::Reading(waiting) => waiting.state.is_some(),
            Stage::Served { .. } | Stage::Ended => true,
        }
    }

    /// Gives the follower what waits for it, except what it has: everything up to `seen`. From then
    /// on it gets changes at once. Returns false if too much waited, and was dropped.
    pub(crate) fn serve(&self, mut seen: Revision) -> bool {
        // What waits by now may be much, so others do not wait until it is applied.
        let Some(waiting) = self.take_waiting() else { return false };
        waiting.pass_on(&*self.follower, &mut seen);
        let mut stage = self.stage.lock();
        let Stage::Reading(waiting) = &mut *stage else { return false };
        std::mem::take(waiting).pass_on(&*self.follower, &mut seen);
        *stage = Stage::Served { seen };
        true
    }

    fn take_waiting(&self) -> Option<Waiting> {
        match &mut *self.stage.lock() {
            Stage::Reading(waiting) => Some(std::mem::take(waiting)),
            Stage::Served { .. } | Stage::Ended => None,
        }
    }

    /// Ends the subscription, unless the follower gets changes at once.
    pub(crate) fn give_up(&self) {
        let mut stage = self.stage.lock();
        if matches!(*stage, Stage::Reading(_)) {
            *stage = Stage::Ended;
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(*self.stage.lock(), Stage::Ended)
    }
}

impl Waiting {
    /// Gives a follower that has everything up to `seen` what it lacks.
    fn pass_on(self, follower: &dyn Follower, seen: &mut Revision) {
        if let Some((state, head)) = self.state {
            follower.reset(&state, head);
            *seen = head;
        }
        pass_on(follower, &self.records, self.head, seen);
    }
}

/// Gives a follower that has everything up to `seen` what it lacks of `records`, which are
/// everything up to `head`.
fn pass_on(follower: &dyn Follower, records: &[Record], head: Revision, seen: &mut Revision) {
    if head > *seen {
        let new = records.partition_point(|record| record.revision <= *seen);
        follower.apply(&records[new..], head);
        *seen = head;
    }
}

#[cfg(test)]
mod tests {
    use pintle_store::{Key, Kind};

    use super::*;

    /// A follower that records its calls.
    #[derive(Default)]
    struct Calls(Mutex<Vec<String>>);

    impl Calls {
        fn add(&self, call: &str, records: &[Record], head: Revision) {
            let revisions: Vec<_> = records.iter().map(|record| record.revision.0).collect();
            self.0.lock().push(format!("{call} {revisions:?} {head}"));
        }
    }

    impl Follower for Calls {
        fn apply(&self, records: &[Record], head: Revision) {
            self.add("apply", records, head);
        }

        fn reset(&self, state: &[Record], head: Revision) {
            self.add("reset", state, head);
        }
    }

    fn records(revisions: &[u64], bytes: usize) -> Vec<Record> {
        let key = Key { collection: "a".into(), item: "1".into() };
        let record = |revision: &u64| Record {
            revision: Revision(*revision),
            key: key.clone(),
            kind: Kind::Updated,
            bytes: vec![b' '; bytes].into(),
            body: 0..bytes,
            note: None,
        };
        revisions.iter().map(record).collect()
    }

    fn subscription() -> (Arc<Calls>, Subscription) {
        let calls = Arc::new(Calls::default());
        (calls.clone(), Subscription::new(calls))
    }

    #[test]
    fn a_follower_gets_what_waited_and_then_each_change_once() {
        let rows: [(u64, &[&str]); 4] = [
            (4, &["apply [5, 6, 8] 9", "apply [10] 10", "apply [] 12"]),
            (6, &["apply [8] 9", "apply [10] 10", "apply [] 12"]),
            (9, &["apply [10] 10", "apply [] 12"]),
            (11, &["apply [] 12"]),
        ];
        for (seen, expected) in rows {
            let (calls, subscription) = subscription();
            subscription.apply(&records(&[5, 6], 1), Revision(6));
            subscription.apply(&records(&[8], 1), Revision(9));
            assert_eq!(*calls.0.lock(), [""; 0], "the follower still reads");
            assert!(subscription.serve(Revision(seen)));
            subscription.apply(&records(&[10], 1), Revision(10));
            subscription.apply(&[], Revision(12));
            assert_eq!(*calls.0.lock(), expected, "seen {seen}");
        }
    }

    #[test]
    fn a_state_replaces_what_waited() {
        let (calls, subscription) = subscription();
        subscription.apply(&records(&[5, 6], 1), Revision(6));
        assert!(!subscription.replaces_reading());
        subscription.reset(&records(&[2], 1), Revision(3));
        assert!(subscription.replaces_reading());
        subscription.apply(&records(&[4], 1), Revision(4));
        assert!(subscription.serve(Revision(5)));
        subscription.reset(&[], Revision(1));
        subscription.apply(&records(&[2], 1), Revision(2));
        let expected = ["reset [2] 3", "apply [4] 4", "reset [] 1", "apply [2] 2"];
        assert_eq!(*calls.0.lock(), expected);
    }

    #[test]
    fn a_subscription_ends_if_too_much_waits_or_its_follower_gives_up() {
        let (calls, subscription) = subscription();
        subscription.apply(&records(&[5], WAITING_BYTES_MAX), Revision(5));
        assert!(!subscription.has_ended());
        subscription.apply(&records(&[6], 1), Revision(6));
        assert!(subscription.has_ended() && subscription.replaces_reading());
        assert!(!subscription.serve(Revision(4)));
        assert_eq!(*calls.0.lock(), [""; 0]);

        let (calls, subscription) = self::subscription();
        subscription.give_up();
        assert!(subscription.has_ended());

        let (_, served) = self::subscription();
        assert!(served.serve(Revision(4)));
        served.give_up();
        assert!(!served.has_ended());
        assert_eq!(*calls.0.lock(), [""; 0]);
    }
}
