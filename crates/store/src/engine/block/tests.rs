use super::*;

const KEY: Revision = Revision(7);

const RECORDS: [(Revision, &[u8]); 4] =
    [(Revision(7), b"one"), (Revision(8), b""), (Revision(10), b"two"), (Revision(11), b"3")];

fn encoded() -> Vec<u8> {
    encode(KEY, RECORDS.into_iter()).unwrap()
}

/// Later versions open existing stores: a change of a format needs a new format number.
#[test]
fn the_formats_are_stable() {
    let block = encode(KEY, RECORDS[..2].iter().copied()).unwrap();
    let expected =
        b"<\x97\x97\xcb\0\0\0\x02\0\0\0\0\0\0\0\x07\0\0\0\x03\0\0\0\0\0\0\0\x08\0\0\0\x03one";
    assert_eq!(block, expected, "{}", block.escape_ascii());
    let mut marks = Marks::none(&Block::decode(KEY, &block).unwrap());
    marks.add(1);
    let marks = marks.encode(KEY);
    assert_eq!(marks, b"GF\xe3E\x02", "{}", marks.escape_ascii());
}

#[test]
fn records_are_found_by_revision() {
    let bytes = encoded();
    let block = Block::decode(KEY, &bytes).unwrap();
    assert_eq!((block.len(), block.bytes(), block.last()), (4, 7, Some(Revision(11))));
    for (position, record) in RECORDS.into_iter().enumerate() {
        assert_eq!(block.position(record.0), Some(position));
        assert_eq!(block.record(position), record);
    }
    for absent in [6, 9, 12] {
        assert_eq!(block.position(Revision(absent)), None);
    }
}

#[test]
fn marked_records_are_left_out() {
    let bytes = encoded();
    let block = Block::decode(KEY, &bytes).unwrap();
    let mut marks = Marks::none(&block);
    assert_eq!(block.unmarked(&marks).collect::<Vec<_>>(), RECORDS);
    marks.add(0);
    marks.add(2);
    let marks = Marks::decode(KEY, &block, &marks.encode(KEY)).unwrap();
    assert_eq!(block.unmarked(&marks).collect::<Vec<_>>(), [RECORDS[1], RECORDS[3]]);
}

/// The bytes of records are not part of it: they have a checksum of their own.
#[test]
fn damage_is_detected() {
    let bytes = encoded();
    let block = Block::decode(KEY, &bytes).unwrap();
    let marks = Marks::none(&block).encode(KEY);
    assert!(Block::decode(Revision(8), &bytes).is_err(), "another key's block");
    assert!(Marks::decode(Revision(8), &block, &marks).is_err(), "another key's marks");
    for end in 0..bytes.len() {
        assert!(Block::decode(KEY, &bytes[..end]).is_err(), "cut at {end}");
    }
    let unordered = [RECORDS[1], RECORDS[0]];
    for odd in [&RECORDS[..0], &unordered, &[RECORDS[0], RECORDS[0]]] {
        assert!(Block::decode(KEY, &encode(KEY, odd.iter().copied()).unwrap()).is_err(), "{odd:?}");
    }
    let early = encode(Revision(8), RECORDS.into_iter()).unwrap();
    assert!(Block::decode(Revision(8), &early).is_err(), "a record before the key");
    for end in 0..marks.len() {
        assert!(Marks::decode(KEY, &block, &marks[..end]).is_err(), "marks cut at {end}");
    }
    let is_sound = |bytes: &[u8]| Block::decode(KEY, bytes).is_ok();
    assert!(flips(&bytes[..bytes.len() - block.bytes()]).all(|head| {
        let rest = &bytes[bytes.len() - block.bytes()..];
        !is_sound(&[&head, rest].concat())
    }));
    assert!(flips(&marks).all(|marks| Marks::decode(KEY, &block, &marks).is_err()));
}

/// Returns copies of bytes, each with another bit flipped.
fn flips(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(|bit| {
        let mut bytes = bytes.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    })
}

#[test]
fn a_block_takes_what_fits_into_a_page() {
    let lengths = |lengths: &[usize]| {
        let records: Vec<Vec<u8>> = lengths.iter().map(|length| vec![0; *length]).collect();
        let count = fitting(records.iter().map(Vec::as_slice));
        let records = records.iter().take(count).map(|record| (KEY, record.as_slice()));
        (count, encode(KEY, records).unwrap().len())
    };
    assert_eq!(lengths(&[BYTES_MAX - HEAD - ITEM]), (1, BYTES_MAX));
    assert_eq!(lengths(&[1000, BYTES_MAX - HEAD - 2 * ITEM - 1000, 1]), (2, BYTES_MAX));
    assert_eq!(lengths(&[1000, BYTES_MAX - HEAD - 2 * ITEM - 999]).0, 1);
    assert_eq!(lengths(&[1 << 20, 1]).0, 1, "a longer record is alone in its block");
}
