//! Snapshots in memory: the reader returns the records that were written, and refuses a changed
//! file.

use std::fs;
use std::io::Write as _;

use bytes::Bytes;
use pintle_store::{BoxFuture, Key, Kind, Record, Revision, StoredState};

use crate::{Error, Folder, Header, Reader, Replacement, Saving, Summary, floor_after, restore};

/// A state of portions of records.
struct Portions(Vec<Vec<Record>>);

impl StoredState for Portions {
    fn revision(&self) -> Revision {
        Revision(77)
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Record>, pintle_store::Error>> {
        let next = if self.0.is_empty() { Vec::new() } else { self.0.remove(0) };
        Box::pin(async move { Ok(next) })
    }
}

fn record(revision: u64, item: &str, bytes: usize) -> Record {
    let key = Key { collection: "things".into(), item: item.into() };
    let kind = if revision.is_multiple_of(2) { Kind::Updated } else { Kind::Created };
    let bytes = Bytes::from(vec![b'x'; bytes]);
    Record { revision: Revision(revision), key, kind, body: 0..bytes.len(), bytes, note: None }
}

fn header() -> Header {
    let (program, source) = ("pintle 0.1.0".to_owned(), "embedded".to_owned());
    Header { created_unix_micros: 1_790_000_000_000_000, program, source }
}

/// Returns the pieces of the snapshot of a state.
fn pieces(portions: Vec<Vec<Record>>) -> Vec<Bytes> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut saving = Saving::new(Box::new(Portions(portions)), &header());
    let mut pieces = Vec::new();
    while let Some(piece) = runtime.block_on(saving.next()).unwrap() {
        pieces.push(piece);
    }
    pieces
}

fn snapshot(portions: Vec<Vec<Record>>) -> Vec<u8> {
    pieces(portions).concat()
}

fn read(file: &[u8]) -> Result<Vec<Record>, Error> {
    let mut reader = Reader::new(file)?;
    let mut records = Vec::new();
    while let Some(block) = reader.next_records()? {
        records.extend(block);
    }
    assert!(reader.next_records()?.is_none(), "the reader stays at the end");
    Ok(records)
}

#[test]
fn what_is_written_is_read() {
    let large = record(5, "large", 3 << 20);
    for portions in [
        vec![],
        vec![vec![record(1, "a", 0)]],
        vec![vec![record(1, "a", 10), record(2, "b/ü", 20)], vec![large]],
        (0..20).map(|n| vec![record(n, &n.to_string(), 100 << 10)]).collect(),
    ] {
        let file = snapshot(portions.clone());
        let reader = Reader::new(&*file).unwrap();
        assert_eq!((reader.header(), reader.end()), (&header(), None));
        assert_eq!(read(&file).unwrap(), portions.concat());
        let summary = Summary::read(&*file).unwrap();
        assert_eq!(summary.end.revision, Revision(77));
        assert_eq!(summary.end.bytes, file.len() as u64);
        assert_eq!(summary.end.records, portions.concat().len() as u64);
        let things = summary.collections.get("things").copied().unwrap_or_default();
        let bytes: usize = portions.concat().iter().map(|record| record.body.len()).sum();
        assert_eq!((things.objects, things.bytes), (summary.end.records, bytes as u64));
    }
}

#[test]
fn a_snapshot_comes_in_pieces_of_bounded_size() {
    let portions: Vec<_> = (0..100).map(|n| vec![record(n, &n.to_string(), 100 << 10)]).collect();
    let pieces = pieces(portions);
    assert!(pieces.len() > 10, "{}", pieces.len());
    assert!(pieces.iter().all(|piece| piece.len() < 1 << 20));
}

/// Forty small records.
fn small() -> Vec<u8> {
    let of = |range: std::ops::Range<u64>| range.map(|n| record(n, &n.to_string(), 8)).collect();
    snapshot(vec![of(1..21), of(21..41)])
}

#[test]
fn a_changed_byte_is_found() {
    let file = small();
    for at in 0..file.len() {
        for flip in [1, 0x80] {
            let mut changed = file.clone();
            changed[at] ^= flip;
            assert!(read(&changed).is_err(), "byte {at} of {}", file.len());
        }
    }
}

#[test]
fn a_missing_end_is_found() {
    let file = small();
    for length in 0..file.len() {
        match read(&file[..length]) {
            Err(Error::Truncated { bytes }) => assert_eq!(bytes, length as u64),
            Err(Error::Foreign) if length == 0 => {}
            other => panic!("{length} of {}: {other:?}", file.len()),
        }
    }
}

#[test]
fn other_files_are_refused() {
    let file = small();
    let with = |from: &str, to: &str| {
        let head = String::from_utf8_lossy(&file[..27]).replace(from, to);
        [head.as_bytes(), &file[27..]].concat()
    };
    let three = pieces((1..4).map(|n| vec![record(n, "a", 300 << 10)]).collect());
    for (file, message) in [
        (b"SQLite format 3\0 and something".to_vec(), "this is no snapshot of Pintle"),
        (Vec::new(), "this is no snapshot of Pintle"),
        (with("0000000001", "+000000001"), "this is no snapshot of Pintle"),
        (
            with("0000000001", "0000000002"),
            "the snapshot has format 2, this version reads 1; use a newer version",
        ),
        ([&file[..], b"x"].concat(), "something follows the end"),
        ([&three[0][..], &three[0]].concat(), "its length is beyond the limit"),
        ([&three[0][..], &three[2]].concat(), "its checksum is wrong"),
    ] {
        let why = read(&file).expect_err("it is refused").to_string();
        assert!(why.contains(message), "{why}");
    }
}

#[test]
fn a_damaged_snapshot_leaves_no_store() {
    let file = small();
    let whole = tempfile::tempdir().unwrap();
    let restored = restore(&*file, &whole.path().join("new/store"), Some(1000), 0).unwrap();
    assert_eq!((restored.snapshot, restored.floor), (Revision(77), Revision(1077)));
    assert_eq!(restored.records, 40);
    for at in (0..file.len()).step_by(101) {
        let parent = tempfile::tempdir().unwrap();
        let mut changed = file.clone();
        changed[at] ^= 4;
        for damaged in [&changed[..], &file[..at]] {
            let dir = parent.path().join("new/store");
            assert!(restore(damaged, &dir, None, 0).is_err(), "byte {at}");
            assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0, "byte {at}");
        }
    }
}

#[test]
fn a_store_continues_above_all_that_clients_can_have_seen() {
    const SECOND: i64 = 1_000_000;
    for (elapsed, ahead) in [
        (0, 1_000_000_000),
        (-SECOND, 1_000_000_000),
        (SECOND, 1_000_100_000),
        (SECOND / 2, 1_000_050_000),
        (86_400 * SECOND, 9_640_000_000),
    ] {
        assert_eq!(floor_after(Revision(5), elapsed), Revision(5 + ahead), "{elapsed}");
    }
    let file = small();
    let parent = tempfile::tempdir().unwrap();
    let outcome = restore(&*file, &parent.path().join("new/store"), Some(u64::MAX), 0);
    assert!(matches!(outcome, Err(Error::Revision(_))), "{outcome:?}");
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "old").unwrap();
    fs::write(folder.path().join("file.partial"), "what a crash left").unwrap();
    let mut replacement = Replacement::begin(&path).unwrap();
    replacement.write_all(b"new").unwrap();
    assert!(matches!(Replacement::begin(&path), Err(Error::Busy)));
    assert_eq!(fs::read(&path).unwrap(), b"old");
    drop(replacement);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    let mut replacement = Replacement::begin(&path).unwrap();
    replacement.write_all(b"new").unwrap();
    replacement.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(Replacement::begin(folder.path()).is_err());
}

#[test]
fn old_snapshots_are_removed_and_other_files_are_left() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::new(path.path());
    assert_eq!(folder.newest().unwrap(), None);
    let others =
        ["notes", "pintle-yesterday.snapshot", "pintle-2026-11-24T18-46-35Z.snapshot.partial"];
    others.iter().for_each(|name| fs::write(path.path().join(name), "").unwrap());
    let second = |n: i64| (1_790_000_000 + n) * 1_000_000;
    for n in [3, 1, 2] {
        fs::write(folder.file(second(n)), "").unwrap();
    }
    assert!(folder.file(second(0)).ends_with("pintle-2026-09-21T14-13-20Z.snapshot"));
    assert_eq!(folder.newest().unwrap(), Some(second(3)));
    assert_eq!(folder.prune(2).unwrap(), 1);
    assert!(!folder.file(second(1)).exists());
    assert_eq!(fs::read_dir(path.path()).unwrap().count(), others.len() + 2);
}
