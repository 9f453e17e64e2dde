//! Frames: a head, and bytes that clients mask.

use bytes::{Buf, BytesMut};

/// The first bit of a frame that ends its message.
const FINAL: u8 = 0x80;
/// The first bit of the second byte: the payload is masked.
const MASKED: u8 = 0x80;
/// Lengths above this follow in two or eight bytes; control frames are no longer.
const SHORT_MAX: usize = 125;
const MASK_BYTES: usize = 4;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    /// A message that is text.
    Text = 0x1,
    /// A message of bytes.
    Binary = 0x2,
    /// The sender leaves.
    Close = 0x8,
    /// Who is asked answers with the same bytes …
    Ping = 0x9,
    /// … in this.
    Pong = 0xa,
}

/// What a client sends that is to be answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Control {
    Ping(Vec<u8>),
    Close,
}

/// A frame that a client must not send.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation;

/// A whole message, or a control frame, as a server sends it.
pub(super) fn write(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(10 + payload.len());
    out.push(FINAL | opcode as u8);
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(length), _) if usize::from(length) <= SHORT_MAX => out.push(length),
        (_, Ok(length)) => {
            out.push(126);
            out.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            out.push(127);
            out.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
    out
}

/// What has come from a client and was not looked at yet.
#[derive(Default)]
pub(super) struct Incoming {
    buffer: BytesMut,
    /// How much of a message's payload is still to be passed over.
    skip: u64,
}

/// The head of a frame.
struct Head {
    first: u8,
    /// Of the head itself, the mask included.
    bytes: usize,
    /// Of the payload.
    length: u64,
}

impl Incoming {
    /// Where what comes is put.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next control frame to be answered; `None` where more must come first.
    pub(super) fn next(&mut self) -> Result<Option<Control>, Violation> {
        loop {
            let passed = usize::try_from(self.skip).unwrap_or(usize::MAX).min(self.buffer.len());
            self.buffer.advance(passed);
            self.skip -= passed as u64;
            if self.skip > 0 {
                return Ok(None);
            }
            let Some(head) = head(&self.buffer)? else { return Ok(None) };
            let opcode = head.first & 0xf;
            if opcode < Opcode::Close as u8 {
                self.buffer.advance(head.bytes);
                self.skip = head.length;
                continue;
            }
            if head.first & FINAL == 0 || head.length > SHORT_MAX as u64 {
                return Err(Violation);
            }
            let end = head.bytes + head.length as usize;
            if self.buffer.len() < end {
                return Ok(None);
            }
            let frame = self.buffer.split_to(end);
            let (mask, payload) = frame[head.bytes - MASK_BYTES..].split_at(MASK_BYTES);
            match opcode {
                opcode if opcode == Opcode::Ping as u8 => {
                    let masked = payload.iter().zip(mask.iter().cycle());
                    return Ok(Some(Control::Ping(
                        masked.map(|(byte, mask)| byte ^ mask).collect(),
                    )));
                }
                opcode if opcode == Opcode::Close as u8 => return Ok(Some(Control::Close)),
                opcode if opcode == Opcode::Pong as u8 => {}
                _ => return Err(Violation),
            }
        }
    }
}

/// Reads a frame's head, once it is whole. Clients must mask what they send.
fn head(bytes: &[u8]) -> Result<Option<Head>, Violation> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    if second & MASKED == 0 {
        return Err(Violation);
    }
    let (wide, length) = match second & !MASKED {
        126 => (2, rest.first_chunk().map(|bytes| u64::from(u16::from_be_bytes(*bytes)))),
        127 => (8, rest.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))),
        length => (0, Some(u64::from(length))),
    };
    let bytes = 2 + wide + MASK_BYTES;
    let whole = rest.len() + 2 >= bytes;
    Ok(length.filter(|_| whole).map(|length| Head { first: *first, bytes, length }))
}
