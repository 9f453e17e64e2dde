//! The coupling of two connections with different protocols.

use bytes::BytesMut;

/// The number of bytes that may wait for one side before reading from the other pauses.
const WAITING_BYTES_MAX: usize = 64 * 1024;

/// The buffers of one connection.
#[derive(Debug, Default)]
pub struct Wire {
    /// Received bytes that were not processed yet.
    pub incoming: BytesMut,
    /// Bytes to send.
    pub outgoing: BytesMut,
    /// Whether the peer sends no more.
    pub has_ended: bool,
    /// The answer to the peer's newest ping, while there is no room for it.
    answer: BytesMut,
}

impl Wire {
    /// Whether more bytes may be queued for sending.
    pub fn has_room(&self) -> bool {
        self.outgoing.len() < WAITING_BYTES_MAX
    }

    /// Queues the answer to a ping. While there is no room, the newest answer waits and replaces the
    /// one before. So pings never keep what came behind them from being processed: the other side
    /// may wait for that before it reads.
    pub fn answer(&mut self, frame: BytesMut) {
        self.answer = frame;
        self.send_answer();
    }

    /// Queues the answer that waits, once there is room.
    pub fn send_answer(&mut self) {
        if !self.answer.is_empty() && self.has_room() {
            self.outgoing.extend_from_slice(&self.answer);
            self.answer.clear();
        }
    }

    /// Whether more should be received: the peer may send more, and fewer than 64 KiB wait to be
    /// processed.
    pub fn is_wanted(&self) -> bool {
        !self.has_ended && self.incoming.len() < WAITING_BYTES_MAX
    }
}

/// Translates between a client's and a backend's protocol.
pub trait Coupling: Send {
    /// The client's and the backend's connection.
    fn wires(&mut self) -> (&mut Wire, &mut Wire);

    /// Processes received bytes while the output buffers have room.
    fn advance(&mut self);

    /// Called at regular intervals of a few seconds.
    fn tick(&mut self) {}

    /// Whether nothing is left to do but to send the queued bytes.
    fn is_over(&self) -> bool;
}

/// Forwards bytes unchanged between two sides with the same protocol. When one side ends, the other
/// one ends, too.
#[derive(Debug, Default)]
pub struct Pipe {
    client: Wire,
    backend: Wire,
}

impl Coupling for Pipe {
    fn wires(&mut self) -> (&mut Wire, &mut Wire) {
        (&mut self.client, &mut self.backend)
    }

    fn advance(&mut self) {
        forward(&mut self.client, &mut self.backend);
        forward(&mut self.backend, &mut self.client);
    }

    fn is_over(&self) -> bool {
        let is_over = |wire: &Wire| wire.has_ended && wire.incoming.is_empty();
        is_over(&self.client) || is_over(&self.backend)
    }
}

fn forward(from: &mut Wire, to: &mut Wire) {
    if to.outgoing.is_empty() {
        std::mem::swap(&mut from.incoming, &mut to.outgoing);
    } else if to.has_room() {
        to.outgoing.extend_from_slice(&from.incoming);
        from.incoming.clear();
    }
}
