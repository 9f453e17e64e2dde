use proptest::prelude::*;

use super::*;

const ALL: Channels = Channels { stdin: true, stdout: true, stderr: true, resize: true };

/// A message of a client, with a zero mask.
fn message(bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 126);
    [&[0x82, 0x80 | bytes.len() as u8, 0, 0, 0, 0], bytes].concat()
}

fn reply(id: u32) -> Vec<u8> {
    [&b"\x80\x03\0\x02\0\0\0\x04"[..], &id.to_be_bytes()].concat()
}

fn reset(id: u32) -> Vec<u8> {
    [&b"\x80\x03\0\x03\0\0\0\x08"[..], &id.to_be_bytes(), &[0, 0, 0, 5]].concat()
}

fn data(id: u32, bytes: &[u8], ends: bool) -> Vec<u8> {
    let mut out = BytesMut::new();
    spdy::data(id, bytes, ends, &mut out);
    out.to_vec()
}

/// A message to the client.
fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    websocket::write(Opcode::Binary, bytes, &mut out);
    out.to_vec()
}

fn from_backend(command: &mut RemoteCommand, bytes: &[u8]) {
    command.backend.incoming.extend_from_slice(bytes);
    command.advance();
}

fn from_client(command: &mut RemoteCommand, bytes: &[u8]) {
    command.client.incoming.extend_from_slice(bytes);
    command.advance();
}

/// A session whose backend accepted every stream: 1 for errors, then stdin 3, stdout 5, stderr 7,
/// resize 9.
fn opened(channels: Channels) -> RemoteCommand {
    let mut command = RemoteCommand::new(channels);
    while !command.is_open() {
        assert!(!command.backend.outgoing.is_empty(), "the next stream is opened");
        command.backend.outgoing.clear();
        let stream_id = 2 * command.opened as u32 + 1;
        from_backend(&mut command, &reply(stream_id));
    }
    command
}

#[test]
fn streams_are_opened_in_order() {
    let mut command = RemoteCommand::new(Channels { stdout: true, ..Channels::default() });
    let open = |command: &mut RemoteCommand| command.backend.outgoing.split().to_vec();
    let ends_with =
        |bytes: Vec<u8>, name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    assert!(ends_with(open(&mut command), b"error"));
    from_client(&mut command, &message(b"\0early"));
    assert!(open(&mut command).is_empty());
    from_backend(&mut command, &reply(1));
    assert!(ends_with(open(&mut command), b"stdout"));
    from_backend(&mut command, &reply(5));
    assert!(command.is_open());
}

#[test]
fn channels_map_to_streams() {
    let mut command = opened(ALL);
    from_client(
        &mut command,
        &[message(b"\0in"), message(b"\x04{}"), message(b"\x01lost")].concat(),
    );
    let sent = [data(3, b"in", false), data(9, b"{}", false)].concat();
    assert_eq!(command.backend.outgoing.split(), sent);
    from_client(&mut command, &[message(&[255, 0]), message(b"\0late")].concat());
    assert_eq!(command.backend.outgoing.split(), data(3, b"", true));
    from_backend(&mut command, &[data(5, b"out", false), data(7, b"err", false)].concat());
    assert_eq!(command.client.outgoing.split(), [frame(b"\x01out"), frame(b"\x02err")].concat());
    from_client(&mut command, &[0x89, 0x81, 0, 0, 0, 0, b'x']);
    assert_eq!(&command.client.outgoing.split()[..], b"\x8a\x01x");
    assert!(!command.is_over());
}

#[test]
fn a_session_ends_after_output_and_status() {
    let mut command = opened(ALL);
    from_backend(&mut command, &[data(1, b"{\"sta", false), reset(7)].concat());
    from_backend(&mut command, &data(5, b"last words", true));
    assert!(!command.is_over(), "the error stream is not complete");
    from_backend(&mut command, &[data(1, b"tus\"}", false), reset(1)].concat());
    assert_eq!(command.outcome(), Some(Outcome::Ended(b"{\"status\"}".to_vec())));
    assert_eq!(command.client.outgoing, frame(b"\x01last words"));
}

#[test]
fn a_failing_backend_is_an_error() {
    let broken = |end: fn(&mut RemoteCommand)| {
        let mut command = opened(ALL);
        end(&mut command);
        command.advance();
        command.outcome()
    };
    let end: fn(&mut RemoteCommand) = |command| command.backend.has_ended = true;
    let why = "the connection to the kubelet broke";
    assert_eq!(broken(end), Some(Outcome::BrokenOff(why)));
    let end: fn(&mut RemoteCommand) = |command| from_backend(command, b"HTTP/1.1");
    assert_eq!(broken(end), None, "data on an unknown stream is skipped");
    let end: fn(&mut RemoteCommand) = |command| from_backend(command, b"\x80\x02\0\x01\0\0\0\0");
    assert_eq!(broken(end), Some(Outcome::BrokenOff("the kubelet speaks no SPDY")));
    let mut command = RemoteCommand::new(ALL);
    from_backend(&mut command, &reset(1));
    assert_eq!(command.outcome(), Some(Outcome::BrokenOff("Stream reset")));
    let mut command = RemoteCommand::new(ALL);
    (0..=OPENING_TICKS_MAX).for_each(|_| command.tick());
    assert_eq!(command.outcome(), Some(Outcome::BrokenOff("Timeout occurred")));
}

#[test]
fn clients_can_close_at_any_time() {
    for last in [
        &[0x88, 0x80, 0, 0, 0, 0][..],
        &[0x82, 0x00],
        &message(&[255]),
        &message(&[255, 9]),
        &message(&[255, 0, 0]),
    ] {
        let mut command = opened(ALL);
        from_client(&mut command, last);
        assert_eq!(command.outcome(), Some(Outcome::Left), "{last:?}");
    }
    let mut command = RemoteCommand::new(ALL);
    command.client.has_ended = true;
    command.advance();
    assert_eq!(command.outcome(), Some(Outcome::Left));
}

#[test]
fn backpressure_is_propagated() {
    let mut command = opened(ALL);
    let piece = vec![b'x'; 10_000];
    let all = data(5, &piece, false).repeat(100);
    from_backend(&mut command, &all);
    assert!(command.client.outgoing.len() < 100_000 && command.backend.incoming.len() > 800_000);
    assert!(!command.backend.is_wanted());
    let mut taken = 0;
    while !command.client.outgoing.is_empty() {
        taken += command.client.outgoing.split().len();
        command.advance();
    }
    assert!(taken > 1_000_000);
}

#[test]
fn the_greeting_uses_the_lowest_output_channel() {
    let greeting = |stdout, stderr| Channels { stdout, stderr, ..Channels::default() }.greeting();
    assert_eq!(greeting(true, true), frame(&[1]));
    assert_eq!(greeting(false, true), frame(&[2]));
    assert_eq!(greeting(false, false), frame(&[3]));
}

proptest! {
    #[test]
    fn splitting_input_makes_no_difference(
        client in prop::collection::vec(prop_oneof![Just(0x82), Just(0x82_u8), Just(0), Just(255), any::<u8>()], 0..100),
        inputs in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..5),
        piece in 1..9_usize,
    ) {
        let client = [inputs.iter().flat_map(|input| message(input)).collect(), client].concat();
        let run = |piece: usize| {
            let mut command = opened(ALL);
            client.chunks(piece).for_each(|piece| from_client(&mut command, piece));
            // Data frames depend on the pieces; only their content counts.
            let (mut reader, mut carried) = (spdy::Reader::default(), Vec::new());
            let mut outgoing = command.backend.outgoing.split();
            while let Ok(Some(event)) = reader.read(&mut outgoing) {
                if let spdy::Event::Data { stream, bytes, ends } = event {
                    carried.extend(bytes.iter().map(|byte| (stream, Some(*byte))));
                    carried.extend(ends.then_some((stream, None)));
                }
            }
            (carried, command.outcome())
        };
        prop_assert_eq!(run(piece), run(client.len().max(1)));
    }

    #[test]
    fn arbitrary_backend_bytes_do_not_panic(bytes in prop::collection::vec(prop_oneof![Just(0), Just(0x80), 0..10_u8, any::<u8>()], 0..300)) {
        let mut command = opened(ALL);
        from_backend(&mut command, &bytes);
        command.tick();
    }
}

/// Sends input to a command that reads none, until no more is taken.
fn fill_backend(command: &mut RemoteCommand) {
    let input = message(&[&b"\0"[..], &[7; 100]].concat());
    while command.backend.has_room() {
        from_client(command, &input);
    }
    from_client(command, &input);
    assert!(!command.client.incoming.is_empty(), "the rest waits");
}

/// A command may write much before it reads its input.
#[test]
fn output_is_forwarded_while_input_waits() {
    let mut command = opened(ALL);
    fill_backend(&mut command);
    from_backend(&mut command, &data(5, b"out", false));
    assert_eq!(command.client.outgoing, frame(b"\x01out"));
}

/// A user may end a command while the terminal shows no more of its output.
#[test]
fn input_is_forwarded_while_output_waits() {
    let mut command = opened(ALL);
    while command.client.has_room() {
        from_backend(&mut command, &data(5, &[7; 1000], false));
    }
    from_backend(&mut command, &data(5, b"waits", false));
    assert!(!command.backend.incoming.is_empty());
    command.backend.outgoing.clear();
    from_client(&mut command, &message(b"\0\x03"));
    assert_eq!(command.backend.outgoing, data(3, b"\x03", false));
}

/// Of the pings of a peer that reads nothing, the newest is answered, once there is room.
#[test]
fn pings_are_answered_later_and_take_no_memory() {
    let ping = |id| {
        let mut out = BytesMut::new();
        spdy::ping(id, &mut out);
        out
    };
    let mut command = opened(ALL);
    fill_backend(&mut command);
    let before = command.backend.outgoing.len();
    for id in 1..=1000 {
        from_backend(&mut command, &ping(2 * id));
    }
    assert_eq!(command.backend.outgoing.len(), before);
    assert!(command.backend.incoming.is_empty());
    command.backend.outgoing.clear();
    command.advance();
    assert!(command.backend.outgoing.starts_with(&ping(2000)));

    while command.client.has_room() {
        from_backend(&mut command, &data(5, &[7; 1000], false));
    }
    let before = command.client.outgoing.len();
    command.backend.outgoing.clear();
    for payload in [b'a', b'b'] {
        from_client(&mut command, &[0x89, 0x81, 0, 0, 0, 0, payload]);
    }
    assert_eq!(command.client.outgoing.len(), before);
    command.client.outgoing.clear();
    command.advance();
    assert_eq!(command.client.outgoing, websocket::pong(b"b"));
}
