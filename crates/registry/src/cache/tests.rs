//! Tests of the cache against a naive model, which holds every state in full and every change in
//! one list.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use pintle_store::{
    Change as StoreChange, Expect, Follower, Group, Key, Kind, Opening as _, Record, Revision,
    Template, Write,
};
use proptest::prelude::*;

use super::{Cache, Collection, Cursor, Head, Lagged, Scope, ScopedCursor};

/// One step of a history.
#[derive(Clone, Debug)]
enum Step {
    /// Writes an item; deletes it if it exists and `delete` is true.
    Write { item: u8, delete: bool },
    /// Trims the history up to `back` revisions before the newest.
    Trim { back: u64 },
    /// Reads the state `back` revisions before the newest, so that reconstructed states get cached.
    Recall { back: u64 },
    /// Lets objects share their field sets.
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u8..12, any::<bool>()).prop_map(|(item, delete)| Step::Write { item, delete }),
        1 => (0u64..20).prop_map(|back| Step::Trim { back }),
        2 => (0u64..20).prop_map(|back| Step::Recall { back }),
        1 => Just(Step::Settle),
    ]
}

/// The JSON of an item. Items of a namespace have the same field set.
fn json(revision: u64, item: &str) -> String {
    let namespace = item.split('/').next().unwrap_or_default();
    format!(
        r#"{{"metadata":{{"name":"{item}","managedFields":[{{"fieldsV1":{{"f:{namespace:->300}":{{}}}}}}]}},"is":"{item}@{revision}"}}"#
    )
}

fn record(revision: u64, item: &str, kind: Kind) -> Record {
    let (bytes, body) = Template::whole(json(revision, item).into_bytes()).fill(Revision(revision));
    let key = Key { collection: "things".into(), item: item.into() };
    Record { revision: Revision(revision), key, kind, bytes, body, note: None }
}

/// Applies records and makes the last one's revision the head.
fn apply(cache: &Cache, records: &[Record]) {
    cache.apply(records, records[records.len() - 1].revision);
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
    let snapshot = collection.snapshot_at(Revision(revision));
    let objects = snapshot.now_or_never().expect("an unwatched poll does not yield")?;
    for object in objects.iter() {
        assert_eq!(object.json(), json(object.revision.0, &object.item));
    }
    Some(objects.iter().map(|o| (o.item.to_string(), o.revision.0)).collect())
}

fn settle(cache: &Cache) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().build().expect("no driver is needed");
    runtime.block_on(cache.settle());
}

fn changes_after(
    collection: &Arc<Collection>,
    revision: u64,
) -> Result<Vec<(u64, Option<u64>)>, Lagged> {
    let mut cursor = Cursor::after(collection.clone(), Revision(revision))?;
    let mut changes = Vec::new();
    while !cursor.caught_up() {
        for change in cursor.take()? {
            changes
                .push((change.object.revision.0, change.previous.as_ref().map(|p| p.revision.0)));
        }
    }
    Ok(changes)
}

proptest! {
    /// Past states and cursors agree with the model at every revision since the floor. Below the
    /// floor both fail.
    #[test]
    fn past_states_and_cursors_agree_with_the_model(steps in prop::collection::vec(step(), 1..120)) {
        let cache = Cache::new(Revision(0), usize::MAX);
        let collection = cache.collection(&"things".into());
        let mut model = Model { states: vec![State::new()], ..Model::default() };
        for step in steps {
            match step {
                Step::Write { item, delete } => apply(&cache, &[model.write(item, delete)]),
                Step::Trim { back } => {
                    model.floor = model.floor.max(model.head().saturating_sub(back));
                    cache.trim(Head { revision: Revision(model.floor), ..cache.head() });
                }
                Step::Recall { back } => {
                    let _ = state_at(&collection, model.head().saturating_sub(back));
                }
                Step::Settle => settle(&cache),
            }
        }
        for revision in 0..=model.head() {
            let state = state_at(&collection, revision);
            let changes = changes_after(&collection, revision);
            if revision < model.floor {
                prop_assert_eq!(state, None);
                prop_assert!(changes.is_err());
                continue;
            }
            prop_assert_eq!(state.as_ref(), Some(&model.states[revision as usize]));
            let expected: Vec<_> = model.records.iter().filter(|r| r.revision.0 > revision)
                .map(|r| {
                    let before = &model.states[r.revision.0 as usize - 1];
                    (r.revision.0, before.get(&*r.key.item).copied())
                })
                .collect();
            prop_assert_eq!(changes.expect("after the floor"), expected);
        }
        prop_assert_eq!(cache.visible().0, model.head());
    }
}

/// One step of a history that watches of scopes follow.
#[derive(Clone, Debug)]
enum Followed {
    Write(u8, bool),
    Trim(u64),
    Dispatch,
    /// Opens a watch of a namespace, of a name, of both or of everything, from a number of revisions
    /// ago.
    Open(Option<u8>, Option<u8>, u64),
    /// Lets one of the watches read.
    Read(usize),
    /// Closes one of the watches.
    Close(usize),
}

fn followed() -> impl Strategy<Value = Followed> {
    prop_oneof![
        8 => (0u8..12, any::<bool>()).prop_map(|(item, delete)| Followed::Write(item, delete)),
        1 => (0u64..20).prop_map(Followed::Trim),
        3 => Just(Followed::Dispatch),
        3 => (prop::option::of(0u8..3), prop::option::of(0u8..12), 0u64..10)
            .prop_map(|(namespace, item, back)| Followed::Open(namespace, item, back)),
        4 => any::<usize>().prop_map(Followed::Read),
        1 => any::<usize>().prop_map(Followed::Close),
    ]
}

/// A watch of a scope, and the revisions that it has read.
struct Follow {
    cursor: ScopedCursor,
    scope: Scope,
    begin: u64,
    read: Vec<u64>,
    lagged: bool,
}

impl Follow {
    /// Whether an item is in the scope.
    fn concerns(&self, item: &str) -> bool {
        let (namespace, name) = item.split_once('/').expect("all items have a namespace");
        match &self.scope {
            Scope::Collection => true,
            Scope::Namespace(wanted) => namespace == wanted,
            Scope::Name(wanted) => name == wanted,
            Scope::Item(wanted) => item == &**wanted,
            Scope::Field(..) => unreachable!("no watch is opened for a field"),
        }
    }

    fn read(&mut self) {
        while !self.lagged {
            match self.cursor.take() {
                Ok(changes) if changes.is_empty() => return,
                Ok(changes) => {
                    let concerned = changes.iter().filter(|c| self.concerns(&c.object.item));
                    let revisions = concerned.map(|change| change.object.revision.0);
                    let revisions: Vec<_> = revisions.collect();
                    self.read.extend(revisions);
                }
                Err(Lagged) => self.lagged = true,
            }
        }
    }
}

proptest! {
    /// The watch of a scope reads every change in it, once and in order. It must list again only if
    /// the log was trimmed past its position.
    #[test]
    fn a_scope_has_all_changes_of_the_log_that_concern_it(
        steps in prop::collection::vec(followed(), 1..150),
    ) {
        let cache = Cache::new(Revision(0), usize::MAX);
        let collection = cache.collection(&"things".into());
        let mut model = Model { states: vec![State::new()], ..Model::default() };
        let mut follows: Vec<Follow> = Vec::new();
        for step in steps {
            let one = |at: usize| at.checked_rem(follows.len());
            match step {
                Followed::Write(item, delete) => apply(&cache, &[model.write(item, delete)]),
                Followed::Trim(back) => {
                    model.floor = model.floor.max(model.head().saturating_sub(back));
                    cache.trim(Head { revision: Revision(model.floor), ..cache.head() });
                }
                Followed::Dispatch => drop(collection.dispatch()),
                Followed::Open(namespace, item, back) => {
                    let begin = model.head().saturating_sub(back).max(model.floor);
                    let cursor = Cursor::after(collection.clone(), Revision(begin)).expect("the log has it");
                    let namespace = namespace.map(|namespace| format!("ns{namespace}"));
                    let name = item.map(|item| format!("x{item}"));
                    let scope = match (namespace, name) {
                        (Some(namespace), Some(name)) => Scope::Item(format!("{namespace}/{name}").into()),
                        (Some(namespace), None) => Scope::Namespace(namespace.as_str().into()),
                        (None, Some(name)) => Scope::Name(name.as_str().into()),
                        (None, None) => Scope::Collection,
                    };
                    let cursor = ScopedCursor::new(cursor, scope.clone());
                    follows.push(Follow { cursor, scope, begin, read: vec![], lagged: false });
                }
                Followed::Read(at) => one(at).into_iter().for_each(|at| follows[at].read()),
                Followed::Close(at) => _ = one(at).map(|at| follows.swap_remove(at)),
            }
        }
        collection.dispatch();
        for mut follow in follows {
            follow.read();
            let concerned = model.records.iter().filter(|r| follow.concerns(&r.key.item));
            let revisions = concerned.map(|r| r.revision.0).filter(|r| *r > follow.begin);
            let expected: Vec<_> = revisions.collect();
            if follow.lagged {
                prop_assert!(expected.starts_with(&follow.read));
                let last = follow.read.last().copied().unwrap_or(follow.begin);
                prop_assert!(model.floor > last, "the log was not trimmed past {last}");
            } else {
                prop_assert_eq!(&follow.read, &expected);
                prop_assert!(follow.cursor.caught_up());
            }
        }
        prop_assert!(collection.topics.lock().is_empty(), "a topic ends with its last watch");
    }
}

/// The changes of a lost history reached no topic, so all watches must list again, even idle ones.
#[test]
fn watches_of_scopes_list_again_after_a_lost_history() {
    let cache = Cache::new(Revision(0), usize::MAX);
    apply(&cache, &[record(1, "ns/a", Kind::Created)]);
    let collection = cache.collection(&"things".into());
    let cursor = Cursor::after(collection.clone(), Revision(1)).expect("the log has it");
    let mut idle = ScopedCursor::new(cursor, Scope::Namespace("other".into()));
    cache.reset(&[record(3, "ns/a", Kind::Created)], Revision(4));
    assert!(!idle.caught_up(), "no bookmark is sent while changes may be missing");
    assert!(idle.take().is_err());
}

#[test]
fn a_log_over_its_bound_is_trimmed_and_only_slow_cursors_lag() {
    let cache = Cache::new(Revision(0), 1600);
    let collection = cache.collection(&"things".into());
    let mut slow = Cursor::after(collection.clone(), Revision(0)).expect("the log is complete");
    for revision in 1..=100 {
        apply(
            &cache,
            &[record(revision, "x", if revision == 1 { Kind::Created } else { Kind::Updated })],
        );
    }
    assert!(slow.take().is_err());
    assert!(Cursor::after(collection.clone(), Revision(1)).is_err());
    let changes = changes_after(&collection, 98).expect("the newest changes are in the log");
    assert_eq!(changes, [(99, Some(98)), (100, Some(99))]);
}

/// A disconnected watcher that resumes after the last revision that it saw misses nothing, even
/// between two writes of one group.
#[tokio::test]
async fn a_watcher_that_resumes_within_a_group_misses_nothing() {
    let cache = Arc::new(Cache::new(Revision(0), usize::MAX));
    let store = pintle_store::memory(u64::MAX).expect("a store in memory opens");
    let store = Box::new(store).read_to(cache.clone()).await.expect("an empty store opens");
    let write = |collection: &str, item: &str| Write {
        key: Key { collection: collection.into(), item: item.into() },
        expect: Expect::Absent,
        change: StoreChange::Put(Template::whole(item.into())),
        note: None,
    };
    let rest = vec![write("things", "b"), write("others", "c"), write("things", "d")];
    let group = Group { first: write("things", "a"), rest, unchanged: Vec::new() };
    store.commit(group).await.expect("all keys are new");
    let collection = cache.collection(&"things".into());
    let all = changes_after(&collection, 0).expect("the log is complete");
    assert_eq!(all.len(), 3);
    for seen in 1..=all.len() {
        let last = all[seen - 1].0;
        assert_eq!(
            changes_after(&collection, last).expect("the log has it"),
            all[seen..],
            "after {last}"
        );
    }
}

#[test]
fn the_state_at_the_floor_is_not_in_the_log() {
    let cache = Cache::new(Revision(10), usize::MAX);
    apply(&cache, &[record(3, "a", Kind::Created), record(7, "b", Kind::Updated)]);
    apply(&cache, &[record(11, "a", Kind::Updated)]);
    let collection = cache.collection(&"things".into());
    assert_eq!(state_at(&collection, 9), None);
    assert_eq!(state_at(&collection, 10), Some([("a".into(), 3), ("b".into(), 7)].into()));
    assert_eq!(changes_after(&collection, 10).expect("from the floor on"), [(11, Some(3))]);
}

#[tokio::test]
async fn a_waiting_cursor_wakes_for_the_next_change() {
    let cache = Arc::new(Cache::new(Revision(0), usize::MAX));
    cache.start_dispatcher();
    for scope in [Scope::Collection, Scope::Namespace("ns".into()), Scope::Item("ns/a".into())] {
        let cursor = Cursor::after(cache.collection(&"things".into()), cache.visible());
        let mut cursor = ScopedCursor::new(cursor.expect("nothing is forgotten"), scope);
        let waiting =
            tokio::spawn(async move { cursor.next().await.expect("the log has it").len() });
        tokio::task::yield_now().await;
        apply(&cache, &[record(cache.visible().0 + 1, "ns/a", Kind::Updated)]);
        assert_eq!(waiting.await.expect("no panic"), 1);
    }
}

/// A collection with many watches is dispatched at intervals. The end of an interval dispatches all
/// changes that were made in it. The intervals are longer while each has several changes.
#[tokio::test(start_paused = true)]
async fn changes_within_an_interval_are_dispatched_at_its_end() {
    let cache = Arc::new(Cache::new(Revision(0), usize::MAX));
    cache.start_dispatcher();
    let collection = cache.collection(&"things".into());
    let cursor = || Cursor::at(collection.clone(), 0);
    let idle: Vec<_> =
        (0..1_000).map(|_| ScopedCursor::new(cursor(), Scope::Namespace("ns".into()))).collect();
    let mut watch = ScopedCursor::new(cursor(), Scope::Namespace("ns".into()));
    let mut at = Vec::new();
    let start = tokio::time::Instant::now();
    for revisions in [1..=1, 2..=2, 3..=4, 5..=6, 7..=8, 9..=9, 10..=10] {
        for revision in revisions.clone() {
            apply(&cache, &[record(revision, "ns/a", Kind::Updated)]);
        }
        let changes = watch.next().await.expect("the log has it");
        assert_eq!(changes.len() as u64, revisions.end() - revisions.start() + 1);
        at.push(start.elapsed());
    }
    assert_eq!(at[0], Duration::ZERO, "the first change waits for nothing");
    let passed: Vec<_> = at.windows(2).map(|at| at[1] - at[0]).collect();
    for (passed, least) in passed.iter().zip([10, 10, 20, 40, 40, 20]) {
        let least = Duration::from_millis(least);
        assert!((least..least + Duration::from_millis(5)).contains(passed), "{at:?}");
    }
    drop(idle);
}

#[test]
fn a_changed_collection_is_reported_once() {
    let cache = Cache::new(Revision(0), usize::MAX);
    for (revision, collection) in [(1, "things"), (2, "others"), (3, "things")] {
        let mut record = record(revision, "a", Kind::Updated);
        record.key.collection = collection.into();
        apply(&cache, &[record]);
    }
    let changed = |since: u64| -> Vec<String> {
        let since = Head { revision: Revision(since), ..Head::default() };
        let names = cache.changed_since(since);
        names.iter().map(ToString::to_string).collect()
    };
    assert_eq!(changed(0), ["others", "things"]);
    assert_eq!(changed(2), ["things"]);
    assert!(changed(3).is_empty());
}

/// A deletion by another process has no value: the event carries the last cached state.
#[test]
fn a_deletion_without_a_value_carries_the_last_state() {
    let cache = Cache::new(Revision(0), usize::MAX);
    let json = r#"{"kind":"Thing","metadata":{"name":"a","resourceVersion":"1"},"data":{"x":"y"}}"#;
    let mut made = record(1, "a", Kind::Created);
    (made.bytes, made.body) = (json.into(), 0..json.len());
    apply(&cache, &[made]);
    let mut gone = record(5, "a", Kind::Deleted);
    (gone.bytes, gone.body) = (Bytes::new(), 0..0);
    let mut unknown = gone.clone();
    (unknown.revision, unknown.key.item) = (Revision(6), "b".into());
    apply(&cache, &[gone, unknown]);
    let collection = cache.collection(&"things".into());
    assert_eq!(state_at(&collection, 6), Some(State::new()));
    let mut cursor = Cursor::after(collection, Revision(1)).expect("the log has it");
    let changes = cursor.take().expect("the log has it");
    assert_eq!(changes.len(), 1, "the deletion of an unknown object is no event");
    assert_eq!(changes[0].object.kind(), Kind::Deleted);
    let expected = json.replace(r#""resourceVersion":"1""#, r#""resourceVersion":"5""#);
    assert_eq!(changes[0].object.json(), expected);
}

/// After a loss of history readers see the new state, cursors lag, and every collection counts as
/// changed, even if revisions went back.
#[test]
fn a_reset_replaces_the_state_of_all_collections() {
    let cache = Cache::new(Revision(0), usize::MAX);
    let mut other = record(8, "c", Kind::Created);
    other.key.collection = "others".into();
    apply(&cache, &[record(7, "a", Kind::Created), other, record(9, "b", Kind::Created)]);
    let collection = cache.collection(&"things".into());
    let mut cursor = Cursor::after(collection.clone(), Revision(9)).expect("the log has it");
    let before = cache.head();
    cache.reset(&[record(3, "b", Kind::Created)], Revision(4));
    assert!(cache.head() > before, "a head never goes back");
    assert_eq!(cache.visible(), Revision(4));
    assert_eq!(state_at(&collection, 4), Some([("b".into(), 3)].into()));
    assert_eq!(state_at(&cache.collection(&"others".into()), 4), Some(State::new()));
    assert!(cursor.take().is_err(), "the changes in between are lost");
    let changed: Vec<_> = cache.changed_since(before);
    assert_eq!(changed.iter().map(|name| &**name).collect::<Vec<_>>(), ["others", "things"]);
    apply(&cache, &[record(5, "b", Kind::Updated)]);
    assert_eq!(changes_after(&collection, 4).expect("the log has it"), [(5, Some(3))]);
}

/// A reader may reconstruct a state while the history is lost.
#[test]
fn a_state_of_a_lost_history_is_not_cached() {
    let cache = Cache::new(Revision(0), usize::MAX);
    apply(&cache, &[record(7, "a", Kind::Created), record(8, "a", Kind::Deleted)]);
    let collection = cache.collection(&"things".into());
    let end = collection.end();
    let recalled = collection.recall(end, Revision(4), &[record(4, "old", Kind::Created)]);
    assert_eq!(state_at(&collection, 4), Some([("old".into(), 4)].into()), "it is cached");
    let records = [record(3, "new", Kind::Created)];
    cache.reset(&records, Revision(4));
    assert_eq!(recalled.len(), 1);
    collection.recall(end, Revision(4), &[record(4, "old", Kind::Created)]);
    assert_eq!(state_at(&collection, 4), Some([("new".into(), 3)].into()));
}

/// The history may be lost after the floor of a trim was chosen.
#[test]
fn a_floor_of_a_lost_history_trims_nothing() {
    let cache = Cache::new(Revision(0), usize::MAX);
    apply(&cache, &[record(7, "a", Kind::Created)]);
    let floor = cache.head();
    cache.reset(&[record(3, "a", Kind::Created)], Revision(4));
    apply(&cache, &[record(5, "a", Kind::Updated)]);
    cache.trim(floor);
    let [old, new] = ["things", "others"].map(|name| cache.collection(&name.into()));
    assert_eq!(changes_after(&old, 4).expect("the log has it"), [(5, Some(3))]);
    assert!(Cursor::after(new, Revision(4)).is_ok());
}

/// The head may advance without a change.
#[tokio::test]
async fn a_head_without_records_wakes_readers() {
    let cache = Cache::new(Revision(0), usize::MAX);
    cache.apply(&[], Revision(7));
    assert!(cache.wait_for(Revision(7), Duration::from_secs(3)).await);
    assert_eq!(cache.visible(), Revision(7));
}

/// Objects share their field sets when they have left the log; the first one keeps its own.
#[test]
fn objects_that_left_the_log_share_their_field_sets() {
    let cache = Cache::new(Revision(0), usize::MAX);
    let items = ["ns/a", "ns/b", "ns/c", "ns/d"];
    for (revision, item) in (1..).zip(items) {
        apply(&cache, &[record(revision, item, Kind::Created)]);
    }
    apply(&cache, &[record(5, "ns/d", Kind::Updated)]);
    let collection = cache.collection(&"things".into());
    let abridged = || {
        let is_short = |item: &&str| {
            let object = collection.get(item).expect("the item exists");
            assert_eq!(object.json(), json(object.revision.0, &object.item));
            object.abridged().len() < object.json().len()
        };
        items.into_iter().filter(is_short).collect::<Vec<_>>()
    };
    let before = collection.extent();
    settle(&cache);
    assert!(abridged().is_empty(), "all are in the log");
    cache.trim(Head::new(0, Revision(4)));
    settle(&cache);
    assert_eq!(abridged(), ["ns/b", "ns/c"]);
    assert_eq!(collection.extent().bytes, before.bytes);
    cache.trim(Head::new(0, Revision(5)));
    settle(&cache);
    assert_eq!(abridged(), ["ns/b", "ns/c", "ns/d"]);
    let records: Vec<_> =
        (1..).zip(items).map(|(at, item)| record(at, item, Kind::Created)).collect();
    cache.reset(&records, Revision(9));
    assert!(abridged().is_empty());
    settle(&cache);
    assert_eq!(abridged(), items, "the set is known already");
    let opened = Cache::new(Revision(4), usize::MAX);
    records.iter().for_each(|record| apply(&opened, std::slice::from_ref(record)));
    settle(&opened);
    let lengths = items.map(|item| {
        let object = opened.collection(&"things".into()).get(item).expect("the item exists");
        object.abridged().len() < object.size()
    });
    assert_eq!(lengths, [false, true, true, true], "all are older than the history");
}
