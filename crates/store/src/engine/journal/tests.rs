//! The journal's file after a crash at any sector, and after damage at any byte.

use bytes::Bytes;

use super::sectors::{SECTOR, Sectors, read};
use super::*;
use crate::Revision;

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
