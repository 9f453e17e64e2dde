//! HTTP/2 frames that hostile clients need (RFC 9113, RFC 7541).

use serde::Deserialize;

/// The connection preface.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(super) const END_STREAM: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
/// The newest header in HPACK's dynamic table, by its index.
pub(super) const NEWEST_HEADER: u8 = 0x80 | 62;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Headers = 1,
    RstStream = 3,
    Settings = 4,
    Ping = 6,
    WindowUpdate = 8,
    Continuation = 9,
}

/// Writes a frame. A payload that is too long continues in `CONTINUATION`.
pub(super) fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    const BYTES_MAX: usize = 16 * 1024;
    let (first, rest) = payload.split_at(payload.len().min(BYTES_MAX));
    let held_back = if rest.is_empty() { 0 } else { END_HEADERS };
    out.extend_from_slice(&(first.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind as u8, flags & !held_back]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(first);
    if !rest.is_empty() {
        frame(Kind::Continuation, flags & END_HEADERS, stream, rest, out);
    }
}

/// Writes a header without adding it to the dynamic table.
pub(super) fn header(name: &str, value: &str, block: &mut Vec<u8>) {
    block.push(0);
    text(name, block);
    text(value, block);
}

/// Writes a header and adds it to the dynamic table, as [`NEWEST_HEADER`].
pub(super) fn repeated_header(name: &str, value: &str, block: &mut Vec<u8>) {
    block.push(0x40);
    text(name, block);
    text(value, block);
}

/// A text with its length, an integer with a prefix of seven bits.
fn text(text: &str, block: &mut Vec<u8>) {
    const PREFIX_MAX: usize = 127;
    let mut length = text.len();
    if length < PREFIX_MAX {
        block.push(length as u8);
    } else {
        block.push(PREFIX_MAX as u8);
        length -= PREFIX_MAX;
        while length >= 128 {
            block.push((length % 128) as u8 | 128);
            length /= 128;
        }
        block.push(length as u8);
    }
    block.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_a_prefix_of_seven_bits() {
        // RFC 7541, C.1.2 encodes 1337 with a prefix of five bits. With seven bits, 1337 is
        // 127 + 58 + 9 · 128.
        let mut block = Vec::new();
        text(&"x".repeat(1337), &mut block);
        assert_eq!(block[..3], [127, 58 | 128, 9]);
    }

    #[test]
    fn long_header_blocks_use_continuation_frames() {
        let mut out = Vec::new();
        frame(Kind::Headers, END_HEADERS | END_STREAM, 1, &[0; 16 * 1024 + 1], &mut out);
        assert_eq!(out[..9], [0, 0x40, 0, 1, END_STREAM, 0, 0, 0, 1]);
        assert_eq!(out[9 + 16 * 1024..], [0, 0, 1, 9, END_HEADERS, 0, 0, 0, 1, 0]);
    }
}
