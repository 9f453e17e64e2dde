//! Checks of a store that is only read.

use std::fs;

use super::*;
use crate::conformance::CommitOne as _;
use crate::inspect;

/// The names, contents and modification times of a directory's files. A link that leads nowhere has
/// no content.
fn state(directory: &Path) -> Vec<(String, Vec<u8>, std::time::SystemTime)> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let changed = entry.metadata().unwrap().modified().unwrap();
        let content = match entry.file_type().unwrap().is_symlink() {
            true => Vec::new(),
            false => fs::read(entry.path()).unwrap(),
        };
        (entry.file_name().into_string().unwrap(), content, changed)
    };
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(entry).collect();
    files.sort();
    files
}

#[tokio::test]
async fn an_inspection_reads_every_record_and_changes_nothing() {
    let (store, dir) = on_disk();
    let directory = dir.path().join("data");
    for n in 0..20 {
        store.commit_one(create(&n.to_string(), "1")).await.unwrap();
    }
    // A copy of the files of an open store is as a crash leaves them.
    let crashed = dir.path().join("crashed");
    fs::create_dir(&crashed).unwrap();
    for file in ["format", "lock", "store.redb", "store.journal"] {
        fs::copy(directory.join(file), crashed.join(file)).unwrap();
    }
    drop(store);
    for directory in [directory, crashed] {
        let before = state(&directory);
        let found = inspect(&directory, None).unwrap();
        assert_eq!((found.records, found.newest, found.floor), (20, Revision(20), Revision(0)));
        assert_eq!(state(&directory), before, "nothing is changed");
    }
}

/// The files of an open store change, so a reader would find them damaged.
#[tokio::test]
async fn a_store_that_is_open_is_not_inspected_and_a_server_waits_for_an_inspection() {
    let (store, dir) = on_disk();
    let directory = dir.path().join("data");
    store.commit_one(create("a", "1")).await.unwrap();
    assert!(matches!(inspect(&directory, None), Err(Error::InUse { .. })));
    drop(store);
    let first = crate::engine::share(&directory).unwrap();
    assert_eq!(inspect(&directory, None).unwrap().records, 1, "several may read");
    let waiting = std::thread::spawn({
        let directory = directory.clone();
        move || crate::open(&options(&directory, Durability::System)).map(drop)
    });
    drop(first);
    waiting.join().unwrap().unwrap();
}

#[tokio::test]
async fn an_inspection_finds_what_is_damaged_or_missing() {
    type Spoil = fn(&Path);
    let rows: [(&str, Spoil); 7] = [
        ("store.journal: No such file", |dir| {
            fs::remove_file(dir.join("store.journal")).unwrap();
            std::os::unix::fs::symlink("/nowhere", dir.join("store.journal")).unwrap();
        }),
        ("its journal: it has 5000000 bytes", |dir| {
            fs::File::create(dir.join("store.journal")).unwrap().set_len(5_000_000).unwrap();
        }),
        ("store.journal, is missing", |dir| fs::remove_file(dir.join("store.journal")).unwrap()),
        ("`format` is missing", |dir| fs::remove_file(dir.join("format")).unwrap()),
        ("`format` is damaged", |dir| fs::write(dir.join("format"), "").unwrap()),
        ("store.redb, is missing", |dir| fs::remove_file(dir.join("store.redb")).unwrap()),
        ("", |dir| {
            let mut bytes = fs::read(dir.join("store.redb")).unwrap();
            bytes.chunks_mut(4096).skip(1).for_each(|page| page[..100].fill(0xa5));
            fs::write(dir.join("store.redb"), bytes).unwrap();
        }),
    ];
    for (expected, spoil) in rows {
        let (store, dir) = on_disk();
        let directory = dir.path().join("data");
        store.commit_one(create("a", "1")).await.unwrap();
        drop(store);
        spoil(&directory);
        let before = state(&directory);
        let why = inspect(&directory, None).unwrap_err().to_string();
        assert!(why.contains(expected), "{expected}: {why}");
        assert_eq!(state(&directory), before, "nothing is changed");
    }
}
