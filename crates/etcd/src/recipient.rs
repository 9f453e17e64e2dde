//! A recipient of the changes that the publisher passes on: a follower, and what waits for it.
//!
//! A new follower reads the state and the history by itself while others write. From the moment at
//! which it is a recipient, changes wait for it. So it needs to read no further than to the
//! publisher's head at that moment, however fast others write.
//!
//! It must not know etcd.

use std::sync::Arc;

use parking_lot::Mutex;
use pintle_store::{Follower, Record, Revision};

/// The most memory of changes that wait for a follower, in bytes.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// How often a follower takes what waits, before the publisher has to wait for it.
const ROUNDS: usize = 8;

/// A follower, and what waits for it.
pub(crate) struct Recipient {
    follower: Arc<dyn Follower>,
    stage: Mutex<Stage>,
}

enum Stage {
    /// The follower reads what came before; later changes wait.
    Reading(Waiting),
    /// The follower gets changes at once. It has everything up to `seen`, which may be newer than
    /// the next change.
    Served { seen: Revision },
    /// The follower gets nothing: it gave up, or too much waited for it.
    Left,
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
    /// The memory of `records`, about.
    bytes: usize,
}

impl Recipient {
    pub(crate) fn new(follower: Arc<dyn Follower>) -> Self {
        Self { follower, stage: Mutex::new(Stage::Reading(Waiting::default())) }
    }

    /// Passes changes on, which are everything up to `head`.
    pub(crate) fn apply(&self, records: &[Record], head: Revision) {
        let mut stage = self.stage.lock();
        match &mut *stage {
            Stage::Served { seen } => pass_on(&*self.follower, records, head, seen),
            Stage::Left => {}
            Stage::Reading(waiting) => {
                waiting.records.extend_from_slice(records);
                waiting.head = head;
                waiting.bytes += records.iter().map(memory).sum::<usize>();
                if waiting.bytes > WAITING_BYTES_MAX {
                    *stage = Stage::Left;
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
            Stage::Left => {}
            Stage::Reading(waiting) => {
                let state = Some((state.to_vec(), head));
                *waiting = Waiting { state, head, ..Waiting::default() };
            }
        }
    }

    /// Whether it is of no use that the follower reads further, because a state waits for it or
    /// because it will get nothing.
    pub(crate) fn ends_reading(&self) -> bool {
        match &*self.stage.lock() {
            Stage::Reading(waiting) => waiting.state.is_some(),
            Stage::Served { .. } | Stage::Left => true,
        }
    }

    /// Gives the follower what waits for it, except what it has: everything up to `seen`. From then
    /// on it gets changes at once.
    ///
    /// # Errors
    /// If too much waited, and was dropped: the revision up to which the follower has everything.
    pub(crate) fn serve(&self, mut seen: Revision) -> Result<(), Revision> {
        // What waits by now may be much. The publisher waits only for what came in the last round.
        for _ in 0..ROUNDS {
            let waiting = self.take_waiting().ok_or(seen)?;
            if waiting.records.is_empty() && waiting.state.is_none() {
                break;
            }
            waiting.pass_on(&*self.follower, &mut seen);
        }
        let mut stage = self.stage.lock();
        let Stage::Reading(waiting) = &mut *stage else { return Err(seen) };
        std::mem::take(waiting).pass_on(&*self.follower, &mut seen);
        *stage = Stage::Served { seen };
        Ok(())
    }

    fn take_waiting(&self) -> Option<Waiting> {
        match &mut *self.stage.lock() {
            Stage::Reading(waiting) => Some(std::mem::take(waiting)),
            Stage::Served { .. } | Stage::Left => None,
        }
    }

    /// Leaves, unless the follower gets changes at once.
    pub(crate) fn give_up(&self) {
        let mut stage = self.stage.lock();
        if matches!(*stage, Stage::Reading(_)) {
            *stage = Stage::Left;
        }
    }

    pub(crate) fn has_left(&self) -> bool {
        matches!(*self.stage.lock(), Stage::Left)
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

/// The memory of a record, about.
fn memory(record: &Record) -> usize {
    size_of::<Record>() + record.key.item.len() + record.body.len()
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

    fn recipient() -> (Arc<Calls>, Recipient) {
        let calls = Arc::new(Calls::default());
        (calls.clone(), Recipient::new(calls))
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
            let (calls, recipient) = recipient();
            recipient.apply(&records(&[5, 6], 1), Revision(6));
            recipient.apply(&records(&[8], 1), Revision(9));
            assert_eq!(*calls.0.lock(), [""; 0], "the follower still reads");
            assert!(recipient.serve(Revision(seen)).is_ok());
            recipient.apply(&records(&[10], 1), Revision(10));
            recipient.apply(&[], Revision(12));
            assert_eq!(*calls.0.lock(), expected, "seen {seen}");
        }
    }

    #[test]
    fn a_state_replaces_what_waited() {
        let (calls, recipient) = recipient();
        recipient.apply(&records(&[5, 6], 1), Revision(6));
        assert!(!recipient.ends_reading());
        recipient.reset(&records(&[2], 1), Revision(3));
        assert!(recipient.ends_reading());
        recipient.apply(&records(&[4], 1), Revision(4));
        assert!(recipient.serve(Revision(5)).is_ok());
        recipient.reset(&[], Revision(1));
        recipient.apply(&records(&[2], 1), Revision(2));
        let expected = ["reset [2] 3", "apply [4] 4", "reset [] 1", "apply [2] 2"];
        assert_eq!(*calls.0.lock(), expected);
    }

    #[test]
    fn a_recipient_leaves_if_too_much_waits_or_its_follower_gives_up() {
        let (calls, recipient) = recipient();
        recipient.apply(&records(&[5], WAITING_BYTES_MAX - 512), Revision(5));
        assert!(!recipient.has_left());
        recipient.apply(&records(&[6, 7, 8, 9, 10, 11], 1), Revision(11));
        assert!(recipient.has_left() && recipient.ends_reading());
        assert_eq!(recipient.serve(Revision(4)), Err(Revision(4)));
        assert_eq!(*calls.0.lock(), [""; 0]);

        let (calls, recipient) = self::recipient();
        recipient.give_up();
        assert!(recipient.has_left());

        let (_, served) = self::recipient();
        assert!(served.serve(Revision(4)).is_ok());
        served.give_up();
        assert!(!served.has_left());
        assert_eq!(*calls.0.lock(), [""; 0]);
    }
}
