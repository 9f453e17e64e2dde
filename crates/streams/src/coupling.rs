//! Two connections, each with a protocol of its own.

use bytes::BytesMut;

/// So much may wait to be sent to one side before nothing more is taken from the other.
const WAITING_BYTES_MAX: usize = 64 * 1024;

/// The bytes of one of the connections.
#[derive(Debug, Default)]
pub struct Wire {
    /// What was received, and not looked at yet.
    pub incoming: BytesMut,
    /// What is to be sent.
    pub outgoing: BytesMut,
    /// Whether the peer sends no more.
    pub has_ended: bool,
}

impl Wire {
    /// Whether there is room for more to be sent.
    pub fn has_room(&self) -> bool {
        self.outgoing.len() < WAITING_BYTES_MAX
    }

    /// Whether more should be received: what was received before has been looked at, but for a beginning.
    pub fn is_wanted(&self) -> bool {
        !self.has_ended && self.incoming.len() < WAITING_BYTES_MAX
    }
}

/// Makes of what a client sends what a backend understands, and the other way round.
pub trait Coupling: Send {
    /// The client's and the backend's connection.
    fn wires(&mut self) -> (&mut Wire, &mut Wire);

    /// Goes on with what was received, as far as there is room for what comes of it.
    fn advance(&mut self);

    /// Some time went by: a few seconds, always the same.
    fn tick(&mut self) {}

    /// Whether there is nothing left to do but to send what is to be sent.
    fn is_over(&self) -> bool;
}

/// Both sides speak the same: bytes go through as they are. Where one side ends, so does the other.
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
        hand_on(&mut self.client, &mut self.backend);
        hand_on(&mut self.backend, &mut self.client);
    }

    fn is_over(&self) -> bool {
        let is_over = |wire: &Wire| wire.has_ended && wire.incoming.is_empty();
        is_over(&self.client) || is_over(&self.backend)
    }
}

fn hand_on(from: &mut Wire, to: &mut Wire) {
    if to.outgoing.is_empty() {
        std::mem::swap(&mut from.incoming, &mut to.outgoing);
    } else if to.has_room() {
        to.outgoing.extend_from_slice(&from.incoming);
        from.incoming.clear();
    }
}
