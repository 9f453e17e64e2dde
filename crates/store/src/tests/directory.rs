//! Who may open a directory, and what is in it then.

use std::fs;
use std::path::Path;

use super::*;
use crate::At;

fn open(dir: &Path) -> Result<Arc<dyn Store>, Error> {
    crate::open(&Options { dir: dir.to_owned(), durability: Durability::Disk })?.read()
}

#[tokio::test]
async fn a_store_is_there_again() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..5u64 {
        let store = open(&dir.path().join("a/b")).unwrap();
        assert_eq!(store.head(), Revision(round * 20));
        for n in 0..10 {
            let record = store.commit(create(&format!("{round}-{n}"), "1")).await.unwrap();
            if n % 2 == 0 {
                store.commit(delete(&record.key.item, record.revision.0, "1")).await.unwrap();
            } else {
                store.commit(update(&record.key.item, record.revision.0, "2")).await.unwrap();
            }
        }
        // So that a compaction that is not done when the store is closed goes on later.
        let floor = Revision(store.head().0 - 7);
        if round % 2 == 0 {
            store.compact(floor).await.unwrap();
        } else {
            drop(store.compact(floor));
        }
        let live = store.list("things", "", At::Head).await.unwrap();
        assert_eq!(live.len() as u64, (round + 1) * 5);
        followed(&store).await.check_complete(store.floor(), store.head());
    }
}

/// It is given the state at the floor, what came after, and what comes.
#[tokio::test]
async fn a_follower_of_the_opening_sees_everything() {
    let (store, dir) = on_disk();
    for write in [create("a", "1"), create("b", "1"), update("a", 1, "2"), delete("b", 2, "1")] {
        store.commit(write).await.unwrap();
    }
    store.compact(Revision(3)).await.unwrap();
    drop(store);
    let (store, seen) = reopened(&dir).await;
    let told = ["2 Created b=1", "3 Updated a=2", "4 Deleted b=1"];
    assert_eq!(seen.texts(), told);
    assert_eq!(followed(&store).await.texts(), told);
    store.commit(update("a", 3, "3")).await.unwrap();
    assert_eq!(seen.texts()[told.len()..], ["5 Updated a=3"]);
}

#[tokio::test]
async fn the_newest_revision_may_be_compacted_away() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    store.commit(create("a", "1")).await.unwrap();
    store.commit(delete("a", 1, "1")).await.unwrap();
    store.compact(Revision(2)).await.unwrap();
    drop(store);
    let store = open(dir.path()).unwrap();
    assert_eq!((store.floor(), store.head()), (Revision(2), Revision(2)));
    assert_eq!(followed(&store).await.texts(), [""; 0]);
    assert_eq!(store.commit(create("a", "1")).await.unwrap().revision, Revision(3));
}

#[tokio::test]
async fn one_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path()).unwrap();
    let path = dir.path().display().to_string();
    assert_eq!(open(dir.path()).err(), Some(Error::InUse { path }));
    first.commit(create("a", "1")).await.unwrap();
    drop(first);
    assert_eq!(open(dir.path()).unwrap().head(), Revision(1));
}

/// Every file in a directory, with what is in it.
fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let file = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    let mut files: Vec<_> = files.map(file).collect();
    files.sort();
    files
}

#[tokio::test]
async fn other_formats_are_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).unwrap().commit(create("a", "1")).await.unwrap();
    let format = dir.path().join("format");
    assert_eq!(fs::read(&format).unwrap(), b"pintle-store 1\n");
    let rows: [(&[u8], u32); 8] = [
        (b"pintle-store 2\n", 2),
        (b"pintle-store 4294967295\n", 4_294_967_295),
        (b"pintle-store 4294967296\n", 0),
        (b"pintle-store 1", 0),
        (b"pintle-store \n", 0),
        (b"pintle-store -1\n", 0),
        (b"", 0),
        (b"\xff\0", 0),
    ];
    for (written, found) in rows {
        fs::write(&format, written).unwrap();
        let before = contents(dir.path());
        let path = dir.path().display().to_string();
        let expected = Error::Format { path, found, supported: 1 };
        assert_eq!(open(dir.path()).err(), Some(expected), "{}", written.escape_ascii());
        assert_eq!(contents(dir.path()), before);
    }
    fs::remove_file(&format).unwrap();
    assert!(
        matches!(open(dir.path()).err(), Some(Error::Format { found: 0, .. })),
        "a database only"
    );
}

#[tokio::test]
async fn what_a_crash_can_leave_of_a_new_store_is_no_obstacle() {
    let dir = tempfile::tempdir().unwrap();
    let leftovers: [&[(&str, &[u8])]; 4] = [
        &[],
        &[("lock", b"")],
        &[("lock", b""), ("format.new", b"pint")],
        &[("lock", b""), ("format", b"pintle-store 1\n"), ("store.redb.new", b"redb")],
    ];
    for (n, files) in leftovers.into_iter().enumerate() {
        let dir = dir.path().join(n.to_string());
        fs::create_dir(&dir).unwrap();
        for (name, bytes) in files {
            fs::write(dir.join(name), bytes).unwrap();
        }
        let store = open(&dir).unwrap();
        store.commit(create("a", "1")).await.unwrap();
        drop(store);
        assert_eq!(open(&dir).unwrap().head(), Revision(1));
    }
}

/// Space is used again while the store is open, and given back when it is opened.
#[tokio::test]
async fn space_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("data/store.redb");
    let size = || fs::metadata(&file).unwrap().len() >> 20;
    let value = "x".repeat(1 << 20);
    let store = reopen(&dir);
    let mut largest = 0;
    for round in 0..6 {
        for n in 0..50 {
            let record = store.commit(create(&n.to_string(), &value)).await.unwrap();
            store.commit(delete(&record.key.item, record.revision.0, "")).await.unwrap();
        }
        store.compact(store.head()).await.unwrap();
        largest = if round < 3 { size() } else { largest };
    }
    assert!(size() < largest + largest / 2, "{} MiB, {largest} were enough before", size());
    assert!(largest > 64, "{largest} MiB are enough to be given back");
    store.commit(create("kept", &value)).await.unwrap();
    let head = store.head();
    drop(store);
    let store = reopen(&dir);
    assert!(size() < 8, "{} MiB are left", size());
    assert_eq!((store.head(), store.floor().0), (head, head.0 - 1));
    let kept = store.get(&key("kept"), At::Head).await.unwrap().unwrap();
    assert_eq!(kept.value(), value);
    followed(&store).await.check_complete(store.floor(), head);
}

/// Secrets lie in it.
#[cfg(unix)]
#[test]
fn a_new_directory_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drop(open(&data).unwrap());
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(data.clone()), 0o700);
    assert_eq!(mode(data.join("store.redb")), 0o600);
}

#[test]
fn a_directory_that_cannot_be() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = open(&dir.path().join("file/data")).err().unwrap();
    assert!(matches!(&error, Error::Failed { reason } if reason.contains("file/data")), "{error}");
}

/// Damage to what was synchronised is no crash's work: it is said, not passed over.
#[tokio::test]
async fn damage_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let value = "0123456789abcdef".repeat(64);
    for n in 0..50 {
        store.commit(create(&n.to_string(), &value)).await.unwrap();
    }
    drop(store);
    let file = dir.path().join("store.redb");
    let sound = fs::read(&file).unwrap();
    let places = sound.windows(16).enumerate().filter(|(_, bytes)| bytes == b"0123456789abcdef");
    let places: Vec<_> = places.map(|(place, _)| place).step_by(331).collect();
    assert!(places.len() > 5);
    let mut refused = 0;
    for place in places {
        let mut damaged = sound.clone();
        damaged[place] ^= 1;
        fs::write(&file, damaged).unwrap();
        match open(dir.path()) {
            // Pages that are no longer in use hold values too.
            Ok(store) => assert_eq!(store.list("things", "", At::Head).await.unwrap().len(), 50),
            Err(Error::Failed { reason }) => {
                assert!(reason.contains("is damaged"), "{reason}");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 0);
}

/// With `PINTLE_STORE_SMALL_DISK=<a directory on a disk of a few MiB>`: a disk that is full.
#[tokio::test]
async fn a_full_disk() {
    let Some(dir) = std::env::var_os("PINTLE_STORE_SMALL_DISK") else { return };
    let dir = tempfile::tempdir_in(dir).unwrap();
    let store = open(dir.path()).unwrap();
    let value = "x".repeat(10_000);
    let mut written = 0u64;
    let error = loop {
        match store.commit(create(&written.to_string(), &value)).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, Error::Failed { reason } if reason.contains("space")), "{error}");
    assert_eq!((store.check(), store.head()), (Err(error), Revision(written)));
    drop(store);
    let store = open(dir.path()).unwrap();
    assert!(store.head() >= Revision(written));
    followed(&store).await.check_complete(Revision(0), store.head());
}
