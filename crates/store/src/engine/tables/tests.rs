//! The tables beside a naive model: a map of records.

use std::collections::BTreeMap;
use std::iter;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use redb::backends::InMemoryBackend;
use redb::{Builder, Database, ReadableDatabase as _};

use super::*;

/// A transaction: the lengths of new records, and which of the existing ones it removes, in
/// thousandths of the newest revision.
#[derive(Clone, Debug)]
struct Change {
    lengths: Vec<usize>,
    removed: Vec<u64>,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    // Records are at least as long as their header.
    let length = prop_oneof![20..200_usize, 1000..5000_usize, 20_000..50_000_usize];
    let change = (vec(length, 0..40), vec(0..=1000_u64, 0..60));
    vec(change.prop_map(|(lengths, removed)| Change { lengths, removed }), 1..12)
}

fn database() -> Database {
    Builder::new().create_with_backend(InMemoryBackend::new()).unwrap()
}

fn rows(first: u64, lengths: &[usize]) -> Vec<Row> {
    let row = |(revision, length): (u64, &usize)| {
        let bytes: Vec<u8> = iter::repeat_n(revision.to_be_bytes(), length / 8).flatten().collect();
        (Revision(revision), bytes.into())
    };
    (first..).zip(lengths).map(row).collect()
}

/// Runs a transaction; returns the bytes of the removed records.
fn commit(database: &Database, rows: &[Row], packing: Packing, garbage: Vec<Revision>) -> u64 {
    let write = database.begin_write().unwrap();
    let mut tables = Tables::open(&write).unwrap();
    tables.insert(&rows.iter().collect::<Vec<_>>(), packing).unwrap();
    let removed = tables.remove(garbage).unwrap();
    drop(tables);
    write.commit().unwrap();
    removed
}

fn scanned(database: &Database, after: u64) -> Vec<Row> {
    let mut found = Vec::new();
    let read = database.begin_read().unwrap();
    let has_ended = scan(&read, Revision(after), &mut |revision, bytes| {
        found.push((revision, Bytes::copy_from_slice(bytes)));
        Ok(true)
    });
    assert!(!has_ended.unwrap());
    found
}

/// Checks that blocks are in order and do not waste space.
fn check_blocks(database: &Database) {
    let read = database.begin_read().unwrap();
    let (blocks, marks) = (read.open_table(BLOCKS).unwrap(), read.open_table(MARKS).unwrap());
    let mut last = Revision(0);
    for row in blocks.range::<u64>(..).unwrap() {
        let (key, value) = row.unwrap();
        let key = Revision(key.value());
        let block = Block::decode(key, value.value()).unwrap();
        let marks = marks_of(&marks, key, &block).unwrap();
        let left: usize = block.unmarked(&marks).map(|(_, record)| record.len()).sum();
        assert!(left > block.bytes() / 2, "block {key} has {left} of {} bytes", block.bytes());
        assert!(last < key, "block {key} begins before the end of the one before");
        last = block.last().unwrap();
    }
    for row in marks.range::<u64>(..).unwrap() {
        let (key, _) = row.unwrap();
        assert!(blocks.get(key.value()).unwrap().is_some(), "marks without a block");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn tables_agree_with_the_model(changes in changes(), restored in vec(20..3000_usize, 0..10)) {
        let database = database();
        let mut model: BTreeMap<Revision, Bytes> = BTreeMap::new();
        let mut rows_of_their_own = rows(1, &restored);
        rows_of_their_own.reverse();
        commit(&database, &rows_of_their_own, Packing::Rows, Vec::new());
        model.extend(rows_of_their_own);
        let mut newest = restored.len() as u64;
        for Change { lengths, removed } in changes {
            let rows = rows(newest + 1, &lengths);
            newest += rows.len() as u64;
            model.extend(rows.iter().cloned());
            let garbage: Vec<_> = removed.iter().map(|n| Revision(newest * n / 1000)).collect();
            let expected: usize =
                garbage.iter().filter_map(|revision| model.remove(revision)).map(|b| b.len()).sum();
            prop_assert_eq!(commit(&database, &rows, Packing::Blocks, garbage), expected as u64);
            let expected: Vec<Row> = model.iter().map(|(r, b)| (*r, b.clone())).collect();
            prop_assert_eq!(&scanned(&database, 0), &expected);
            check_blocks(&database);
        }
        let read = database.begin_read().unwrap();
        for revision in (0..=newest + 1).map(Revision) {
            let found = super::read(&read, revision).unwrap();
            prop_assert_eq!(found.as_deref(), model.get(&revision).map(|bytes| &**bytes));
            let later = model.range((Bound::Excluded(revision), Bound::Unbounded)).count();
            prop_assert_eq!(scanned(&database, revision.0).len(), later);
        }
    }
}

#[test]
fn a_scan_ends_when_its_visitor_has_enough() {
    let database = database();
    commit(&database, &rows(1, &[100; 3]), Packing::Rows, Vec::new());
    commit(&database, &rows(4, &[100; 3]), Packing::Blocks, Vec::new());
    for enough in [2, 5] {
        let mut count = 0;
        let read = database.begin_read().unwrap();
        let has_ended = scan(&read, Revision(0), &mut |_, _| {
            count += 1;
            Ok(count < enough)
        });
        assert_eq!((has_ended.unwrap(), count), (true, enough));
    }
}

/// Many short records share the row of a block; a long one has its own.
#[test]
fn records_are_packed() {
    let database = database();
    let lengths = [&[1400; 100][..], &[50_000], &[1400; 10]].concat();
    commit(&database, &rows(1, &lengths), Packing::Blocks, Vec::new());
    let read = database.begin_read().unwrap();
    let blocks = read.open_table(BLOCKS).unwrap();
    let keys = blocks.range::<u64>(..).unwrap().map(|row| row.unwrap().0.value());
    assert_eq!(keys.collect::<Vec<_>>(), [1, 24, 47, 70, 93, 101, 102]);
}
