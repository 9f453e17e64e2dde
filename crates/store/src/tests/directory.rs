//! Directories: who may open one, and what it may contain.

use std::fs;

use super::*;
use crate::At;
use crate::conformance::CommitOne as _;

fn open(dir: &Path) -> Result<Arc<dyn Store>, Error> {
    crate::open(&options(dir, Durability::Disk))?.read()
}

#[tokio::test]
async fn a_reopened_store_has_its_records() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..5u64 {
        let store = open(&dir.path().join("a/b")).unwrap();
        assert_eq!(store.head(), Revision(round * 20));
        for n in 0..10 {
            let record = store.commit_one(create(&format!("{round}-{n}"), "1")).await.unwrap();
            if n % 2 == 0 {
                store.commit_one(delete(&record.key.item, record.revision.0, "1")).await.unwrap();
            } else {
                store.commit_one(update(&record.key.item, record.revision.0, "2")).await.unwrap();
            }
        }
        // An unfinished compaction continues after the store is reopened.
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

/// The follower gets the state at the floor, the history, and later writes.
#[tokio::test]
async fn a_follower_of_the_opening_sees_everything() {
    let (store, dir) = on_disk();
    for write in [create("a", "1"), create("b", "1"), update("a", 1, "2"), delete("b", 2, "1")] {
        store.commit_one(write).await.unwrap();
    }
    store.compact(Revision(3)).await.unwrap();
    drop(store);
    let (store, seen) = reopened(&dir).await;
    let expected = ["2 Created b=1", "3 Updated a=2", "4 Deleted b=1"];
    assert_eq!(seen.texts(), expected);
    assert_eq!(followed(&store).await.texts(), expected);
    store.commit_one(update("a", 3, "3")).await.unwrap();
    assert_eq!(seen.texts()[expected.len()..], ["5 Updated a=3"]);
}

#[tokio::test]
async fn the_newest_revision_may_be_compacted_away() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    store.commit_one(create("a", "1")).await.unwrap();
    store.commit_one(delete("a", 1, "1")).await.unwrap();
    store.compact(Revision(2)).await.unwrap();
    drop(store);
    let store = open(dir.path()).unwrap();
    assert_eq!((store.floor(), store.head()), (Revision(2), Revision(2)));
    assert_eq!(followed(&store).await.texts(), [""; 0]);
    assert_eq!(store.commit_one(create("a", "1")).await.unwrap().revision, Revision(3));
}

#[tokio::test]
async fn one_process_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path()).unwrap();
    let path = dir.path().display().to_string();
    assert_eq!(open(dir.path()).err(), Some(Error::InUse { path }));
    first.commit_one(create("a", "1")).await.unwrap();
    first.close().await;
    let next = open(dir.path()).unwrap();
    assert_eq!(next.head(), Revision(1));
    assert_eq!(first.get(&key("a"), At::Head).await, Err(Error::Closed));
    drop(first);
    assert!(open(dir.path()).is_err(), "a closed handle does not unlock the directory again");
    drop(next);
    assert_eq!(open(dir.path()).unwrap().head(), Revision(1));
}

/// A crash between the renames of a new database and its format.
#[tokio::test]
async fn a_new_store_without_its_renamed_format_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).unwrap().commit_one(create("a", "1")).await.unwrap();
    let (format, unfinished) = (dir.path().join("format"), dir.path().join("format.new"));
    fs::rename(&format, &unfinished).unwrap();
    assert_eq!(open(dir.path()).unwrap().head(), Revision(1));
    assert_eq!(fs::read(&format).unwrap(), b"pintle-store 5\n");
    for old in [1, 3] {
        fs::remove_file(&format).unwrap();
        fs::write(&unfinished, format!("pintle-store {old}\n")).unwrap();
        assert_eq!(open(dir.path()).unwrap().head(), Revision(1));
        assert_eq!(fs::read(&format).unwrap(), b"pintle-store 5\n", "begun by version {old}");
    }
    fs::remove_file(&format).unwrap();
    fs::write(&unfinished, "pintle-store 7\n").unwrap();
    assert!(matches!(open(dir.path()).err(), Some(Error::Format { found: 7, .. })));
}

/// A lost database is never taken for a new one: the directory is refused and not changed.
#[tokio::test]
async fn a_lost_store_is_refused() {
    type Loss = fn(&Path);
    let rows: [(&str, Loss, &str); 11] = [
        (
            "no journal",
            |dir| fs::remove_file(dir.join("store.journal")).unwrap(),
            "its journal, store.journal, is missing",
        ),
        ("no database", |dir| fs::remove_file(dir.join("store.redb")).unwrap(), "is missing"),
        ("an empty database", |dir| fs::write(dir.join("store.redb"), "").unwrap(), "0 bytes"),
        ("a few bytes", |dir| fs::write(dir.join("store.redb"), "redb").unwrap(), "not a redb"),
        ("half of it", |dir| cut(&dir.join("store.redb"), 2), ""),
        ("only the header", |dir| cut(&dir.join("store.redb"), 300), ""),
        ("damaged pages", |dir| damage(&dir.join("store.redb")), ""),
        ("zeros", |dir| fs::write(dir.join("store.redb"), [0; 1 << 20]).unwrap(), "not a redb"),
        ("a link that leads nowhere", |dir| lead_nowhere(&dir.join("store.redb")), "store.redb"),
        (
            "only what was being made",
            |dir| {
                fs::rename(dir.join("store.redb"), dir.join("store.redb.new")).unwrap();
            },
            "is missing",
        ),
        (
            "somebody else's database",
            |dir| {
                fs::remove_file(dir.join("store.redb")).unwrap();
                drop(redb::Database::create(dir.join("store.redb")).unwrap());
            },
            "log",
        ),
    ];
    for (what, lose, reason) in rows {
        for is_closed in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            open(dir.path()).unwrap().commit_one(create("a", "1")).await.unwrap();
            lose(dir.path());
            if !is_closed {
                fs::remove_file(dir.path().join("closed")).unwrap();
            }
            for attempt in 0..2 {
                let Some(Error::Failed { reason: found }) = open(dir.path()).err() else {
                    panic!("{what} is refused, attempt {attempt}");
                };
                let expected = found.to_lowercase().contains(reason);
                assert!(expected, "{what}, closed {is_closed}: {found}");
            }
        }
    }
}

/// Truncates a file to a part of its length.
fn cut(file: &Path, part: u64) {
    let file = fs::File::options().write(true).open(file).unwrap();
    file.set_len(file.metadata().unwrap().len() / part).unwrap();
}

/// Overwrites a part of each page but the first, which is the header.
fn damage(file: &Path) {
    const PAGE: usize = 4096;
    let mut bytes = fs::read(file).unwrap();
    for page in bytes.chunks_mut(PAGE).skip(1) {
        page[..100].fill(0xa5);
    }
    fs::write(file, bytes).unwrap();
}

fn lead_nowhere(file: &Path) {
    fs::remove_file(file).unwrap();
    std::os::unix::fs::symlink("/nowhere/store.redb", file).unwrap();
}

#[tokio::test]
async fn a_directory_with_foreign_files_is_refused() {
    for name in ["notes.txt", "PG_VERSION", "member", "store.redb.old"] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(name), "theirs").unwrap();
        let path = dir.path().display().to_string();
        let expected = Error::Foreign { path, name: name.to_owned() };
        assert_eq!(open(dir.path()).err(), Some(expected));
        assert_eq!(contents(dir.path()), [(name.to_owned(), b"theirs".to_vec())]);
    }
    // Next to a store, foreign files are allowed: a copy, or a file that an editor left.
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()).unwrap());
    fs::write(dir.path().join("store.redb.old"), "theirs").unwrap();
    assert!(open(dir.path()).is_ok());
}

/// Runs its checks only without root's rights, which can read everything.
#[cfg(unix)]
#[tokio::test]
async fn an_unreadable_file_is_not_taken_for_absent() {
    use std::os::unix::fs::PermissionsExt;
    for name in ["format", "store.redb", "."] {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path()).unwrap().commit_one(create("a", "1")).await.unwrap();
        let path = dir.path().join(name);
        let allowed = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        if fs::File::open(&path).is_err() {
            let error = open(dir.path()).err();
            assert!(matches!(&error, Some(Error::Failed { .. })), "{name}: {error:?}");
        }
        fs::set_permissions(&path, allowed).unwrap();
        assert_eq!(open(dir.path()).unwrap().head(), Revision(1));
    }
}

/// The file is rewritten only if it is unknown whether all of it is on disk.
#[tokio::test]
async fn a_closed_file_marks_a_clean_close() {
    let dir = tempfile::tempdir().unwrap();
    let closed = dir.path().join("closed");
    let store = open(dir.path()).unwrap();
    assert!(!closed.exists(), "while it is open");
    store.commit_one(create("a", "1")).await.unwrap();
    drop(store);
    assert!(closed.exists(), "after it was closed");
    let unsynchronised = crate::open(&options(dir.path(), Durability::System)).unwrap();
    drop(unsynchronised.read().unwrap());
    assert!(!closed.exists(), "after it was used without synchronisation");
    drop(open(dir.path()).unwrap());
    assert!(closed.exists());
}

/// A rewrite leaves holes: there may be no space to fill them.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_rewrite_does_not_fill_holes() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).unwrap().commit_one(create("a", "1")).await.unwrap();
    let blocks = || fs::metadata(dir.path().join("store.redb")).unwrap().blocks();
    let before = blocks();
    fs::remove_file(dir.path().join("closed")).unwrap();
    drop(open(dir.path()).unwrap());
    assert!(blocks() <= before + 64, "{} blocks, {before} before", blocks());
}

/// Returns every file in a directory with its content.
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
async fn other_formats_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).unwrap().commit_one(create("a", "1")).await.unwrap();
    let format = dir.path().join("format");
    assert_eq!(fs::read(&format).unwrap(), b"pintle-store 5\n");
    let rows: [(&[u8], Option<u32>); 8] = [
        (b"pintle-store 7\n", Some(7)),
        (b"pintle-store 4294967295\n", Some(4_294_967_295)),
        (b"pintle-store 4294967296\n", None),
        (b"pintle-store 1", None),
        (b"pintle-store \n", None),
        (b"pintle-store -1\n", None),
        (b"", None),
        (b"\xff\0", None),
    ];
    for (written, found) in rows {
        fs::write(&format, written).unwrap();
        let before = contents(dir.path());
        let path = dir.path().display().to_string();
        let refused = open(dir.path()).err().expect("refused");
        match found {
            Some(found) => assert_eq!(refused, Error::Format { path, found, supported: 6 }),
            None => {
                let message = refused.to_string();
                assert!(
                    message.contains("its file `format` is damaged"),
                    "{message}: {}",
                    written.escape_ascii()
                );
            }
        }
        assert_eq!(contents(dir.path()), before);
    }
    fs::remove_file(&format).unwrap();
    let refused = open(dir.path()).err().expect("a database alone is refused").to_string();
    assert!(refused.contains("its file `format` is missing"), "{refused}");
}

/// A store of an earlier version has no journal.
#[tokio::test]
async fn a_format_without_a_journal_gets_one() {
    for (old, new) in [(1, 5), (2, 6)] {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path()).unwrap().commit_one(create("a", "1")).await.unwrap();
        let (format, journal) = (dir.path().join("format"), dir.path().join("store.journal"));
        fs::write(&format, format!("pintle-store {old}\n")).unwrap();
        fs::remove_file(&journal).unwrap();
        assert_eq!(
            crate::inspect(dir.path(), None).unwrap().records,
            1,
            "an inspection changes nothing"
        );
        assert!(!journal.exists());
        assert_eq!(open(dir.path()).unwrap().head(), Revision(1));
        assert_eq!(fs::read_to_string(&format).unwrap(), format!("pintle-store {new}\n"));
        assert!(journal.exists());
    }
}

/// Earlier versions had a row for each record, and no other tables.
#[tokio::test]
async fn a_format_without_blocks_is_read_and_continued() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let writes = [create("a", "1"), create("b", "1"), update("a", 1, "2"), delete("b", 2, "1")];
    let mut records = Vec::new();
    for write in writes {
        records.push(open(&data).unwrap().commit_one(write).await.unwrap());
    }
    as_rows(&data, &records);
    let format = data.join("format");
    fs::write(&format, "pintle-store 3\n").unwrap();
    assert_eq!(crate::inspect(&data, None).unwrap().records, 4, "it changes nothing");
    let (store, seen) = reopened(&dir).await;
    assert_eq!(fs::read(&format).unwrap(), b"pintle-store 5\n");
    assert_eq!(seen.texts(), texts(&records));
    store.commit_one(update("a", 3, "3")).await.unwrap();
    drop(store);
    let (store, seen) = reopened(&dir).await;
    let expected = ["1 Created a=1", "2 Created b=1", "3 Updated a=2", "4 Deleted b=1"];
    assert_eq!(seen.texts(), [&expected[..], &["5 Updated a=3"]].concat());
    let at = |revision| store.get(&self::key("a"), At::Revision(Revision(revision)));
    assert_eq!(text(&at(2).await.unwrap().unwrap()), expected[0]);
    assert_eq!(text(&at(5).await.unwrap().unwrap()), "5 Updated a=3");
    store.compact(Revision(4)).await.unwrap();
    drop(store);
    let (_, seen) = reopened(&dir).await;
    assert_eq!(seen.texts(), ["3 Updated a=2", "5 Updated a=3"]);
}

/// Stores records as a version without blocks did.
fn as_rows(dir: &Path, records: &[Record]) {
    let database = redb::Database::open(dir.join("store.redb")).unwrap();
    let write = database.begin_write().unwrap();
    let table = |name| redb::TableDefinition::<u64, &[u8]>::new(name);
    assert!(write.delete_table(table("blocks")).unwrap());
    assert!(write.delete_table(table("marks")).unwrap());
    let mut log = write.open_table(table("log")).unwrap();
    for record in records {
        let bytes = crate::encoding::encode(record, &record.value()).unwrap();
        log.insert(record.revision.0, &*bytes).unwrap();
    }
    drop(log);
    write.commit().unwrap();
}

#[tokio::test]
async fn leftovers_of_an_interrupted_creation_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let leftovers: [&[(&str, &[u8])]; 5] = [
        &[],
        &[("lock", b"")],
        &[("lock", b""), ("format.new", b"pint")],
        &[
            ("lock", b""),
            ("format.new", b"pintle-store 5\n"),
            ("store.redb.new", b"redb"),
            ("store.journal", b""),
        ],
        &[("lost+found", b""), (".snapshots", b"")], // a file system's own
    ];
    for (n, files) in leftovers.into_iter().enumerate() {
        let dir = dir.path().join(n.to_string());
        fs::create_dir(&dir).unwrap();
        for (name, bytes) in files {
            fs::write(dir.join(name), bytes).unwrap();
        }
        let store = open(&dir).unwrap();
        store.commit_one(create("a", "1")).await.unwrap();
        drop(store);
        assert_eq!(open(&dir).unwrap().head(), Revision(1));
    }
}

/// Freed space is reused while the store is open, and returned when it is opened.
#[tokio::test]
async fn freed_space_is_returned_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("data/store.redb");
    let size = || fs::metadata(&file).unwrap().len() >> 20;
    let value = "x".repeat(1 << 20);
    let store = reopen(&dir);
    let mut largest = 0;
    for round in 0..6 {
        for n in 0..50 {
            let record = store.commit_one(create(&n.to_string(), &value)).await.unwrap();
            store.commit_one(delete(&record.key.item, record.revision.0, "")).await.unwrap();
        }
        store.compact(store.head()).await.unwrap();
        largest = if round < 3 { size() } else { largest };
    }
    assert!(size() < largest + largest / 2, "{} MiB, {largest} were enough before", size());
    assert!(largest > 64, "{largest} MiB are enough to be given back");
    store.commit_one(create("survivor", &value)).await.unwrap();
    let head = store.head();
    drop(store);
    let store = reopen(&dir);
    assert!(size() < 8, "{} MiB are left", size());
    assert_eq!((store.head(), store.floor().0), (head, head.0 - 1));
    let survivor = store.get(&key("survivor"), At::Head).await.unwrap().unwrap();
    assert_eq!(survivor.value(), value);
    followed(&store).await.check_complete(store.floor(), head);
}

/// Without writes, and with few records left, space is returned while the store is open.
#[tokio::test]
async fn freed_space_is_returned_when_the_store_is_idle() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("data/store.redb");
    let size = || fs::metadata(&file).unwrap().len() >> 20;
    let (store, value) = (reopen(&dir), "x".repeat(1 << 20));
    store.commit_one(create("survivor", "1")).await.unwrap();
    for n in 0..100 {
        let record = store.commit_one(create(&n.to_string(), &value)).await.unwrap();
        store.commit_one(delete(&record.key.item, record.revision.0, "")).await.unwrap();
    }
    let largest = size();
    assert!(largest > 64, "{largest} MiB are enough to be given back");
    store.compact(store.head()).await.unwrap();
    while size() > 8 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let record = store.commit_one(create("more", "1")).await.unwrap();
    drop(store);
    let store = reopen(&dir);
    assert_eq!(store.head(), record.revision);
    assert_eq!(store.list("things", "", At::Head).await.unwrap().len(), 2);
}

/// The bound holds under any write rate, and after the store is opened with another bound.
#[tokio::test]
async fn history_is_bounded_by_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let bounded = |history_bytes_max| {
        let options = Options { history_bytes_max, ..options(dir.path(), Durability::System) };
        crate::open(&options).unwrap().read().unwrap()
    };
    let (store, value) = (bounded(1 << 20), "x".repeat(10_000));
    store.commit_one(create("a", &value)).await.unwrap();
    for revision in 1..1000 {
        store.commit_one(update("a", revision, &value)).await.unwrap();
    }
    let changes = |store: &Arc<dyn Store>| store.head().0 - store.floor().0;
    assert!((95..=104).contains(&changes(&store)), "{} changes", changes(&store));
    let requested = Revision(store.floor().0 - 1);
    let past = store.get(&key("a"), At::Revision(requested)).await;
    assert_eq!(past, Err(Error::Compacted { requested, floor: store.floor() }));
    store.compact(store.floor()).await.unwrap();
    let seen = followed(&store).await;
    assert_eq!(seen.0.lock().len() as u64, changes(&store) + 1, "the rest is gone");
    drop(store);
    let store = bounded(200_000);
    assert!((18..=20).contains(&changes(&store)), "{} changes", changes(&store));
    assert_eq!(store.head(), Revision(1000));
}

/// The directory will hold secrets.
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
fn a_directory_that_cannot_be_created_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = open(&dir.path().join("file/data")).err().unwrap();
    assert!(matches!(&error, Error::Failed { reason } if reason.contains("file/data")), "{error}");
}

/// Damage to synchronised data is not a crash's effect: it is an error.
#[tokio::test]
async fn a_damaged_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let value = "0123456789abcdef".repeat(64);
    for n in 0..50 {
        store.commit_one(create(&n.to_string(), &value)).await.unwrap();
    }
    drop(store);
    let file = dir.path().join("store.redb");
    let sound = fs::read(&file).unwrap();
    let offsets = sound.windows(16).enumerate().filter(|(_, bytes)| bytes == b"0123456789abcdef");
    let offsets: Vec<_> = offsets.map(|(offset, _)| offset).step_by(331).collect();
    assert!(offsets.len() > 5);
    let mut refused = 0;
    for offset in offsets {
        let mut damaged = sound.clone();
        damaged[offset] ^= 1;
        fs::write(&file, damaged).unwrap();
        match open(dir.path()) {
            // Unused pages contain values, too.
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

/// A disk of 8 MiB: a tmpfs, where one can be mounted.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let arguments = ["-t", "tmpfs", "-o", "size=8m", "tmpfs"];
        let mut mount = std::process::Command::new("mount");
        let mounted = mount.args(arguments).arg(dir.path()).stderr(std::process::Stdio::null());
        mounted.status().is_ok_and(|status| status.success()).then_some(Self(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0.path()).status();
    }
}

/// A full disk is reported, nothing acknowledged is lost, and writes are taken again when there is
/// room. The test is skipped where no tmpfs can be mounted (without root, or in a container);
/// `storage_that_fails_at_any_call` covers the same in memory.
#[tokio::test]
async fn a_full_disk_is_reported_and_survived() {
    let Some(disk) = SmallDisk::mount() else { return };
    let dir = disk.0.path().join("data");
    let store = open(&dir).unwrap();
    let value = "x".repeat(10_000);
    let mut written = 0u64;
    let ballast = disk.0.path().join("ballast");
    fs::write(&ballast, vec![1; 3 << 20]).unwrap();
    let error = loop {
        match store.commit_one(create(&written.to_string(), &value)).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, Error::Unknown { reason } if reason.contains("space")), "{error}");
    assert!(store.check().is_err());
    assert_eq!(store.head(), Revision(written));
    // Opening needs no space.
    drop(store);
    let store = open(&dir).unwrap();
    assert!(store.head() >= Revision(written));
    while store.check().is_ok() {
        let _ = store.commit_one(create(&format!("{}", store.head()), &value)).await;
    }
    fs::remove_file(&ballast).unwrap();
    while store.check().is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let record = store.commit_one(create("more", &value)).await.unwrap();
    drop(store);
    let store = open(&dir).unwrap();
    assert_eq!(store.head(), record.revision);
    followed(&store).await.check_complete(Revision(0), store.head());
}
