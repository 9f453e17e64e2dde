//! The journal's file after a crash at any sector, and after damage at any byte.

use std::io;

use bytes::Bytes;
use parking_lot::Mutex;
use proptest::collection::vec;
use proptest::prelude::*;
use redb::StorageBackend;

use super::sectors::{SECTOR, Sectors, read};
use super::*;
use crate::Revision;

/// A file in memory.
#[derive(Debug, Default)]
struct Memory(Mutex<Vec<u8>>);

impl StorageBackend for Memory {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        out.copy_from_slice(&self.0.lock()[offset as usize..][..out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut file = self.0.lock();
        let end = offset as usize + data.len();
        let length = file.len().max(end);
        file.resize(length, 0);
        file[offset as usize..end].copy_from_slice(data);
        Ok(())
    }
}

impl Medium for Memory {
    fn hole_end(&self, position: u64) -> u64 {
        position
    }
}

/// The bytes of a journal's file.
fn bytes(journal: &Journal) -> Vec<u8> {
    let mut bytes = vec![0; journal.medium.len().unwrap() as usize];
    journal.medium.read(0, &mut bytes).unwrap();
    bytes
}

/// Returns an entry that fills this many sectors; its record has the entry's number as revision.
fn entry(number: u64, sectors: usize) -> Entry {
    let bytes = Bytes::from(vec![number as u8; sectors * 480 - 60]);
    Entry {
        encryption: number % 2,
        rows: vec![(Revision(number), bytes)],
        floor: number.is_multiple_of(3).then_some(Revision(number - 1)),
        garbage: (1..number.min(3)).map(Revision).collect(),
    }
}

/// Returns a file with entries of these lengths in sectors, which are numbered from `first`.
fn file(first: u64, lengths: &[usize]) -> Vec<u8> {
    let numbered = (first..).zip(lengths);
    let mut file = Vec::new();
    for (number, sectors) in numbered {
        let bytes = Sectors::of(number, &entry(number, *sectors)).unwrap().bytes;
        assert_eq!(bytes.len(), sectors * SECTOR);
        file.extend(bytes);
    }
    file
}

fn numbers(found: &Found) -> Vec<u64> {
    found.entries.iter().flat_map(|entry| &entry.rows).map(|(revision, _)| revision.0).collect()
}

const LENGTHS: [usize; 5] = [1, 3, 2, 1, 4];

#[test]
fn entries_are_read_as_they_were_written() {
    for applied in 6..=11 {
        let found = read(&file(7, &LENGTHS), applied).unwrap();
        let expected: Vec<Entry> =
            (7..).zip(LENGTHS).skip(applied as usize - 6).map(|(n, len)| entry(n, len)).collect();
        assert_eq!((found.entries, found.last), (expected, 11), "applied {applied}");
    }
    assert_eq!(read(&[0; 4 * SECTOR], 3).unwrap().last, 3);
    assert_eq!(read(&[], 3).unwrap().last, 3);
}

/// The old pass is longer or shorter than the new one, which may end in the middle of an old entry.
#[test]
fn old_entries_are_not_taken_for_new_ones() {
    for old in [&[4, 4, 4, 4][..], &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], &[2]] {
        let mut bytes = file(1, old);
        let last = old.len() as u64;
        for count in 0..=LENGTHS.len() {
            let new = file(last + 1, &LENGTHS[..count]);
            bytes.resize(bytes.len().max(new.len()), 0);
            bytes[..new.len()].copy_from_slice(&new);
            let found = read(&bytes, last).unwrap();
            let expected: Vec<u64> = (last + 1..).take(count).collect();
            assert_eq!((numbers(&found), found.last), (expected, last + count as u64), "{old:?}");
        }
    }
}

/// Any of the last entry's sectors are missing: they are zero, or of an old pass.
#[test]
fn a_torn_last_entry_is_left_out_and_its_number_is_not_used_again() {
    let whole = file(7, &LENGTHS);
    let before = whole.len() - 4 * SECTOR;
    for old in [vec![0; whole.len()], file(1, &[1, 3, 2, 1, 2, 2])] {
        for written in 0..0b1111u8 {
            let mut bytes = whole.clone();
            for sector in (0..4).filter(|sector| written & 1 << sector == 0) {
                let range = before + sector * SECTOR..before + (sector + 1) * SECTOR;
                bytes[range.clone()].copy_from_slice(&old[range]);
            }
            let found = read(&bytes, 6).unwrap();
            let begun = if written == 0 { 10 } else { 11 };
            assert_eq!((numbers(&found), found.last), (vec![7, 8, 9, 10], begun), "{written:b}");
            assert_eq!(found.entries.len() as u64, begun - 6, "an empty entry has its number");
        }
    }
}

#[test]
fn a_missing_entry_before_others_is_damage() {
    let whole = file(7, &LENGTHS);
    for sector in 0..whole.len() / SECTOR - 4 {
        let mut bytes = whole.clone();
        bytes[sector * SECTOR..(sector + 1) * SECTOR].fill(0);
        assert!(read(&bytes, 6).is_err(), "sector {sector}");
    }
    assert!(read(&whole, 5).is_err(), "the database lacks entry 6");
}

/// A sector without its header is no unused one.
#[test]
fn a_lost_header_is_damage() {
    let whole = file(7, &LENGTHS);
    for sector in 0..whole.len() / SECTOR {
        let mut bytes = whole.clone();
        bytes[sector * SECTOR..][..20].fill(0);
        assert!(read(&bytes, 6).is_err(), "sector {sector}");
    }
}

/// A changed byte is found in every entry, also in the last one. The zeros that fill the last
/// sector of an entry are not checked.
#[test]
fn a_changed_byte_is_damage() {
    let whole = file(7, &LENGTHS);
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        match read(&bytes, 6) {
            Err(error) => assert!(error.0.contains("damaged"), "{error:?}"),
            Ok(found) => {
                assert_eq!(whole[at], 0, "byte {at}");
                assert_eq!(numbers(&found), [7, 8, 9, 10, 11]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
    /// Entries of random lengths, while the database applies some now and then: the file always has
    /// all entries that the database does not have, and it is full only of these. If only some
    /// sectors of the last entry are written, it has all others.
    #[test]
    fn the_ring_keeps_what_the_database_does_not_have(
        steps in vec((1..500_usize, 0..4_u64, any::<u64>()), 1..60),
    ) {
        let medium = Box::new(Memory::default());
        let (mut journal, _) = Journal::open(medium, true, 0).unwrap();
        journal.release(0);
        let mut applied = 0;
        for (sectors, applies, torn) in steps {
            let entry = entry(journal.last() + 1, sectors);
            if let Some(position) = journal.room(sectors::length(&entry)) {
                let mut before = bytes(&journal);
                journal.append(&entry).unwrap();
                let after = bytes(&journal);
                before.resize(after.len(), 0);
                let places = (position as usize..journal.end as usize).step_by(SECTOR);
                for (_, at) in (0..64).cycle().zip(places).filter(|(bit, _)| torn >> bit & 1 == 1) {
                    let range = at..at + SECTOR;
                    before[range.clone()].copy_from_slice(&after[range]);
                }
                let is_whole = before == after;
                let found = read(&before, applied).unwrap();
                let expected = applied + 1..journal.last() + u64::from(is_whole);
                prop_assert_eq!(numbers(&found), expected.collect::<Vec<_>>());
            } else {
                // With the longest entry, more than half of the file is in use.
                prop_assert!((journal.last() - applied) * 500 * SECTOR as u64 > LENGTH_MAX / 2);
            }
            applied = (applied + applies).min(journal.last());
            journal.release(applied);
            let found = read(&bytes(&journal), applied).unwrap();
            prop_assert_eq!(numbers(&found), (applied + 1..=journal.last()).collect::<Vec<_>>());
            prop_assert_eq!(found.last, journal.last());
            prop_assert!(journal.length <= LENGTH_MAX);
        }
        // It continues after it was opened again, when the database has what was found.
        let last = journal.last();
        let (mut journal, _) = Journal::open(journal.medium, true, applied).unwrap();
        prop_assert!(applied == last || !journal.has_room(&entry(last + 1, 1)));
        journal.release(last);
        journal.append(&entry(last + 1, 1)).unwrap();
        prop_assert_eq!(numbers(&read(&bytes(&journal), last).unwrap()), [last + 1]);
    }
}
