//! The conformance suite of stores; [`crate::conformance!`] runs it on a store of another crate.
//!
//! Each case starts on an empty store whose head and floor are 0. [`Rebased`] adapts a store that
//! starts at another revision.

#![expect(clippy::unwrap_used, reason = "these are tests")]

pub(crate) mod fixtures;
mod rebased;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use parking_lot::Mutex;

use crate::{
    At, Change, Error, Expect, Follower, Group, Key, Kind, Record, Revision, Store, Template, Write,
};
use fixtures::*;
pub use rebased::Rebased;

/// Commits single writes, as tests do.
pub trait CommitOne: Store {
    /// Commits a group of one write.
    fn commit_one(&self, write: Write) -> impl Future<Output = Result<Record, Error>> + Send {
        let group = Group { first: write, rest: Vec::new(), unchanged: Vec::new() };
        let records = self.commit(group);
        async { records.await.map(|mut records| records.remove(0)) }
    }
}

impl<S: Store + ?Sized> CommitOne for S {}

/// Runs each case on its own store, on a multi-threaded runtime. The block makes the store and a
/// guard that lives as long, or `None` after it printed why it cannot.
#[macro_export]
macro_rules! conformance {
    ($make:block) => {
        $crate::conformance_cases! { $make
            revisions_are_shared_by_all_collections
            a_write_needs_the_expected_revision
            a_conflict_has_the_current_record
            a_group_is_committed_as_a_whole_or_not_at_all
            a_group_needs_its_unchanged_keys
            no_group_outlives_a_deleted_precondition
            a_shared_key_is_taken_once
            the_revision_fills_the_hole
            a_note_is_for_followers_only
            an_acknowledged_write_is_visible
            past_states_can_be_read
            lists_are_selected_by_prefix_and_ordered
            compacted_and_future_revisions_cannot_be_read
            followers_see_state_then_history_then_the_rest
            followers_miss_nothing_while_others_write
            followers_miss_nothing_during_compaction
            compaction_waits_for_a_slow_follower
            compaction_drops_past_states
            compaction_below_the_floor_does_nothing
            one_of_many_writers_wins
            a_cancelled_write_harms_no_other
            more_writes_than_fit_one_batch
            a_closed_store_takes_no_writes
        }
    };
}

/// Defines one test per case.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ($make:block $($case:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $case() {
            let made: Option<(std::sync::Arc<dyn $crate::Store>, _)> = $make;
            if let Some((store, _guard)) = made {
                $crate::conformance::$case(store).await;
            }
        })*
    };
}

pub async fn revisions_are_shared_by_all_collections(store: Arc<dyn Store>) {
    assert_eq!((store.head(), store.floor()), (Revision(0), Revision(0)));
    for n in 1..=10 {
        let key = Key { collection: format!("c{}", n % 3).into(), item: n.to_string().into() };
        let record = store.commit_one(write(key, Expect::Absent, Change::Put(whole("x")))).await;
        assert_eq!(record.unwrap().revision, Revision(n));
        assert_eq!(store.head(), Revision(n));
    }
    let refused =
        store.commit_one(create("a", "1")).await.and(store.commit_one(create("a", "2")).await);
    assert!(refused.is_err());
    let next = store.commit_one(create("b", "1")).await.unwrap();
    assert_eq!(next.revision, Revision(12), "a refused write takes no revision");
}

pub async fn a_write_needs_the_expected_revision(store: Arc<dyn Store>) {
    let delete_absent =
        |item| write(key(item), Expect::Absent, Change::Delete(whole("no such thing")));
    let rows = [
        (create("a", "1"), "1 Created a=1"),
        (create("a", "2"), "conflict: 1 Created a=1"),
        (update("a", 0, "2"), "conflict: 1 Created a=1"),
        (update("a", 2, "2"), "conflict: 1 Created a=1"),
        (update("a", 1, "2"), "2 Updated a=2"),
        (update("a", 1, "3"), "conflict: 2 Updated a=2"),
        (delete("a", 1, "2"), "conflict: 2 Updated a=2"),
        (delete_absent("a"), "conflict: 2 Updated a=2"),
        (delete_absent("b"), "conflict: absent"),
        (update("b", 0, "1"), "conflict: absent"),
        (update("b", 2, "1"), "conflict: absent"),
        (delete("b", 2, "1"), "conflict: absent"),
        (delete("a", 2, "2"), "3 Deleted a=2"),
        (delete("a", 3, "2"), "conflict: absent"),
        (update("a", 3, "2"), "conflict: absent"),
        (create("a", "4"), "4 Created a=4"),
        (delete("a", 4, ""), "5 Deleted a="),
    ];
    for (write, expected) in rows {
        assert_eq!(outcome(store.commit_one(write).await), expected);
    }
}

pub async fn a_conflict_has_the_current_record(store: Arc<dyn Store>) {
    let template = Template::framed(b"<{}>".to_vec(), 1..3, None);
    let framed = write(key("a"), Expect::Absent, Change::Put(template));
    let current = store.commit_one(framed).await.unwrap();
    let Err(Error::Conflict { current: Some(found) }) = store.commit_one(create("a", "2")).await
    else {
        panic!("a conflict");
    };
    assert_eq!(*found, current);
    assert_eq!(&found.value()[..], b"{}");
}

/// Each key has its own collection, because the writes of a group may share a revision.
pub async fn a_group_is_committed_as_a_whole_or_not_at_all(store: Arc<dyn Store>) {
    /// Replaced by the key's current revision; other numbers are used as they are.
    const NOW: u64 = 1 << 40;
    let rows = [
        (create("a", "1"), vec![create("b", "1"), create("c", "1")], "Created a=1"),
        (create("a", "2"), vec![create("d", "1")], "conflict: Created a=1"),
        (create("d", "1"), vec![create("e", "1"), create("b", "2")], "b in things-b was written"),
        (update("a", NOW, "2"), vec![delete("b", NOW, "1"), update("c", NOW, "2")], "Updated a=2"),
        (delete("a", NOW, "2"), vec![delete("c", 1, "2")], "c in things-c was written"),
        (create("f", "1"), vec![], "Created f=1"),
    ];
    for (first, rest, expected) in rows {
        let mut writes = Vec::new();
        for mut write in std::iter::once(first).chain(rest) {
            write.key.collection = format!("things-{}", write.key.item).into();
            if write.expect == Expect::At(Revision(NOW)) {
                let current = store.get(&write.key, At::Head).await.unwrap();
                write.expect = Expect::At(current.expect("there is one").revision);
            }
            writes.push(write);
        }
        let items: Vec<_> = writes.iter().map(|write| write.key.item.clone()).collect();
        let group = Group { first: writes.remove(0), rest: writes, unchanged: Vec::new() };
        let committed = store.commit(group).await;
        if let Ok(records) = &committed {
            assert!(records.iter().map(|record| &record.key.item).eq(&items), "in their order");
        }
        let outcome = outcome(first_of(committed)).replace(|c: char| c.is_ascii_digit(), "#");
        let expected = expected.replace(|c: char| c.is_ascii_digit(), "#");
        let outcome = outcome.replace("# ", "").replace("conflict: #", "conflict: ");
        assert!(outcome.starts_with(&expected), "{outcome}, expected {expected}");
    }
    let mut all = Vec::new();
    for item in ["a", "b", "c", "d", "e", "f"] {
        let listed = store.list(&format!("things-{item}"), "", At::Head).await.unwrap();
        all.extend(listed.iter().map(|r| (item, String::from_utf8_lossy(&r.value()).into_owned())));
    }
    assert_eq!(all, [("a", "2"), ("c", "2"), ("f", "1")].map(|(i, v)| (i, v.to_owned())));
}

pub(crate) fn first_of(records: Result<Vec<Record>, Error>) -> Result<Record, Error> {
    records.map(|records| records.into_iter().next().expect("a record for each write"))
}

/// A group is committed only if the keys in `unchanged` are at their revisions; these keys are not
/// written.
pub async fn a_group_needs_its_unchanged_keys(store: Arc<dyn Store>) {
    let depending = |first, unchanged: &[(&str, u64)]| {
        let unchanged = unchanged.iter().map(|(item, at)| (key(item), Revision(*at))).collect();
        Group { first, rest: Vec::new(), unchanged }
    };
    let changed = |item: &str| format!("{item} in things was written at another revision");
    store.commit_one(create("home", "1")).await.unwrap();
    for (group, expected) in [
        (depending(create("a", "1"), &[("home", 1)]), "2 Created a=1".to_owned()),
        (depending(create("b", "1"), &[("home", 2)]), changed("home")),
        (depending(create("b", "1"), &[("nowhere", 1)]), changed("nowhere")),
        (depending(create("b", "1"), &[("home", 1), ("a", 1)]), changed("a")),
        (depending(create("a", "2"), &[("home", 1)]), "conflict: 2 Created a=1".to_owned()),
        (depending(update("home", 1, "2"), &[("home", 1)]), "3 Updated home=2".to_owned()),
        (depending(create("b", "1"), &[("home", 1)]), changed("home")),
        (depending(create("b", "1"), &[("home", 3)]), "4 Created b=1".to_owned()),
        (depending(delete("home", 3, "2"), &[]), "5 Deleted home=2".to_owned()),
        (depending(create("c", "1"), &[("home", 3)]), changed("home")),
        (depending(create("c", "1"), &[("home", 5)]), changed("home")),
    ] {
        assert_eq!(outcome(first_of(store.commit(group).await)), expected);
    }
}

/// A key is deleted while many groups depend on it: none is committed after the deletion.
pub async fn no_group_outlives_a_deleted_precondition(store: Arc<dyn Store>) {
    let home = store.commit_one(create("home", "1")).await.unwrap().revision;
    let movers: Vec<_> = (0..64)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let first = create(&format!("in/{n}"), "1");
                let unchanged = vec![(key("home"), home)];
                store.commit(Group { first, rest: Vec::new(), unchanged }).await.is_ok()
            })
        })
        .collect();
    let gone = store.commit_one(delete("home", home.0, "1")).await.unwrap().revision;
    let mut inside = 0;
    for mover in movers {
        inside += usize::from(mover.await.unwrap());
    }
    let all = store.list("things", "in/", At::Head).await.unwrap();
    assert_eq!(all.len(), inside);
    assert!(all.iter().all(|record| record.revision < gone), "{:?}", texts(&all));
}

/// Each of many groups creates one of a few shared keys together with its own key: no shared key is
/// created twice, and a group that gets none leaves nothing behind.
pub async fn a_shared_key_is_taken_once(store: Arc<dyn Store>) {
    let tasks: Vec<_> = (0..64)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                for slot in 0..16 {
                    let slot = create(&format!("slot/{}", (n + slot) % 16), "taken");
                    let own = create(&format!("own/{n}"), "has a slot");
                    let group = Group { first: own, rest: vec![slot], unchanged: Vec::new() };
                    match store.commit(group).await {
                        Ok(_) => return true,
                        Err(Error::CompanionConflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                false
            })
        })
        .collect();
    let mut winners = 0;
    for task in tasks {
        winners += usize::from(task.await.unwrap());
    }
    let count = async |prefix| store.list("things", prefix, At::Head).await.unwrap().len();
    assert_eq!((winners, count("own/").await, count("slot/").await), (16, 16, 16));
    assert_eq!(store.head(), Revision(32));
}

/// The number in the value is the revision in the store's own numbering.
pub async fn the_revision_fills_the_hole(store: Arc<dyn Store>) {
    let mut first = None;
    for n in 1..=11 {
        let bytes = br#"<{"rv":""}>"#.to_vec();
        let template = Template::framed(bytes, 1..10, Some(8));
        let item = n.to_string();
        let record =
            store.commit_one(write(key(&item), Expect::Absent, Change::Put(template))).await;
        let record = record.unwrap();
        let text = String::from_utf8(record.value().to_vec()).unwrap();
        let number: u64 = text[7..text.len() - 2].parse().unwrap();
        assert_eq!(number - record.revision.0, *first.get_or_insert(number - record.revision.0));
        assert_eq!(&record.bytes[..], format!("<{{\"rv\":\"{number}\"}}>").as_bytes());
        let stored = store.get(&key(&item), At::Head).await.unwrap().unwrap();
        assert_eq!(stored.value(), record.value());
        assert_eq!(stored.body, 0..stored.bytes.len(), "what is around the value is not stored");
    }
}

pub async fn a_note_is_for_followers_only(store: Arc<dyn Store>) {
    let note = |record: &Record| record.note.clone().and_then(|n| n.downcast::<u32>().ok());
    let seen = followed(&store).await;
    let record = store.commit_one(Write { note: Some(Arc::new(7u32)), ..create("a", "1") }).await;
    assert_eq!(note(&record.unwrap()).as_deref(), Some(&7));
    assert_eq!(note(&seen.0.lock()[0]).as_deref(), Some(&7));
    let stored = store.get(&key("a"), At::Head).await.unwrap().unwrap();
    assert!(stored.note.is_none());
}

pub async fn an_acknowledged_write_is_visible(store: Arc<dyn Store>) {
    let seen = followed(&store).await;
    let writers = (0..8).map(|writer| {
        let (store, seen) = (store.clone(), seen.clone());
        tokio::spawn(async move {
            for n in 0..50 {
                let record = store.commit_one(create(&format!("{writer}-{n}"), "1")).await.unwrap();
                assert!(store.head() >= record.revision);
                assert!(seen.0.lock().contains(&record));
                let found = store.get(&record.key, At::Head).await.unwrap();
                assert_eq!(found, Some(record));
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    seen.check_complete(Revision(0), Revision(400));
}

/// Writes: 1 a=1, 2 b=1, 3 a=2, 4 b deleted, 5 c=1, 6 a deleted, 7 b=2.
async fn write_history(store: &Arc<dyn Store>) {
    let writes = [
        create("a", "1"),
        create("b", "1"),
        update("a", 1, "2"),
        delete("b", 2, "1"),
        create("c", "1"),
        delete("a", 3, "2"),
        create("b", "2"),
    ];
    for write in writes {
        store.commit_one(write).await.unwrap();
    }
}

const HISTORY: [&str; 7] = [
    "1 Created a=1",
    "2 Created b=1",
    "3 Updated a=2",
    "4 Deleted b=1",
    "5 Created c=1",
    "6 Deleted a=2",
    "7 Created b=2",
];

/// The list after each revision of the history.
const STATES: [&[&str]; 8] = [
    &[],
    &["1 Created a=1"],
    &["1 Created a=1", "2 Created b=1"],
    &["3 Updated a=2", "2 Created b=1"],
    &["3 Updated a=2"],
    &["3 Updated a=2", "5 Created c=1"],
    &["5 Created c=1"],
    &["7 Created b=2", "5 Created c=1"],
];

async fn check_state(store: &Arc<dyn Store>, at: u64) {
    let at = At::Revision(Revision(at));
    let expected = STATES[if let At::Revision(r) = at { r.0 as usize } else { 7 }];
    let listed = store.list("things", "", at).await.unwrap();
    assert_eq!(texts(&listed), expected, "{at:?}");
    let mut got = Vec::new();
    for item in ["a", "b", "c", "d"] {
        got.extend(store.get(&key(item), at).await.unwrap());
    }
    assert_eq!(got, listed, "{at:?}");
}

pub async fn past_states_can_be_read(store: Arc<dyn Store>) {
    write_history(&store).await;
    for at in 0..=7 {
        check_state(&store, at).await;
    }
    let head = store.list("things", "", At::Head).await.unwrap();
    assert_eq!(texts(&head), STATES[7]);
}

pub async fn lists_are_selected_by_prefix_and_ordered(store: Arc<dyn Store>) {
    for item in ["b/1", "a", "a/2", "a/10", "a/1", "a-b/1", "ab/1", "a\u{fc}/1"] {
        store.commit_one(create(item, "x")).await.unwrap();
    }
    let other = Key { collection: "thing".into(), item: "a/3".into() };
    store.commit_one(write(other, Expect::Absent, Change::Put(whole("x")))).await.unwrap();
    let rows: [(&str, &str, &[&str]); 6] = [
        ("things", "a/", &["a/1", "a/10", "a/2"]),
        ("things", "a/1", &["a/1", "a/10"]),
        ("things", "", &["a", "a-b/1", "a/1", "a/10", "a/2", "ab/1", "a\u{fc}/1", "b/1"]),
        ("things", "c", &[]),
        ("thing", "", &["a/3"]),
        ("nothing", "", &[]),
    ];
    for (collection, prefix, expected) in rows {
        let listed = store.list(collection, prefix, At::Head).await.unwrap();
        let items: Vec<_> = listed.iter().map(|record| &*record.key.item).collect();
        assert_eq!(items, expected, "{collection} {prefix}");
    }
}

pub async fn compacted_and_future_revisions_cannot_be_read(store: Arc<dyn Store>) {
    write_history(&store).await;
    store.compact(Revision(4)).await.unwrap();
    let compacted =
        |requested| Error::Compacted { requested: Revision(requested), floor: Revision(4) };
    let future = |requested| Error::Future { requested: Revision(requested), head: Revision(7) };
    let rows = [(0, compacted(0)), (3, compacted(3)), (8, future(8)), (u64::MAX, future(u64::MAX))];
    for (at, expected) in rows {
        let at = At::Revision(Revision(at));
        assert_eq!(store.get(&key("a"), at).await, Err(expected.clone()));
        assert_eq!(store.list("things", "", at).await, Err(expected));
    }
    assert_eq!(store.compact(Revision(8)).await, Err(future(8)));
}

pub async fn followers_see_state_then_history_then_the_rest(store: Arc<dyn Store>) {
    let first = followed(&store).await;
    assert_eq!(first.texts(), [""; 0]);
    write_history(&store).await;
    let second = followed(&store).await;
    store.compact(Revision(5)).await.unwrap();
    let third = followed(&store).await;
    store.commit_one(update("b", 7, "3")).await.unwrap();

    let last = "8 Updated b=3";
    let all: Vec<_> = HISTORY.into_iter().chain([last]).collect();
    assert_eq!(first.texts(), all);
    assert_eq!(second.texts(), all);
    let later = ["3 Updated a=2", "5 Created c=1", "6 Deleted a=2", "7 Created b=2", last];
    assert_eq!(third.texts(), later);
}

/// Starts writers that write until `stop` is set.
fn start_writers(
    store: &Arc<dyn Store>,
    stop: &Arc<AtomicBool>,
) -> Vec<tokio::task::JoinHandle<()>> {
    let writer = |writer: usize| {
        let (store, stop) = (store.clone(), stop.clone());
        tokio::spawn(async move {
            let item = writer.to_string();
            let mut revision = 0;
            while !stop.load(Ordering::Relaxed) {
                let write = match revision {
                    0 => create(&item, "x"),
                    at if at % 5 == 0 => delete(&item, at, "x"),
                    at => update(&item, at, "y"),
                };
                let record = store.commit_one(write).await.unwrap();
                revision = if record.kind == Kind::Deleted { 0 } else { record.revision.0 };
            }
        })
    };
    (0..16).map(writer).collect()
}

/// Waits for some writes after a revision, and returns the head. Each follower gets every write, so
/// this bounds the number of followers, however fast they begin.
async fn advanced(store: &Arc<dyn Store>, since: Revision) -> Revision {
    const WRITES: u64 = 25;
    while store.head().0 < since.0 + WRITES {
        tokio::task::yield_now().await;
    }
    store.head()
}

pub async fn followers_miss_nothing_while_others_write(store: Arc<dyn Store>) {
    let stop = Arc::new(AtomicBool::new(false));
    let writers = start_writers(&store, &stop);
    let mut followers = Vec::new();
    let mut head = store.head();
    while head < Revision(3000) {
        followers.push(followed(&store).await);
        head = advanced(&store, head).await;
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    for follower in followers {
        follower.check_complete(Revision(0), store.head());
    }
}

pub async fn followers_miss_nothing_during_compaction(store: Arc<dyn Store>) {
    let stop = Arc::new(AtomicBool::new(false));
    let writers = start_writers(&store, &stop);
    // The store gives every write to all followers, so there must not be thousands of them.
    for _ in 0..100 {
        if store.head() >= Revision(3000) {
            break;
        }
        let before = store.floor();
        let (seen, compacted) =
            tokio::join!(followed(&store), store.compact(Revision(store.head().0 / 2)));
        compacted.unwrap();
        let (floor, head) = (store.floor(), store.head());
        // Followers get a write before the head includes it: they may be ahead, never behind.
        let mut records = seen.0.lock().clone();
        records.retain(|record| record.revision <= head);
        // The follower began at one of the floors in between and has everything since.
        assert!(records.is_sorted_by(|a, b| a.revision < b.revision), "each once, in order");
        let gap = records.windows(2).rfind(|pair| pair[1].revision.0 != pair[0].revision.0 + 1);
        let whole_from = gap.map_or(Revision(0), |pair| pair[1].revision);
        assert!(whole_from <= Revision(floor.0 + 1), "{before} {floor} {head} {whole_from}");
        // The follower ends with the store's state.
        let mut state = std::collections::BTreeMap::new();
        for record in records {
            match record.kind {
                Kind::Deleted => state.remove(&record.key),
                _ => state.insert(record.key.clone(), record),
            };
        }
        let listed = store.list("things", "", At::Revision(head)).await.unwrap();
        assert!(state.into_values().eq(listed), "the state at {head}");
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
}

/// A follower that blocks in its first call until it is released.
struct Slow {
    seen: Seen,
    has_stopped: AtomicBool,
    began: Mutex<mpsc::Sender<()>>,
    go_on: Mutex<mpsc::Receiver<()>>,
}

impl Follower for Slow {
    fn apply(&self, records: &[Record], head: Revision) {
        if !self.has_stopped.swap(true, Ordering::Relaxed) {
            self.began.lock().send(()).unwrap();
            self.go_on.lock().recv().unwrap();
        }
        self.seen.apply(records, head);
    }

    fn reset(&self, _: &[Record], _: Revision) {
        unreachable!("no history is lost here");
    }
}

pub async fn compaction_waits_for_a_slow_follower(store: Arc<dyn Store>) {
    store.commit_one(create("a", "x")).await.unwrap();
    for revision in 1..2000 {
        store.commit_one(update("a", revision, "x")).await.unwrap();
    }
    let (began, has_begun) = mpsc::channel();
    let (let_go_on, go_on) = mpsc::channel();
    let (began, go_on) = (Mutex::new(began), Mutex::new(go_on));
    let slow =
        Arc::new(Slow { seen: Seen::default(), has_stopped: AtomicBool::new(false), began, go_on });
    let following = tokio::spawn({
        let (store, slow) = (store.clone(), slow.clone());
        async move { store.follow(slow).await }
    });
    has_begun.recv().unwrap();
    let compacting = tokio::spawn({
        let store = store.clone();
        async move { store.compact(Revision(2000)).await }
    });
    while store.floor() < Revision(2000) {
        tokio::task::yield_now().await;
    }
    // Writers and new followers wait for neither; the followers see the state at the new floor.
    for revision in 2000..2100 {
        store.commit_one(update("a", revision, "y")).await.unwrap();
    }
    let later = followed(&store).await;
    later.check_complete(Revision(2000), Revision(2100));
    assert_eq!(later.0.lock()[0].revision, Revision(2000), "nothing from below the floor");
    let_go_on.send(()).unwrap();
    following.await.unwrap().unwrap();
    compacting.await.unwrap().unwrap();
    slow.seen.check_complete(Revision(0), Revision(2100));
}

pub async fn compaction_drops_past_states(store: Arc<dyn Store>) {
    write_history(&store).await;
    for floor in 0..=7 {
        store.compact(Revision(floor)).await.unwrap();
        assert_eq!(store.floor(), Revision(floor));
        for at in floor..=7 {
            check_state(&store, at).await;
        }
        let state = STATES[floor as usize];
        let mut expected: Vec<_> =
            state.iter().chain(&HISTORY[floor as usize..]).copied().collect();
        expected.sort_unstable();
        assert_eq!(followed(&store).await.texts(), expected, "floor {floor}");
    }
    assert_eq!(outcome(store.commit_one(update("a", 3, "3")).await), "conflict: absent");
    assert_eq!(outcome(store.commit_one(create("b", "3")).await), "conflict: 7 Created b=2");
    assert_eq!(outcome(store.commit_one(create("a", "3")).await), "8 Created a=3");
    assert_eq!(outcome(store.commit_one(update("b", 7, "3")).await), "9 Updated b=3");
}

pub async fn compaction_below_the_floor_does_nothing(store: Arc<dyn Store>) {
    assert_eq!(store.compact(Revision(0)).await, Ok(()));
    write_history(&store).await;
    assert_eq!(store.compact(Revision(3)).await, Ok(()));
    assert_eq!(store.compact(Revision(3)).await, Ok(()));
    assert_eq!(store.compact(Revision(1)).await, Ok(()));
    assert_eq!(store.floor(), Revision(3));
}

pub async fn one_of_many_writers_wins(store: Arc<dyn Store>) {
    store.commit_one(create("counter", "0")).await.unwrap();
    let wins = Arc::new(AtomicUsize::new(0));
    let writers = (0..16).map(|_| {
        let (store, wins) = (store.clone(), wins.clone());
        tokio::spawn(async move {
            for _ in 0..20 {
                let current = store.get(&key("counter"), At::Head).await.unwrap().unwrap();
                let count: usize = String::from_utf8_lossy(&current.value()).parse().unwrap();
                let next = update("counter", current.revision.0, &(count + 1).to_string());
                match store.commit_one(next).await {
                    Ok(_) => wins.fetch_add(1, Ordering::Relaxed),
                    Err(Error::Conflict { .. }) => 0,
                    Err(error) => panic!("{error}"),
                };
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let counter = store.get(&key("counter"), At::Head).await.unwrap().unwrap();
    assert_eq!(counter.value(), wins.load(Ordering::Relaxed).to_string());
    assert_eq!(store.head().0, 1 + wins.load(Ordering::Relaxed) as u64);
}

pub async fn a_cancelled_write_harms_no_other(store: Arc<dyn Store>) {
    for n in 0..100 {
        let impatient = store.commit_one(create(&format!("dropped-{n}"), "x"));
        tokio::select! {
            biased;
            result = impatient => drop(result.unwrap()),
            () = std::future::ready(()) => {}
        }
        store.commit_one(create(&format!("after-{n}"), "x")).await.unwrap();
    }
    let created = store.list("things", "after-", At::Head).await.unwrap();
    assert_eq!(created.len(), 100);
    followed(&store).await.check_complete(Revision(0), store.head());
}

/// More writes than fit into one batch, by count and by size; each two compete for a key.
pub async fn more_writes_than_fit_one_batch(store: Arc<dyn Store>) {
    let seen = followed(&store).await;
    let writes = (0..3000).map(|n| {
        let store = store.clone();
        let value = "x".repeat(if n % 10 == 0 { 40_000 } else { 10 });
        tokio::spawn(async move {
            let result = store.commit_one(create(&(n / 2).to_string(), &value)).await;
            match result {
                Ok(record) => assert_eq!(record.value(), value),
                Err(Error::Conflict { current: Some(current) }) => {
                    assert_eq!(*current.key.item, (n / 2).to_string());
                }
                Err(error) => panic!("{error}"),
            }
        })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.unwrap();
    }
    assert_eq!(store.head(), Revision(1500), "one of each two");
    seen.check_complete(Revision(0), Revision(1500));
}

pub async fn a_closed_store_takes_no_writes(store: Arc<dyn Store>) {
    write_history(&store).await;
    assert_eq!(store.check(), Ok(()));
    let under_way = store.commit_one(create("d", "1"));
    store.close().await;
    assert_eq!(store.check(), Err(Error::Closed));
    assert_eq!(under_way.await, Err(Error::Closed), "it was not started before");
    assert_eq!(store.commit_one(create("e", "1")).await, Err(Error::Closed));
    assert_eq!(store.compact(Revision(3)).await, Err(Error::Closed));
    match store.get(&key("a"), At::Revision(Revision(3))).await {
        Err(error) => assert_eq!(error, Error::Closed),
        Ok(_) => {
            check_state(&store, 3).await;
            check_state(&store, 7).await;
        }
    }
    store.close().await;
}
