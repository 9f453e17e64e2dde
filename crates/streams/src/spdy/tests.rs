use proptest::prelude::*;

use super::*;

/// A control frame of a server.
fn sent(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    control(kind, payload.len(), &mut out);
    out.put_slice(payload);
    out.to_vec()
}

fn sent_data(stream: u32, bytes: &[u8], ends: bool) -> Vec<u8> {
    let mut out = BytesMut::new();
    data(stream, bytes, ends, &mut out);
    out.to_vec()
}

/// The events with joined pieces, and whether the reader accepted everything.
fn read(bytes: &[u8], piece: usize) -> (Vec<Event>, Result<(), Violation>) {
    let (mut reader, mut buffer) = (Reader::default(), BytesMut::new());
    let mut events: Vec<Event> = Vec::new();
    for piece in bytes.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match reader.read(&mut buffer) {
                Ok(None) => break,
                Ok(Some(event)) => join(&mut events, event),
                Err(Violation) => return (events, Err(Violation)),
            }
        }
        assert!(buffer.len() < HEAD_BYTES + 4, "data is handed on as it comes");
    }
    (events, Ok(()))
}

fn join(events: &mut Vec<Event>, event: Event) {
    if let (
        Some(Event::Data { stream, bytes, ends }),
        Event::Data { stream: same, bytes: more, ends: now_ends },
    ) = (events.last_mut(), &event)
        && stream == same
        && !*ends
    {
        *bytes = [bytes.as_ref(), more].concat().into();
        *ends = *now_ends;
        return;
    }
    events.push(event);
}

#[test]
fn relevant_frames_are_read_and_others_skipped() {
    let bytes = [
        sent(4, &[0; 12]), // SETTINGS
        sent(2, b"\0\0\0\x01any compressed headers"),
        sent_data(3, b"hello", false),
        sent_data(3, b"", true),
        sent(6, &[0, 0, 0, 2]),
        sent(9, &[0; 8]), // WINDOW_UPDATE
        sent(3, &[0, 0, 0, 5, 0, 0, 0, 5]),
        sent(7, &[0; 8]), // GOAWAY
    ]
    .concat();
    let hello = Event::Data { stream: 3, bytes: "hello".into(), ends: true };
    let expected = vec![Event::Reply(1), hello, Event::Ping(2), Event::Reset(5)];
    for piece in [1, 2, 7, bytes.len()] {
        assert_eq!(read(&bytes, piece), (expected.clone(), Ok(())), "in pieces of {piece}");
    }
}

#[test]
fn protocol_violations_are_reported() {
    for bytes in [
        &b"\x80\x02\0\x02\0\0\0\x04\0\0\0\x01"[..], // version 2
        b"\x80\x03\0\x06\0\0\0\x03\0\0\0",          // a ping without a number
    ] {
        assert_eq!(read(bytes, bytes.len()), (Vec::new(), Err(Violation)));
    }
}

#[test]
fn headers_are_valid_zlib() {
    let (mut writer, mut out) = (Writer::default(), BytesMut::new());
    writer.open(1, &[("streamtype", "error")], &mut out);
    let first = out.split();
    writer.open(3, &[("streamtype", "stdin")], &mut out);
    let block = |value: &[u8; 5]| {
        let text = [b"\0\0\0\x01\0\0\0\x0astreamtype\0\0\0\x05".as_slice(), value].concat();
        [b"\0\x1b\0\xe4\xff".as_slice(), &text, &FLUSH].concat()
    };
    let head = |stream: u8, length: u8| {
        [&b"\x80\x03\0\x01\0\0\0"[..], &[length, 0, 0, 0, stream], &[0; 6]].concat()
    };
    assert_eq!(first, [head(1, 53), ZLIB_HEAD.to_vec(), block(b"error")].concat());
    assert_eq!(out, [head(3, 47), block(b"stdin")].concat());
}

proptest! {
    #[test]
    fn splitting_input_makes_no_difference(
        bytes in prop::collection::vec(prop_oneof![Just(0), Just(0x80), Just(3), any::<u8>()], 0..200),
        piece in 1..20_usize,
    ) {
        prop_assert_eq!(read(&bytes, piece), read(&bytes, bytes.len().max(1)));
    }
}
