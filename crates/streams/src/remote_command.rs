//! Remote commands (exec, attach): translates between a client's WebSocket with the channels of
//! `v5.channel.k8s.io` and a backend with a SPDY stream for each channel (upstream:
//! `StreamTranslatorHandler`).

#[cfg(test)]
mod tests;

use bytes::{Bytes, BytesMut};

use crate::coupling::{Coupling, Wire};
use crate::spdy;
use crate::websocket::{self, Event, Opcode, Violation, close_code};

/// The channel numbers.
mod channel {
    pub(super) const STDIN: usize = 0;
    pub(super) const STDOUT: usize = 1;
    pub(super) const STDERR: usize = 2;
    pub(super) const ERROR: usize = 3;
    pub(super) const RESIZE: usize = 4;
    pub(super) const COUNT: usize = 5;
    /// A message on this channel has the number of a channel that ends.
    pub(super) const CLOSE: u8 = 255;
}

/// The order in which a backend expects the streams, and their types.
const STREAMS: [(usize, &str); channel::COUNT] = [
    (channel::ERROR, "error"),
    (channel::STDIN, "stdin"),
    (channel::STDOUT, "stdout"),
    (channel::STDERR, "stderr"),
    (channel::RESIZE, "resize"),
];

/// The number of ticks within which a backend must accept a stream (upstream: 30 s).
const OPENING_TICKS_MAX: u32 = 6;
/// The number of ticks without a byte after which the session ends (upstream: 4 h).
const QUIET_TICKS_MAX: u32 = 4 * 60 * 60 / 5;
/// The maximum size of the Status about a command; no backend needs more.
const ERROR_BYTES_MAX: usize = 64 * 1024;

/// The channels of a command besides the error channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// Input from the client.
    pub stdin: bool,
    /// The command's output.
    pub stdout: bool,
    /// The command's error output; absent with a terminal.
    pub stderr: bool,
    /// The size of the client's terminal.
    pub resize: bool,
}

impl Channels {
    const fn has(self, channel: usize) -> bool {
        match channel {
            channel::STDIN => self.stdin,
            channel::STDOUT => self.stdout,
            channel::STDERR => self.stderr,
            channel::RESIZE => self.resize,
            _ => true,
        }
    }

    /// The first message, which shows a client that the WebSocket is established: an empty one on
    /// the lowest channel for output.
    pub fn greeting(self) -> BytesMut {
        let lowest = [channel::STDOUT, channel::STDERR].into_iter().find(|c| self.has(*c));
        let mut out = BytesMut::new();
        let number = lowest.unwrap_or(channel::ERROR) as u8;
        websocket::write(Opcode::Binary, &[number], &mut out);
        out
    }
}

/// The outcome of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The backend completed the session, with this final Status of the command.
    Ended(Vec<u8>),
    /// The backend failed, with this reason.
    BrokenOff(&'static str),
    /// The client left, or violated the protocol.
    Left,
}

/// A session.
#[derive(Debug)]
pub struct RemoteCommand {
    channels: Channels,
    client: Wire,
    backend: Wire,
    frames: websocket::Reader,
    events: spdy::Reader,
    writer: spdy::Writer,
    /// The streams, by channel.
    streams: [Stream; channel::COUNT],
    /// The number of [`STREAMS`] that the backend has accepted or that are not used.
    opened: usize,
    message: Message,
    error: Vec<u8>,
    outcome: Option<Outcome>,
    opening_ticks: u32,
    quiet_ticks: u32,
    pings: u32,
}

/// A stream of the backend.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// The stream id; 0 if there is no stream.
    id: u32,
    /// Whether the backend has closed its side.
    read: bool,
    /// Whether the client's side is closed.
    written: bool,
}

/// The state of a message that arrives in pieces.
#[derive(Clone, Copy, Debug)]
enum Message {
    /// The channel is not known yet.
    Unknown,
    /// The channel.
    On(u8),
    /// A close message, with the number of the closed channel once that has arrived.
    Closes(Option<u8>),
}

impl RemoteCommand {
    /// A session whose client was greeted and whose backend waits for streams.
    pub fn new(channels: Channels) -> Self {
        let mut command = Self {
            channels,
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

    /// Takes the outcome, once the session is over.
    pub fn outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    /// Opens the next stream that is used.
    fn open_next(&mut self) {
        while let Some((channel, name)) = STREAMS.get(self.opened) {
            if self.channels.has(*channel) {
                let id = 2 * self.opened as u32 + 1;
                self.streams[*channel] = Stream { id, read: false, written: false };
                let headers = [("streamtype", *name)];
                self.writer.open(id, &headers, &mut self.backend.outgoing);
                return;
            }
            self.opened += 1;
        }
    }

    /// Whether the backend has accepted every stream. The backend would drop data on a stream that
    /// it has not accepted.
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

    /// Processes an event of the backend.
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
            spdy::Event::Ping(id) if id % 2 == 0 => {
                let mut answer = BytesMut::new();
                spdy::ping(id, &mut answer);
                self.backend.answer(answer);
            }
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

    /// Processes an event of the client.
    fn take_frame(&mut self, event: Event) {
        match event {
            Event::Ping(bytes) => self.client.answer(websocket::pong(&bytes)),
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

    /// Processes a piece of a message; its first byte is the channel.
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
                    return; // Data on an unused channel is ignored, as in upstream.
                }
            }
        }
    }

    /// Closes the client's side of a channel. As in upstream, an unknown channel ends the session.
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

    /// Processes data from the backend, while the client has room for the output. It does so, too,
    /// while the command reads no input: it may have to write first.
    fn advance_backend(&mut self) {
        while self.outcome.is_none() && self.client.has_room() {
            match self.events.read(&mut self.backend.incoming) {
                Ok(Some(event)) => self.take_event(event),
                Ok(None) if self.is_output_complete() => {
                    let error = std::mem::take(&mut self.error);
                    self.end(Outcome::Ended(error));
                }
                Ok(None) if self.backend.has_ended => {
                    self.end(Outcome::BrokenOff("the connection to the kubelet broke"));
                }
                Ok(None) => return,
                Err(spdy::Violation) => self.end(Outcome::BrokenOff("the kubelet speaks no SPDY")),
            }
        }
    }

    /// Whether the command's output and final Status are complete.
    fn is_output_complete(&self) -> bool {
        let outputs = [channel::STDOUT, channel::STDERR, channel::ERROR];
        self.is_open() && outputs.iter().all(|channel| self.streams[*channel].read)
    }

    /// Processes data from the client, while the backend has room for it. It does so, too, while
    /// the client reads no output: Ctrl-C may be among the input.
    fn advance_client(&mut self) {
        while self.outcome.is_none() && self.backend.has_room() {
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
        self.client.send_answer();
        self.backend.send_answer();
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

/// Sends the client the final Status of its command, and closes the connection.
pub fn finish(status: &[u8], out: &mut BytesMut) {
    let number = [channel::ERROR as u8];
    websocket::write_parts(Opcode::Binary, &[&number, status], out);
    websocket::write_close(close_code::NORMAL, out);
}
