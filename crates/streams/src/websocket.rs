//! WebSocket frames (RFC 6455) as a server reads and writes them.

#[cfg(test)]
mod tests;

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The first bit of a frame that ends its message.
const FINAL: u8 = 0x80;
/// The three bits after it belong to extensions, and none is agreed on.
const RESERVED: u8 = 0x70;
/// The first bit of the second byte: the payload is masked.
const MASKED: u8 = 0x80;
/// Lengths above this follow in two or eight bytes; control frames are no longer.
const SHORT_MAX: usize = 125;
const MASK_BYTES: usize = 4;

/// Why a connection is closed.
pub mod close_code {
    /// There is nothing more to say.
    pub const NORMAL: u16 = 1000;
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: u16 = 1002;
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// More of the message that was begun.
    Continuation = 0x0,
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

impl Opcode {
    const fn of(bits: u8) -> Option<Self> {
        Some(match bits {
            0x0 => Self::Continuation,
            0x1 => Self::Text,
            0x2 => Self::Binary,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xa => Self::Pong,
            _ => return None,
        })
    }

    const fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// What a client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A piece of a message, text or bytes.
    Data {
        /// Whether it is the message's first piece.
        begins: bool,
        /// The piece; a message may have pieces without bytes.
        bytes: Bytes,
        /// Whether it is the message's last piece.
        ends: bool,
    },
    /// To be answered with a pong of the same bytes.
    Ping(Bytes),
    /// The client leaves.
    Close,
}

/// A frame that a client must not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation;

/// Writes a whole message, or a control frame, as a server sends it.
pub fn write(opcode: Opcode, payload: &[u8], out: &mut BytesMut) {
    write_parts(opcode, &[payload], out);
}

/// The same with a payload in parts.
pub fn write_parts(opcode: Opcode, payload: &[&[u8]], out: &mut BytesMut) {
    let length = payload.iter().map(|part| part.len()).sum::<usize>();
    out.reserve(10 + length);
    out.put_u8(FINAL | opcode as u8);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if usize::from(short) <= SHORT_MAX => out.put_u8(short),
        (_, Ok(wide)) => {
            out.put_u8(126);
            out.put_u16(wide);
        }
        _ => {
            out.put_u8(127);
            out.put_u64(length as u64);
        }
    }
    payload.iter().for_each(|part| out.put_slice(part));
}

/// Writes the frame that ends a connection.
pub fn write_close(code: u16, out: &mut BytesMut) {
    write(Opcode::Close, &code.to_be_bytes(), out);
}

/// Reads what comes from a client.
#[derive(Debug, Default)]
pub struct Reader {
    /// The frame of data whose payload is being read.
    frame: Option<Payload>,
    /// Whether a message has begun and not ended.
    in_message: bool,
}

/// What is still to come of a frame's payload.
#[derive(Debug)]
struct Payload {
    rest: u64,
    mask: [u8; MASK_BYTES],
    /// Whether nothing of its message was given yet.
    begins: bool,
    ends_message: bool,
}

/// The head of a frame.
struct Head {
    opcode: Opcode,
    is_final: bool,
    /// Of the head itself, the mask included.
    bytes: usize,
    /// Of the payload.
    length: u64,
    mask: [u8; MASK_BYTES],
}

impl Reader {
    /// Takes what comes next out of what was received; `None` where more must be received first.
    pub fn read(&mut self, buffer: &mut BytesMut) -> Result<Option<Event>, Violation> {
        loop {
            if let Some(payload) = &mut self.frame {
                let Some(piece) = payload.next(buffer) else { return Ok(None) };
                if payload.rest == 0 {
                    self.in_message = !payload.ends_message;
                    self.frame = None;
                }
                return Ok(Some(piece));
            }
            let Some(head) = Head::read(buffer)? else { return Ok(None) };
            if head.opcode.is_control() {
                let Some(event) = head.control(buffer)? else { return Ok(None) };
                if let Some(event) = event {
                    return Ok(Some(event));
                }
                continue;
            }
            if (head.opcode == Opcode::Continuation) != self.in_message {
                return Err(Violation);
            }
            buffer.advance(head.bytes);
            self.frame = Some(Payload {
                rest: head.length,
                mask: head.mask,
                begins: !self.in_message,
                ends_message: head.is_final,
            });
            self.in_message = true;
        }
    }
}

impl Payload {
    /// The next piece, if there is one: as much as has come.
    fn next(&mut self, buffer: &mut BytesMut) -> Option<Event> {
        if buffer.is_empty() && self.rest > 0 {
            return None;
        }
        let length = usize::try_from(self.rest).unwrap_or(usize::MAX).min(buffer.len());
        let mut bytes = buffer.split_to(length);
        unmask(&mut bytes, self.mask);
        self.mask.rotate_left(length % MASK_BYTES);
        self.rest -= length as u64;
        let begins = std::mem::take(&mut self.begins);
        Some(Event::Data {
            begins,
            bytes: bytes.freeze(),
            ends: self.ends_message && self.rest == 0,
        })
    }
}

fn unmask(bytes: &mut [u8], mask: [u8; MASK_BYTES]) {
    let mut chunks = bytes.chunks_exact_mut(MASK_BYTES);
    for chunk in &mut chunks {
        chunk.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
    }
    chunks.into_remainder().iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
}

impl Head {
    /// Reads a frame's head, once it is whole. Clients must mask what they send.
    fn read(bytes: &[u8]) -> Result<Option<Self>, Violation> {
        let [first, second, rest @ ..] = bytes else { return Ok(None) };
        if second & MASKED == 0 || first & RESERVED != 0 {
            return Err(Violation);
        }
        let opcode = Opcode::of(first & 0xf).ok_or(Violation)?;
        let (wide, length) = match second & !MASKED {
            126 => (2, rest.first_chunk().map(|bytes| u64::from(u16::from_be_bytes(*bytes)))),
            127 => (8, rest.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))),
            length => (0, Some(u64::from(length))),
        };
        let mask = rest.get(wide..).and_then(<[u8]>::first_chunk);
        let (Some(length), Some(mask)) = (length, mask) else { return Ok(None) };
        let bytes = 2 + wide + MASK_BYTES;
        Ok(Some(Self { opcode, is_final: first & FINAL != 0, bytes, length, mask: *mask }))
    }

    /// A control frame, once it is whole; a pong says nothing.
    fn control(&self, buffer: &mut BytesMut) -> Result<Option<Option<Event>>, Violation> {
        if !self.is_final || self.length > SHORT_MAX as u64 {
            return Err(Violation);
        }
        let end = self.bytes + self.length as usize;
        if buffer.len() < end {
            return Ok(None);
        }
        let mut payload = buffer.split_to(end).split_off(self.bytes);
        unmask(&mut payload, self.mask);
        Ok(Some(match self.opcode {
            Opcode::Ping => Some(Event::Ping(payload.freeze())),
            Opcode::Close => Some(Event::Close),
            _ => None,
        }))
    }
}
