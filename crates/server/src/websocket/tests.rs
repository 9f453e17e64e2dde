use super::frame::{Control, Incoming, Opcode, Violation, write};
use super::*;

const MASK: [u8; 4] = [1, 2, 3, 4];

/// A frame as a client sends it.
fn sent(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = write(Opcode::Text, payload);
    frame[0] = first;
    frame[1] |= 0x80;
    let head = frame.len() - payload.len();
    let masked = payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask);
    [&frame[..head], &MASK, &masked.collect::<Vec<u8>>()].concat()
}

/// What is to be answered comes out, however what comes is cut.
#[track_caller]
fn check(frames: &[Vec<u8>], expected: &[Control], end: Result<(), Violation>) {
    let bytes = frames.concat();
    for piece in [1, 3, bytes.len()] {
        let (mut incoming, mut found, mut result) = (Incoming::default(), Vec::new(), Ok(()));
        for piece in bytes.chunks(piece) {
            incoming.buffer().extend_from_slice(piece);
            let mut rest = std::iter::from_fn(|| incoming.next().transpose());
            result = rest.try_for_each(|control| control.map(|control| found.push(control)));
            if result.is_err() {
                break;
            }
            assert!(incoming.buffer().len() <= 131, "what is passed over is not kept");
        }
        assert_eq!((found.as_slice(), &result), (expected, &end), "in pieces of {piece}");
    }
}

#[test]
fn control_frames_are_found_between_messages() {
    let ping = || Control::Ping(b"hello".to_vec());
    let long = vec![b'x'; 70_000];
    check(&[sent(0x89, b"hello")], &[ping()], Ok(()));
    check(&[sent(0x81, b"text"), sent(0x89, b"hello")], &[ping()], Ok(()));
    check(&[sent(0x82, &long), sent(0x89, b"hello")], &[ping()], Ok(()));
    check(&[sent(0x02, &long[..300]), sent(0x89, b"hello"), sent(0x80, b"end")], &[ping()], Ok(()));
    check(&[sent(0x8a, b"pong"), sent(0x88, &[3, 232])], &[Control::Close], Ok(()));
    check(&[sent(0x88, b"")], &[Control::Close], Ok(()));
}

#[test]
fn what_clients_must_not_send() {
    check(&[write(Opcode::Ping, b"not masked")], &[], Err(Violation));
    check(&[sent(0x09, b"in parts")], &[], Err(Violation));
    check(&[sent(0x89, &[0; 126])], &[], Err(Violation));
    check(&[sent(0x8b, b"unknown")], &[], Err(Violation));
}

#[test]
fn lengths_have_three_forms() {
    for (length, head) in [
        (0, &[0x81, 0][..]),
        (125, &[0x81, 125]),
        (126, &[0x81, 126, 0, 126]),
        (65_535, &[0x81, 126, 255, 255]),
        (65_536, &[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
    ] {
        let frame = write(Opcode::Text, &vec![b'x'; length]);
        assert_eq!((&frame[..head.len()], frame.len()), (head, head.len() + length));
    }
}

#[test]
fn the_key_is_answered() {
    // RFC 6455, 1.3
    assert_eq!(accept_key(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

fn headers(rows: &[(&'static str, &'static str)]) -> HeaderMap {
    let rows = rows.iter().map(|(name, value)| {
        (http::header::HeaderName::from_static(name), HeaderValue::from_static(value))
    });
    rows.collect()
}

#[test]
fn who_asks_for_a_web_socket() {
    for (connection, upgrade, expected) in [
        ("Upgrade", "websocket", true),
        ("keep-alive, upgrade", "WebSocket", true),
        ("keep-alive", "websocket", false),
        ("Upgrade", "SPDY/3.1", false),
        ("upgrades", "websocket", false),
    ] {
        let headers = headers(&[("connection", connection), ("upgrade", upgrade)]);
        assert_eq!(is_asked_for(&headers), expected, "{connection}; {upgrade}");
    }
}

#[test]
fn tokens_among_subprotocols() {
    const TOKEN: &str = "base64url.bearer.authorization.k8s.io.dG9rZW4";
    for (protocols, expected) in [
        ("base64url.bearer.authorization.k8s.io.dG9rZW4, mine", Ok(Some("token"))),
        ("mine,base64url.bearer.authorization.k8s.io.dG9rZW4", Ok(Some("token"))),
        ("mine", Ok(None)),
        ("base64url.bearer.authorization.k8s.io., mine", Ok(None)),
        (TOKEN, Err(Error::Token)),
        ("base64url.bearer.authorization.k8s.io.dG9rZW4=, mine", Err(Error::Token)),
        ("base64url.bearer.authorization.k8s.io._w, mine", Err(Error::Token)),
        (
            "base64url.bearer.authorization.k8s.io.YQ, base64url.bearer.authorization.k8s.io.YQ, b",
            Err(Error::Token),
        ),
    ] {
        let mut headers = headers(&[("connection", "Upgrade"), ("upgrade", "websocket")]);
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocols));
        let expected = expected.map(|token| token.map(str::to_owned));
        assert_eq!(bearer_token(&headers), expected, "{protocols}");
    }
}
