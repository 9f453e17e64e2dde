use super::*;

fn encode(record: &Record) -> Result<Vec<u8>, Failure> {
    super::encode(record, &record.bytes[record.body.clone()])
}

fn record(kind: Kind, item: &str, value: &'static [u8]) -> Record {
    let key = Key { collection: "things".into(), item: item.into() };
    let bytes = Bytes::from_static(value);
    Record { revision: Revision(7), key, kind, body: 0..bytes.len(), bytes, note: None }
}

/// Later versions open existing stores: a change of the format needs a new format number.
#[test]
fn the_record_format_is_stable() {
    let bytes = encode(&record(Kind::Updated, "ns/a", b"{}")).unwrap();
    let expected = b"A\xd5\xbb\x1d\x02\0\0\0\x06\0\0\0\x04thingsns/a{}";
    assert_eq!(bytes, expected, "{}", bytes.escape_ascii());
}

#[test]
fn an_encoded_record_decodes_to_itself() {
    for kind in [Kind::Created, Kind::Updated, Kind::Deleted] {
        for (item, value) in [("", &b""[..]), ("a", b""), ("ns/ü", b"\0\xff{}")] {
            let record = record(kind, item, value);
            let bytes = encode(&record).unwrap();
            assert_eq!(bytes.len(), size(&record));
            assert_eq!(decode(record.revision, &bytes).unwrap(), record);
        }
    }
}

#[test]
fn only_the_body_is_stored() {
    let mut framed = record(Kind::Created, "a", b"<value>");
    framed.body = 1..6;
    let stored = decode(framed.revision, &encode(&framed).unwrap()).unwrap();
    assert_eq!(&stored.bytes[..], b"value");
    assert_eq!(stored, framed);
}

#[test]
fn a_damaged_record_is_detected() {
    let bytes = encode(&record(Kind::Created, "ns/a", b"value")).unwrap();
    assert!(decode(Revision(8), &bytes).is_err(), "another revision's record");
    for end in 0..bytes.len() {
        assert!(decode(Revision(7), &bytes[..end]).is_err(), "cut at {end}");
    }
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(Revision(7), &bytes).is_err(), "bit {bit} flipped");
    }
}
