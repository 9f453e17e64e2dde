use proptest::prelude::*;

use super::*;

const MASK: [u8; 4] = [1, 2, 3, 4];

fn written(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    write(opcode, payload, &mut out);
    out.to_vec()
}

/// A frame of a client.
fn sent(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = written(Opcode::Text, payload);
    frame[0] = first;
    frame[1] |= MASKED;
    let head = frame.len() - payload.len();
    let masked = payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask);
    [&frame[..head], &MASK, &masked.collect::<Vec<u8>>()].concat()
}

/// The messages and control frames that a reader returned, and its final state.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    messages: Vec<Vec<u8>>,
    pings: Vec<Vec<u8>>,
    closed: bool,
    broken: bool,
}

fn read(bytes: &[u8], piece: usize) -> Read {
    let (mut reader, mut buffer) = (Reader::default(), BytesMut::new());
    let (mut read, mut open) = (Read::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match reader.read(&mut buffer) {
                Ok(None) => break,
                Ok(Some(Event::Data { begins, bytes, ends })) => {
                    assert!(!begins || open.is_empty());
                    open.extend_from_slice(&bytes);
                    if ends {
                        read.messages.push(std::mem::take(&mut open));
                    }
                }
                Ok(Some(Event::Ping(bytes))) => read.pings.push(bytes.to_vec()),
                Ok(Some(Event::Close)) => read.closed = true,
                Err(Violation) => return Read { broken: true, ..read },
            }
        }
        assert!(buffer.len() <= 131, "data is handed on as it comes");
    }
    read
}

/// Checks that the result is independent of how the input is split.
#[track_caller]
fn check(frames: &[Vec<u8>], expected: Read) {
    let bytes = frames.concat();
    for piece in [1, 3, bytes.len()] {
        assert_eq!(read(&bytes, piece), expected, "in pieces of {piece}");
    }
}

#[test]
fn messages_and_control_frames_are_read() {
    let long = vec![b'x'; 70_000];
    let pings = || vec![b"hello".to_vec()];
    check(&[sent(0x89, b"hello")], Read { pings: pings(), ..Read::default() });
    check(
        &[sent(0x81, b"text"), sent(0x89, b"hello"), sent(0x82, &long), sent(0x82, b"")],
        Read {
            messages: vec![b"text".to_vec(), long.clone(), vec![]],
            pings: pings(),
            ..Read::default()
        },
    );
    let parts = [sent(0x02, &long[..300]), sent(0x89, b"hello"), sent(0x00, b""), sent(0x80, b"y")];
    let whole = [&long[..300], b"y"].concat();
    check(&parts, Read { messages: vec![whole], pings: pings(), ..Read::default() });
    check(&[sent(0x8a, b"pong"), sent(0x88, &[3, 232])], Read { closed: true, ..Read::default() });
    check(&[sent(0x88, b"")], Read { closed: true, ..Read::default() });
}

#[test]
fn invalid_client_frames_are_violations() {
    let broken = || Read { broken: true, ..Read::default() };
    for frames in [
        &[written(Opcode::Ping, b"not masked")][..],
        &[sent(0x09, b"a control frame in parts")],
        &[sent(0x89, &[0; 126])],
        &[sent(0x8b, b"unknown")],
        &[sent(0x83, b"unknown")],
        &[sent(0xc2, b"an extension")],
        &[sent(0x80, b"continues nothing")],
        &[sent(0x02, b"begins"), sent(0x82, b"again")],
    ] {
        check(frames, broken());
    }
}

#[test]
fn payload_lengths_have_three_encodings() {
    for (length, head) in [
        (0, &[0x81, 0][..]),
        (125, &[0x81, 125]),
        (126, &[0x81, 126, 0, 126]),
        (65_535, &[0x81, 126, 255, 255]),
        (65_536, &[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
    ] {
        let frame = written(Opcode::Text, &vec![b'x'; length]);
        assert_eq!((&frame[..head.len()], frame.len()), (head, head.len() + length));
    }
}

proptest! {
    #[test]
    fn splitting_input_makes_no_difference(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        piece in 1..20_usize,
    ) {
        prop_assert_eq!(read(&bytes, piece), read(&bytes, bytes.len().max(1)));
    }

    #[test]
    fn messages_are_reassembled(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 0..5),
        piece in 1..50_usize,
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(|message| sent(0x82, message)).collect();
        prop_assert_eq!(read(&bytes, piece).messages, messages);
    }
}
