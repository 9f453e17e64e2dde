//! Remote commands (exec, attach): a client's WebSocket with the channels of `v5.channel.k8s.io`, and a
//! backend that has a SPDY stream for each of them (upstream: `StreamTranslatorHandler`).

#[cfg(test)]
mod tests;

use bytes::{Bytes, BytesMut};

use crate::coupling::{Coupling, Wire};
use crate::spdy;
use crate::websocket::{self, Event, Opcode, Violation, close_code};

/// The channels, by their numbers.
mod channel {
    pub(super) const STDIN: usize = 0;
    pub(super) const STDOUT: usize = 1;
    pub(super) const STDERR: usize = 2;
    pub(super) const ERROR: usize = 3;
    pub(super) const RESIZE: usize = 4;
    pub(super) const COUNT: usize = 5;
    /// Behind it stands the number of one that ends.
    pub(super) const CLOSE: u8 = 255;
}

/// The order in which a backend expects the streams, and what it calls them.
const STREAMS: [(usize, &str); channel::COUNT] = [
    (channel::ERROR, "error"),
    (channel::STDIN, "stdin"),
    (channel::STDOUT, "stdout"),
    (channel::STDERR, "stderr"),
    (channel::RESIZE, "resize"),
];

/// A backend has so many ticks to take a stream (upstream: 30 s).
const OPENING_TICKS_MAX: u32 = 6;
/// After so many without a byte the session ends (upstream: 4 h).
const QUIET_TICKS_MAX: u32 = 4 * 60 * 60 / 5;
/// What became of a command is a Status; no backend needs more for it.
const ERROR_BYTES_MAX: usize = 64 * 1024;

/// Which channels a command has beside the one for errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// What the client writes.
    pub stdin: bool,
    /// What the command writes.
    pub stdout: bool,
    /// What the command writes about what it does; a terminal has none.
    pub stderr: bool,
    /// The size of the client's terminal.
    pub resize: bool,
}

impl Wanted {
    const fn has(self, channel: usize) -> bool {
        match channel {
            channel::STDIN => self.stdin,
            channel::STDOUT => self.stdout,
            channel::STDERR => self.stderr,
            channel::RESIZE => self.resize,
            _ => true,
        }
    }

    /// The message by which a client learns that its WebSocket serves, before anything else is known: an
    /// empty one on the lowest channel that is written to.
    pub fn greeting(self) -> BytesMut {
        let lowest = [channel::STDOUT, channel::STDERR].into_iter().find(|c| self.has(*c));
        let mut out = BytesMut::new();
        let number = lowest.unwrap_or(channel::ERROR) as u8;
        websocket::write(Opcode::Binary, &[number], &mut out);
        out
    }
}

/// What became of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The backend said all that it has to say, at last this about the command.
    Ended(Vec<u8>),
    /// The backend broke off: why.
    BrokenOff(&'static str),
    /// The client left, or does not speak the protocol.
    Left,
}

/// A session.
#[derive(Debug)]
pub struct RemoteCommand {
    wanted: Wanted,
    client: Wire,
    backend: Wire,
    frames: websocket::Reader,
    events: spdy::Reader,
    writer: spdy::Writer,
    /// By channel.
    streams: [Stream; channel::COUNT],
    /// How many of [`STREAMS`] the backend has taken, or need not take.
    opened: usize,
    message: Message,
    error: Vec<u8>,
    outcome: Option<Outcome>,
    opening_ticks: u32,
    quiet_ticks: u32,
    pings: u32,
}

/// One of the backend's streams.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// 0 where there is none.
    id: u32,
    /// The backend sends no more.
    read: bool,
    /// The backend is sent no more.
    written: bool,
}

/// What is known of the message of which pieces come.
#[derive(Clone, Copy, Debug)]
enum Message {
    /// Not even its channel.
    Unknown,
    /// Its channel.
    On(u8),
    /// It says that a channel ends, once it is known which.
    Closes(Option<u8>),
}

impl RemoteCommand {
    /// A session whose client was greeted and whose backend waits for streams.
    pub fn new(wanted: Wanted) -> Self {
        let mut command = Self {
            wanted,
            client: Wire::default(),
            backend: Wire::default(),
            frames: websocket::Reader::default(),
            events: spdy::Reader::default(),
            writer: spdy::Writer::default(),
            streams: [Stream { id: 0, read: true, written: true }; channel::COUNT],
            opened: 0,
            message: Message::Unknown,
            error: Vec::new(),
            outcome: None,
            opening_ticks: 0,
            quiet_ticks: 0,
            pings: 0,
        };
        command.open_next();
        command
    }

    /// What became of it, once it is over.
    pub fn outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    /// Opens the next stream that is wanted.
    fn open_next(&mut self) {
        while let Some((channel, name)) = STREAMS.get(self.opened) {
            if self.wanted.has(*channel) {
                let id = 2 * self.opened as u32 + 1;
                self.streams[*channel] = Stream { id, read: false, written: false };
                let headers = [("streamtype", *name)];
                self.writer.open(id, &headers, &mut self.backend.outgoing);
                return;
            }
            self.opened += 1;
        }
    }

    /// Whether the backend has taken every stream: it would drop bytes on others.
    const fn is_open(&self) -> bool {
        self.opened == STREAMS.len()
    }

    /// The channel of a stream.
    fn channel_of(&self, id: u32) -> Option<usize> {
        self.streams.iter().position(|stream| stream.id == id && id != 0)
    }

    fn end(&mut self, outcome: Outcome) {
        self.outcome.get_or_insert(outcome);
    }

    /// What a backend says.
    fn take_event(&mut self, event: spdy::Event) {
        match event {
            spdy::Event::Reply(id) => {
                let awaited = STREAMS.get(self.opened).map(|(channel, _)| *channel);
                if awaited.is_some() && self.channel_of(id) == awaited {
                    self.opened += 1;
                    self.opening_ticks = 0;
                    self.open_next();
                }
            }
            spdy::Event::Reset(id) => match self.channel_of(id) {
                Some(_) if !self.is_open() => self.end(Outcome::BrokenOff("Stream reset")),
                Some(channel) => {
                    self.streams[channel].read = true;
                    self.streams[channel].written = true;
                }
                None => {}
            },
            spdy::Event::Ping(id) if id % 2 == 0 => spdy::ping(id, &mut self.backend.outgoing),
            spdy::Event::Ping(_) => {}
            spdy::Event::Data { stream, bytes, ends } => {
                let Some(channel) = self.channel_of(stream) else { return };
                self.take_output(channel, &bytes);
                self.streams[channel].read |= ends;
            }
        }
    }

    fn take_output(&mut self, channel: usize, bytes: &Bytes) {
        match channel {
            _ if bytes.is_empty() => {}
            channel::STDOUT | channel::STDERR => {
                let parts = [&[channel as u8][..], bytes];
                websocket::write_parts(Opcode::Binary, &parts, &mut self.client.outgoing);
            }
            channel::ERROR if self.error.len() + bytes.len() > ERROR_BYTES_MAX => {
                self.end(Outcome::BrokenOff("the error stream is too long"));
            }
            channel::ERROR => self.error.extend_from_slice(bytes),
            _ => {}
        }
    }

    /// What a client says.
    fn take_frame(&mut self, event: Event) {
        match event {
            Event::Ping(bytes) => websocket::write(Opcode::Pong, &bytes, &mut self.client.outgoing),
            Event::Close => self.end(Outcome::Left),
            Event::Data { begins, bytes, ends } => {
                if begins {
                    self.message = Message::Unknown;
                }
                self.take_input(bytes);
                match self.message {
                    Message::Closes(which) if ends && self.outcome.is_none() => self.close(which),
                    _ => {}
                }
            }
        }
    }

    /// A piece of a message: its first byte says what the rest is.
    fn take_input(&mut self, mut bytes: Bytes) {
        while !bytes.is_empty() {
            match self.message {
                Message::Unknown => {
                    let first = bytes.split_to(1)[0];
                    self.message = match first {
                        channel::CLOSE => Message::Closes(None),
                        channel => Message::On(channel),
                    };
                }
                Message::Closes(None) => self.message = Message::Closes(Some(bytes.split_to(1)[0])),
                Message::Closes(Some(_)) => return self.end(Outcome::Left),
                Message::On(number) => {
                    let number = usize::from(number);
                    if matches!(number, channel::STDIN | channel::RESIZE)
                        && !self.streams[number].written
                    {
                        let id = self.streams[number].id;
                        spdy::data(id, &bytes, false, &mut self.backend.outgoing);
                    }
                    return; // What no channel takes is passed over, as upstream does.
                }
            }
        }
    }

    /// The client writes no more on a channel. One that there is not ends the session, as upstream has it.
    fn close(&mut self, which: Option<u8>) {
        match which.map(usize::from) {
            Some(number @ (channel::STDIN | channel::RESIZE)) => {
                let stream = &mut self.streams[number];
                if !std::mem::replace(&mut stream.written, true) {
                    spdy::data(stream.id, &[], true, &mut self.backend.outgoing);
                }
            }
            Some(number) if number < channel::COUNT => {}
            _ => self.end(Outcome::Left),
        }
    }

    /// Takes what the backend sent, while the client has room for what comes of it.
    fn advance_backend(&mut self) {
        while self.outcome.is_none() && self.client.has_room() && self.backend.has_room() {
            match self.events.read(&mut self.backend.incoming) {
                Ok(Some(event)) => self.take_event(event),
                Ok(None) if self.all_is_said() => {
                    let said = std::mem::take(&mut self.error);
                    self.end(Outcome::Ended(said));
                }
                Ok(None) if self.backend.has_ended => {
                    self.end(Outcome::BrokenOff("the connection to the kubelet broke"));
                }
                Ok(None) => return,
                Err(spdy::Violation) => self.end(Outcome::BrokenOff("the kubelet speaks no SPDY")),
            }
        }
    }

    /// Whether the command's output and what became of it are there as a whole.
    fn all_is_said(&self) -> bool {
        let outputs = [channel::STDOUT, channel::STDERR, channel::ERROR];
        self.is_open() && outputs.iter().all(|channel| self.streams[*channel].read)
    }

    /// Takes what the client sent, while the backend has room for it.
    fn advance_client(&mut self) {
        while self.outcome.is_none() && self.backend.has_room() && self.client.has_room() {
            match self.frames.read(&mut self.client.incoming) {
                Ok(Some(event)) => self.take_frame(event),
                Ok(None) if self.client.has_ended => self.end(Outcome::Left),
                Ok(None) => return,
                Err(Violation) => self.end(Outcome::Left),
            }
        }
    }
}

impl Coupling for RemoteCommand {
    fn wires(&mut self) -> (&mut Wire, &mut Wire) {
        (&mut self.client, &mut self.backend)
    }

    fn advance(&mut self) {
        if !self.client.incoming.is_empty() || !self.backend.incoming.is_empty() {
            self.quiet_ticks = 0;
        }
        self.advance_backend();
        if self.is_open() || self.client.has_ended {
            self.advance_client();
        }
    }

    fn tick(&mut self) {
        self.quiet_ticks += 1;
        self.opening_ticks += 1;
        if !self.is_open() && self.opening_ticks > OPENING_TICKS_MAX {
            self.end(Outcome::BrokenOff("Timeout occurred"));
        }
        if self.quiet_ticks > QUIET_TICKS_MAX {
            self.end(Outcome::Left);
        }
        if self.backend.has_room() {
            self.pings = self.pings.wrapping_add(1);
            spdy::ping(self.pings.wrapping_mul(2) | 1, &mut self.backend.outgoing);
        }
    }

    fn is_over(&self) -> bool {
        self.outcome.is_some()
    }
}

/// Tells a client by a Status what became of its command, and goodbye.
pub fn tell(status: &[u8], out: &mut BytesMut) {
    let number = [channel::ERROR as u8];
    websocket::write_parts(Opcode::Binary, &[&number, status], out);
    websocket::write_close(close_code::NORMAL, out);
}
