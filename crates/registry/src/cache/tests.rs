//! The cache against a naive model: every state kept in full, every change in one list.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_store::{
    Change as StoreChange, Expect, Follower, Group, Key, Kind, Record, Revision, Template, Write,
};
use proptest::prelude::*;

use super::{Cache, Collection, Cursor, Lagged};

/// One step of a history.
#[derive(Clone, Debug)]
enum Step {
    /// Writes an item, or deletes it if it is there and the flag says so.
    Write { item: u8, delete: bool },
    /// Forgets history up to so many revisions before the newest.
    Trim { back: u64 },
    /// Asks for the state so many revisions back, so that worked-out states get remembered.
    Recall { back: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u8..12, any::<bool>()).prop_map(|(item, delete)| Step::Write { item, delete }),
        1 => (0u64..20).prop_map(|back| Step::Trim { back }),
        2 => (0u64..20).prop_map(|back| Step::Recall { back }),
    ]
}

fn record(revision: u64, item: &str, kind: Kind) -> Record {
    let (bytes, body) =
        Template::whole(format!("{item}@{revision}").into_bytes()).fill(Revision(revision));
    let key = Key { collection: "things".into(), item: item.into() };
    Record { revision: Revision(revision), key, kind, bytes, body, note: None }
}

type State = BTreeMap<String, u64>;

#[derive(Default)]
struct Model {
    /// The state after each revision, from revision 0 on.
    states: Vec<State>,
    records: Vec<Record>,
    floor: u64,
}

impl Model {
    fn head(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    fn write(&mut self, item: u8, delete: bool) -> Record {
        let item = format!("ns{}/x{item}", item % 3);
        let mut state = self.states.last().cloned().unwrap_or_default();
        let revision = self.states.len() as u64;
        let kind = match (state.contains_key(&item), delete) {
            (true, true) => Kind::Deleted,
            (true, false) => Kind::Updated,
            (false, _) => Kind::Created,
        };
        match kind {
            Kind::Deleted => state.remove(&item),
            Kind::Created | Kind::Updated => state.insert(item.clone(), revision),
        };
        self.states.push(state);
        let record = record(revision, &item, kind);
        self.records.push(record.clone());
        record
    }
}

fn state_at(collection: &Collection, revision: u64) -> Option<State> {
    let objects = collection.snapshot_at(Revision(revision))?;
    Some(objects.iter().map(|(item, o)| (item.to_string(), o.revision.0)).collect())
}

fn changes_after(
    collection: &Arc<Collection>,
    revision: u64,
) -> Result<Vec<(u64, Option<u64>)>, Lagged> {
    let mut cursor = Cursor::after(collection.clone(), Revision(revision))?;
    let mut told = Vec::new();
    while !cursor.caught_up() {
        for change in cursor.take()? {
            told.push((change.object.revision.0, change.previous.as_ref().map(|p| p.revision.0)));
        }
    }
    Ok(told)
}

proptest! {
    /// Exact states and cursors agree with the model at every revision since the floor, and below the
    /// floor both say that it is gone.
    #[test]
    fn history_is_what_happened(steps in prop::collection::vec(step(), 1..120)) {
        let cache = Cache::new(Revision(0), usize::MAX);
        let collection = cache.collection(&"things".into());
        let mut model = Model { states: vec![State::new()], ..Model::default() };
        for step in steps {
            match step {
                Step::Write { item, delete } => cache.apply(&[model.write(item, delete)]),
                Step::Trim { back } => {
                    model.floor = model.floor.max(model.head().saturating_sub(back));
                    cache.trim(Revision(model.floor));
                }
                Step::Recall { back } => {
                    let _ = state_at(&collection, model.head().saturating_sub(back));
                }
            }
        }
        for revision in 0..=model.head() {
            let state = state_at(&collection, revision);
            let told = changes_after(&collection, revision);
            if revision < model.floor {
                prop_assert_eq!(state, None);
                prop_assert!(told.is_err());
                continue;
            }
            prop_assert_eq!(state.as_ref(), Some(&model.states[revision as usize]));
            let expected: Vec<_> = model.records.iter().filter(|r| r.revision.0 > revision)
                .map(|r| {
                    let before = &model.states[r.revision.0 as usize - 1];
                    (r.revision.0, before.get(&*r.key.item).copied())
                })
                .collect();
            prop_assert_eq!(told.expect("after the floor"), expected);
        }
        prop_assert_eq!(cache.visible().0, model.head());
    }
}

#[test]
fn a_log_over_its_bound_forgets_its_beginning_and_only_slow_cursors_notice() {
    let cache = Cache::new(Revision(0), 600);
    let collection = cache.collection(&"things".into());
    let mut slow =
        Cursor::after(collection.clone(), Revision(0)).expect("nothing is forgotten yet");
    for revision in 1..=100 {
        cache.apply(&[record(
            revision,
            "x",
            if revision == 1 { Kind::Created } else { Kind::Updated },
        )]);
    }
    assert!(slow.take().is_err());
    assert!(Cursor::after(collection.clone(), Revision(1)).is_err());
    let told = changes_after(&collection, 98).expect("the newest changes are kept");
    assert_eq!(told, [(99, Some(98)), (100, Some(99))]);
}

/// Wherever a watcher of a collection is cut off, also between two writes that were committed together,
/// it misses nothing when it goes on from the last revision that it was told.
#[tokio::test]
async fn a_watcher_that_is_cut_off_within_a_group_misses_nothing() {
    let cache = Arc::new(Cache::new(Revision(0), usize::MAX));
    let store = pintle_store::memory(u64::MAX).expect("memory is to be had");
    let store = store.read_to(cache.clone()).await.expect("nothing is in it");
    let write = |collection: &str, item: &str| Write {
        key: Key { collection: collection.into(), item: item.into() },
        expect: Expect::Absent,
        change: StoreChange::Put(Template::whole(item.into())),
        note: None,
    };
    let rest = vec![write("things", "b"), write("others", "c"), write("things", "d")];
    let group = Group { first: write("things", "a"), rest, unchanged: Vec::new() };
    store.commit_together(group).await.expect("all keys are new");
    let collection = cache.collection(&"things".into());
    let all = changes_after(&collection, 0).expect("nothing is forgotten");
    assert_eq!(all.len(), 3);
    for seen in 1..=all.len() {
        let last = all[seen - 1].0;
        assert_eq!(changes_after(&collection, last).expect("kept"), all[seen..], "after {last}");
    }
}

#[test]
fn state_at_the_floor_is_not_history() {
    let cache = Cache::new(Revision(10), usize::MAX);
    cache.apply(&[record(3, "a", Kind::Created), record(7, "b", Kind::Updated)]);
    cache.apply(&[record(11, "a", Kind::Updated)]);
    let collection = cache.collection(&"things".into());
    assert_eq!(state_at(&collection, 9), None);
    assert_eq!(state_at(&collection, 10), Some([("a".into(), 3), ("b".into(), 7)].into()));
    assert_eq!(changes_after(&collection, 10).expect("from the floor on"), [(11, Some(3))]);
}

#[tokio::test]
async fn a_waiting_cursor_wakes_for_the_next_change() {
    let cache = Arc::new(Cache::new(Revision(0), usize::MAX));
    let mut cursor = Cursor::at(cache.collection(&"things".into()), 0);
    let waiting = tokio::spawn(async move { cursor.next().await.expect("kept").len() });
    tokio::task::yield_now().await;
    cache.apply(&[record(1, "a", Kind::Created)]);
    assert_eq!(waiting.await.expect("no panic"), 1);
}

#[test]
fn a_collection_that_changed_is_told_once() {
    let cache = Cache::new(Revision(0), usize::MAX);
    for (revision, collection) in [(1, "things"), (2, "others"), (3, "things")] {
        let mut record = record(revision, "a", Kind::Updated);
        record.key.collection = collection.into();
        cache.apply(&[record]);
    }
    let changed = |since: u64| -> Vec<String> {
        let names = cache.changed_since(Revision(since));
        names.iter().map(ToString::to_string).collect()
    };
    assert_eq!(changed(0), ["others", "things"]);
    assert_eq!(changed(2), ["things"]);
    assert!(changed(3).is_empty());
}
