//! SPDY/3.1 as a client speaks it to a server of streams: streams are opened, data goes both ways.
//!
//! Headers are compressed in SPDY, by one zlib stream for all of a connection. Those that are sent go into
//! stored blocks of it, which any decompressor reads; those that are received are passed over, for nothing
//! that a server says in them is needed. There is no flow control, for those that speak SPDY in Kubernetes
//! (`moby/spdystream`) have none: who reads slowly lets the socket fill.

#[cfg(test)]
mod tests;

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The first bit of a control frame, and the version of the protocol.
const CONTROL: u16 = 0x8003;
const HEAD_BYTES: usize = 8;
/// The last frame of a stream.
const FIN: u8 = 0x01;
/// What zlib begins with where the dictionary of SPDY/3 is used, and the dictionary's checksum.
const ZLIB_HEAD: [u8; 6] = [0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2];
/// An empty block: Go's decompressor gives what it has read only behind one.
const FLUSH: [u8; 5] = [0x00, 0x00, 0x00, 0xff, 0xff];

/// The types of control frames.
mod kind {
    pub(super) const SYN_STREAM: u16 = 1;
    pub(super) const SYN_REPLY: u16 = 2;
    pub(super) const RST_STREAM: u16 = 3;
    pub(super) const PING: u16 = 6;
}

/// What a server sends, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It takes a stream.
    Reply(u32),
    /// It takes no more of a stream, and sends no more on it.
    Reset(u32),
    /// To be answered with the same, if it is not an answer itself.
    Ping(u32),
    /// Bytes on a stream.
    Data {
        /// On which.
        stream: u32,
        /// A piece of a frame.
        bytes: Bytes,
        /// Whether the server sends no more on it.
        ends: bool,
    },
}

/// The peer does not speak SPDY/3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation;

/// Reads what a server sends.
#[derive(Debug, Default)]
pub struct Reader {
    /// How much of a control frame is still to be passed over.
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
    /// What comes next in what was received; `None` where more must be received first.
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

    /// Reads a control frame by its first four bytes, which are a stream or a ping, and passes over the rest.
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

/// What became of a control frame.
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

/// Writes what a client sends.
#[derive(Debug, Default)]
pub struct Writer {
    /// Whether the zlib stream of headers has begun.
    compresses: bool,
}

impl Writer {
    /// Opens a stream; names of headers are in lower case.
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
        out.put_u32(0); // belongs to no other stream
        out.put_u16(0); // is as important as all others
        out.put_slice(&compressed);
    }
}

/// Writes bytes on a stream; the last ones end its way to the server.
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

/// Writes a ping; those of clients are odd, those of servers even.
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
