//! SPDY/3.1 from the client's side: opens streams, and transfers data in both directions.
//!
//! SPDY compresses headers with one zlib stream per connection. Sent headers use stored blocks,
//! which every decompressor accepts; received ones are skipped, because the client needs none of
//! them. There is no flow control, because the SPDY implementation of Kubernetes
//! (`moby/spdystream`) has none: a slow reader lets the socket's buffer fill up.

#[cfg(test)]
mod tests;

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The control bit, and the version of the protocol.
const CONTROL: u16 = 0x8003;
const HEAD_BYTES: usize = 8;
/// The flag of a stream's last frame.
const FIN: u8 = 0x01;
/// The zlib header for the dictionary of SPDY/3, and the dictionary's checksum.
const ZLIB_HEAD: [u8; 6] = [0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2];
/// An empty block: Go's decompressor returns data only when such a block follows.
const FLUSH: [u8; 5] = [0x00, 0x00, 0x00, 0xff, 0xff];

/// The types of control frames.
mod kind {
    pub(super) const SYN_STREAM: u16 = 1;
    pub(super) const SYN_REPLY: u16 = 2;
    pub(super) const RST_STREAM: u16 = 3;
    pub(super) const PING: u16 = 6;
}

/// A relevant event from a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server accepted a stream.
    Reply(u32),
    /// The server reset a stream.
    Reset(u32),
    /// A ping, to be answered with the same id unless it is an answer itself.
    Ping(u32),
    /// Data on a stream.
    Data {
        /// The stream id.
        stream: u32,
        /// A piece of a frame.
        bytes: Bytes,
        /// Whether the server closed its side of the stream.
        ends: bool,
    },
}

/// The peer violated SPDY/3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation;

/// Reads frames from a server.
#[derive(Debug, Default)]
pub struct Reader {
    /// The number of bytes left to skip of a control frame.
    skip: u64,
    /// The data frame that is being read.
    data: Option<Data>,
}

#[derive(Debug)]
struct Data {
    stream: u32,
    rest: usize,
    is_last: bool,
}

impl Reader {
    /// Reads the next event from the received bytes; `None` if more bytes are needed.
    pub fn read(&mut self, buffer: &mut BytesMut) -> Result<Option<Event>, Violation> {
        loop {
            let passed = usize::try_from(self.skip).unwrap_or(usize::MAX).min(buffer.len());
            buffer.advance(passed);
            self.skip -= passed as u64;
            if self.skip > 0 {
                return Ok(None);
            }
            if let Some(data) = &mut self.data {
                let Some((event, is_over)) = data.next(buffer) else { return Ok(None) };
                if is_over {
                    self.data = None;
                }
                return Ok(Some(event));
            }
            let Some(head) = buffer.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
            let first = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
            let length = u32::from_be_bytes([0, head[5], head[6], head[7]]);
            let flags = head[4];
            if first >> 31 == 0 {
                buffer.advance(HEAD_BYTES);
                let (rest, is_last) = (length as usize, flags & FIN != 0);
                self.data = Some(Data { stream: first, rest, is_last });
                continue;
            }
            if first >> 16 != u32::from(CONTROL) {
                return Err(Violation);
            }
            match self.control(first as u16, length, buffer)? {
                Control::Event(event) => return Ok(Some(event)),
                Control::Incomplete => return Ok(None),
                Control::Passed => {}
            }
        }
    }

    /// Reads a control frame by its first four bytes, which are a stream id or a ping id, and skips
    /// the rest.
    fn control(
        &mut self,
        kind: u16,
        length: u32,
        buffer: &mut BytesMut,
    ) -> Result<Control, Violation> {
        let event: fn(u32) -> Event = match kind {
            kind::SYN_REPLY => Event::Reply,
            kind::RST_STREAM => Event::Reset,
            kind::PING => Event::Ping,
            _ => {
                self.skip = u64::from(length) + HEAD_BYTES as u64;
                return Ok(Control::Passed);
            }
        };
        if length < 4 {
            return Err(Violation);
        }
        let Some(id) = buffer[HEAD_BYTES..].first_chunk() else { return Ok(Control::Incomplete) };
        let id = u32::from_be_bytes(*id);
        self.skip = u64::from(length) + HEAD_BYTES as u64;
        Ok(Control::Event(event(id)))
    }
}

/// The result of reading a control frame.
enum Control {
    Event(Event),
    Passed,
    Incomplete,
}

impl Data {
    /// The next piece, if there is one, and whether it is the frame's last.
    fn next(&mut self, buffer: &mut BytesMut) -> Option<(Event, bool)> {
        if buffer.is_empty() && self.rest > 0 {
            return None;
        }
        let bytes = buffer.split_to(self.rest.min(buffer.len())).freeze();
        self.rest -= bytes.len();
        let is_over = self.rest == 0;
        let ends = self.is_last && is_over;
        Some((Event::Data { stream: self.stream, bytes, ends }, is_over))
    }
}

/// Writes frames of a client.
#[derive(Debug, Default)]
pub struct Writer {
    /// Whether the zlib stream of headers has begun.
    compresses: bool,
}

impl Writer {
    /// Opens a stream; header names must be in lower case.
    pub fn open(&mut self, stream: u32, headers: &[(&str, &str)], out: &mut BytesMut) {
        let mut block = Vec::with_capacity(64);
        let put = |block: &mut Vec<u8>, text: &str| {
            block.put_u32(text.len() as u32);
            block.put_slice(text.as_bytes());
        };
        block.put_u32(headers.len() as u32);
        for (name, value) in headers {
            put(&mut block, name);
            put(&mut block, value);
        }
        let mut compressed = Vec::with_capacity(block.len() + 16);
        if !std::mem::replace(&mut self.compresses, true) {
            compressed.put_slice(&ZLIB_HEAD);
        }
        for stored in block.chunks(usize::from(u16::MAX)) {
            let length = stored.len() as u16;
            compressed.put_u8(0x00);
            compressed.put_u16_le(length);
            compressed.put_u16_le(!length);
            compressed.put_slice(stored);
        }
        compressed.put_slice(&FLUSH);
        control(kind::SYN_STREAM, 10 + compressed.len(), out);
        out.put_u32(stream);
        out.put_u32(0); // no associated stream
        out.put_u16(0); // the default priority
        out.put_slice(&compressed);
    }
}

/// Writes data on a stream; `ends` closes the client's side.
pub fn data(stream: u32, bytes: &[u8], ends: bool, out: &mut BytesMut) {
    const LENGTH_MAX: usize = (1 << 24) - 1;
    let (mut frames, is_empty) = (bytes.chunks(LENGTH_MAX).peekable(), bytes.is_empty());
    let mut frame = |bytes: &[u8], is_last: bool| {
        out.reserve(HEAD_BYTES + bytes.len());
        out.put_u32(stream);
        out.put_u32(u32::from(if is_last { FIN } else { 0 }) << 24 | bytes.len() as u32);
        out.put_slice(bytes);
    };
    if is_empty {
        return frame(&[], ends);
    }
    while let Some(bytes) = frames.next() {
        frame(bytes, ends && frames.peek().is_none());
    }
}

/// Writes a ping; ids of clients are odd, those of servers even.
pub fn ping(id: u32, out: &mut BytesMut) {
    control(kind::PING, 4, out);
    out.put_u32(id);
}

/// Writes the head of a control frame without flags.
fn control(kind: u16, length: usize, out: &mut BytesMut) {
    out.reserve(HEAD_BYTES + length);
    out.put_u16(CONTROL);
    out.put_u16(kind);
    out.put_u32(length as u32);
}
