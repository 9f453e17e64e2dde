//! States as they are stored, and the stores that are made of them.

use std::fs;
use std::path::{Path, PathBuf};

use super::encrypted::Keyed;
use super::*;
use crate::conformance::CommitOne as _;
use crate::{At, Kind, Restoration, StoredState, stopped_state};

/// All records of a state, in order.
async fn all(state: &mut dyn StoredState) -> Vec<Record> {
    let mut records = Vec::new();
    loop {
        match state.next().await.unwrap() {
            portion if portion.is_empty() => return records,
            portion => records.extend(portion),
        }
    }
}

/// Three things, one of them deleted and one updated.
async fn filled(store: &Arc<dyn Store>) {
    for write in [
        create("a", "1"),
        create("b", "1"),
        create("c", "1"),
        update("a", 1, "2"),
        delete("b", 2, "1"),
    ] {
        store.commit_one(write).await.unwrap();
    }
}

const STATE: [&str; 2] = ["3 Created c=1", "4 Updated a=2"];

#[tokio::test]
async fn a_state_stays_while_the_store_is_written_and_compacted() {
    let (disk, _dir) = on_disk();
    for store in [in_memory(), disk] {
        filled(&store).await;
        let mut state = store.stored_state().await.unwrap();
        store.commit_one(update("c", 3, "2")).await.unwrap();
        store.commit_one(create("d", "1")).await.unwrap();
        let compacting = {
            let store = store.clone();
            tokio::spawn(async move { store.compact(Revision(7)).await })
        };
        assert_eq!(state.revision(), Revision(5));
        assert_eq!(texts(&all(&mut *state).await), STATE);
        assert!(!compacting.is_finished(), "what is read is not removed");
        drop(state);
        compacting.await.unwrap().unwrap();
        let mut later = store.stored_state().await.unwrap();
        let expected = ["4 Updated a=2", "6 Updated c=2", "7 Created d=1"];
        assert_eq!(texts(&all(&mut *later).await), expected);
    }
}

#[tokio::test]
async fn a_state_comes_in_portions() {
    let store = in_memory();
    let value = "x".repeat(300 << 10);
    for number in 0..10 {
        store.commit_one(create(&number.to_string(), &value)).await.unwrap();
    }
    let mut state = store.stored_state().await.unwrap();
    let mut sizes = Vec::new();
    loop {
        let portion = state.next().await.unwrap();
        if portion.is_empty() {
            break;
        }
        sizes.push(portion.len());
    }
    assert_eq!(sizes, [4, 4, 2], "a portion ends at 1 MiB");
}

/// Makes the store at `dir` of records whose history begins after `floor`.
fn restored(dir: &Path, records: Vec<Record>, floor: u64) -> Result<(), Error> {
    let mut restoration = Restoration::begin(dir)?;
    restoration.add(records)?;
    restoration.finish(Revision(floor))
}

#[tokio::test]
async fn a_restored_store_has_the_state_and_no_history() {
    let (store, from) = on_disk();
    filled(&store).await;
    store.close().await;
    let mut state = stopped_state(&from.path().join("data")).unwrap();
    let records = all(&mut *state).await;
    assert_eq!((state.revision(), texts(&records)), (Revision(5), STATE.map(str::to_owned).into()));
    drop(state);
    drop(store);
    assert_eq!(reopen(&from).head(), Revision(5), "the original is as it was");

    let to = tempfile::tempdir().unwrap();
    restored(&to.path().join("new/data"), records, 1000).unwrap();
    for round in 1..=2 {
        let dir = to.path().join("new/data");
        let opening = crate::open(&options(&dir, Durability::Disk)).unwrap();
        let seen = Arc::new(Seen::default());
        let store = Box::new(opening).read_to(seen.clone()).await.unwrap();
        let written = store.commit_one(create(&format!("new{round}"), "1")).await.unwrap();
        assert_eq!(written.revision, Revision(999 + 2 * round), "it continues above its floor");
        assert_eq!(seen.texts()[..2], STATE, "revisions are kept");
        assert_eq!(store.floor(), Revision(1000));
        for old in [0, 3, 5, 999] {
            let read = store.get(&key("a"), At::Revision(Revision(old))).await;
            assert!(matches!(read, Err(Error::Compacted { .. })), "{old}: {read:?}");
        }
        let at_floor = store.list("things", "", At::Revision(Revision(1000))).await.unwrap();
        assert_eq!(texts(&at_floor), ["4 Updated a=2", "3 Created c=1"]);
        let updated = store.commit_one(update("a", 4, "3")).await;
        assert_eq!(updated.is_ok(), round == 1, "the revisions of objects are preconditions");
        store.close().await;
    }
}

#[test]
fn a_store_is_restored_to_an_empty_directory_only() {
    for (there, refused) in [
        (None, None),
        (Some("lost+found/"), None),
        (Some("data.restoring/store.redb.new"), None),
        (Some("data/format"), Some("data")),
        (Some(".hidden"), Some(".hidden")),
        (Some("pki/ca.crt"), Some("pki")),
    ] {
        let parent = tempfile::tempdir().unwrap();
        if let Some(there) = there {
            let path = parent.path().join(there);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let made =
                if there.ends_with('/') { fs::create_dir(&path) } else { fs::write(&path, "") };
            made.or_else(|e| if path.exists() { Ok(()) } else { Err(e) }).unwrap();
        }
        let outcome = restored(&parent.path().join("data"), Vec::new(), 7);
        match (refused, outcome) {
            (None, Ok(())) => assert!(entries(parent.path()).contains(&"data".into())),
            (Some(entry), Err(Error::NotEmpty { entry: named, .. })) => assert_eq!(named, entry),
            (_, outcome) => panic!("{there:?}: {outcome:?}"),
        }
    }
}

fn entries(path: &Path) -> Vec<PathBuf> {
    fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into()).collect()
}

#[tokio::test]
async fn what_an_interrupted_restoration_leaves_is_no_store() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("data");
    let mut restoration = Restoration::begin(&dir).unwrap();
    let other = Restoration::begin(&dir);
    assert!(matches!(other, Err(Error::InUse { .. })), "one at a time: {other:?}");
    restoration.add(vec![record(1, "a")]).unwrap();
    for opened in [crate::open(&options(&dir, Durability::Disk)).err(), stopped_state(&dir).err()] {
        assert!(matches!(opened, Some(Error::Unfinished { .. })), "{opened:?}");
    }
    drop(restoration);
    assert_eq!(entries(parent.path()), Vec::<PathBuf>::new(), "a failed one leaves nothing");
    assert!(matches!(stopped_state(&dir).err(), Some(Error::Absent { .. })));
    assert_eq!(entries(parent.path()), Vec::<PathBuf>::new());
}

fn record(revision: u64, item: &str) -> Record {
    let bytes = bytes::Bytes::from_static(b"{}");
    let (revision, kind) = (Revision(revision), Kind::Created);
    Record { revision, key: key(item), kind, body: 0..bytes.len(), bytes, note: None }
}

#[test]
fn contradictory_records_are_refused_and_leave_nothing() {
    let deletion = Record { kind: Kind::Deleted, ..record(2, "b") };
    for (records, floor) in [
        (vec![record(1, "a"), record(1, "b")], 9),
        (vec![record(1, "a"), record(2, "a")], 9),
        (vec![record(1, "a"), deletion], 9),
        (vec![record(1, "a"), record(10, "b")], 9),
    ] {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("new/data");
        let outcome = restored(&dir, records.clone(), floor);
        assert!(outcome.is_err(), "{records:?}");
        assert_eq!(entries(parent.path()), Vec::<PathBuf>::new(), "{records:?}");
    }
}

#[tokio::test]
async fn encrypted_values_are_moved_without_their_key() {
    let from = tempfile::tempdir().unwrap();
    let encrypted = |dir: &Path| Options {
        transformer: Keyed::transformer(1, &[1]),
        ..options(dir, Durability::Disk)
    };
    let store = crate::open(&encrypted(&from.path().join("data"))).unwrap().read().unwrap();
    filled(&store).await;
    let mut state = store.stored_state().await.unwrap();
    let records = all(&mut *state).await;
    drop(state);
    store.close().await;
    let offline = all(&mut *stopped_state(&from.path().join("data")).unwrap()).await;
    assert_eq!(records, offline, "running or stopped, a store has the same state");
    for record in &records {
        assert!(record.bytes.starts_with(b"k8s:enc:"), "{record:?}");
    }
    let dir = from.path().join("new/data");
    restored(&dir, records, 50).unwrap();
    assert_eq!(fs::read_to_string(dir.join("format")).unwrap(), "pintle-store 6\n");
    let without = crate::open(&options(&dir, Durability::Disk)).unwrap().read();
    assert!(without.is_err(), "no key, no store");
    drop(without);
    let store = crate::open(&encrypted(&dir)).unwrap().read().unwrap();
    let listed = store.list("things", "", At::Head).await.unwrap();
    assert_eq!(texts(&listed), ["4 Updated a=2", "3 Created c=1"]);
}
