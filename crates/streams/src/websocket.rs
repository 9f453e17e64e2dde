//! WebSocket frames (RFC 6455) from the server's side.

#[cfg(test)]
mod tests;

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The FIN bit, which marks the last frame of a message.
const FINAL: u8 = 0x80;
/// The reserved bits, which extensions would use; none is negotiated.
const RESERVED: u8 = 0x70;
/// The mask bit of the second byte.
const MASKED: u8 = 0x80;
/// Longer payload lengths follow in two or eight bytes; control frames cannot be longer.
const SHORT_MAX: usize = 125;
const MASK_BYTES: usize = 4;

/// Status codes of close frames.
pub mod close_code {
    /// Normal closure.
    pub const NORMAL: u16 = 1000;
    /// Protocol error.
    pub const PROTOCOL_ERROR: u16 = 1002;
}

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A continuation of a message.
    Continuation = 0x0,
    /// A text message.
    Text = 0x1,
    /// A binary message.
    Binary = 0x2,
    /// A close frame.
    Close = 0x8,
    /// A ping, to be answered with a pong of the same payload.
    Ping = 0x9,
    /// A pong.
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

/// An event from a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A piece of a text or binary message.
    Data {
        /// Whether it is the message's first piece.
        begins: bool,
        /// The piece, which may be empty.
        bytes: Bytes,
        /// Whether it is the message's last piece.
        ends: bool,
    },
    /// A ping, to be answered with a pong of the same payload.
    Ping(Bytes),
    /// The client closes the connection.
    Close,
}

/// The client violated the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation;

/// Writes a whole message or a control frame, unmasked.
pub fn write(opcode: Opcode, payload: &[u8], out: &mut BytesMut) {
    write_parts(opcode, &[payload], out);
}

/// Writes a whole message or a control frame, unmasked, with a payload in parts.
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

/// Writes a close frame.
pub fn write_close(code: u16, out: &mut BytesMut) {
    write(Opcode::Close, &code.to_be_bytes(), out);
}

/// Returns the answer to a ping.
pub fn pong(payload: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    write(Opcode::Pong, payload, &mut out);
    out
}

/// Reads frames of a client.
#[derive(Debug, Default)]
pub struct Reader {
    /// The data frame whose payload is being read.
    frame: Option<Payload>,
    /// Whether a message has begun and not ended.
    in_message: bool,
}

/// The remaining payload of a frame.
#[derive(Debug)]
struct Payload {
    rest: u64,
    mask: [u8; MASK_BYTES],
    /// Whether no piece of its message was returned yet.
    begins: bool,
    ends_message: bool,
}

/// The head of a frame.
struct Head {
    opcode: Opcode,
    is_final: bool,
    /// The length of the head, mask included.
    bytes: usize,
    /// The length of the payload.
    length: u64,
    mask: [u8; MASK_BYTES],
}

impl Reader {
    /// Reads the next event from the received bytes; `None` if more bytes are needed.
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
    /// Returns all received bytes as the next piece; `None` if there are none.
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
    /// Reads a frame head; `None` if it is not complete. Clients must mask their frames.
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

    /// Reads a control frame. Returns `None` if the frame is not complete, and `Some(None)` for a
    /// pong, which is no event.
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
