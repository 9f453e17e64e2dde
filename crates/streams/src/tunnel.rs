//! Port-forwarding through a WebSocket: the client's messages carry SPDY bytes, which are forwarded
//! to the backend unchanged (upstream: `TunnelingHandler`).

use crate::coupling::{Coupling, Wire};
use crate::websocket::{self, Event, Opcode, Violation, close_code};

/// A client's WebSocket, and a backend without one.
#[derive(Debug, Default)]
pub struct Tunnel {
    client: Wire,
    backend: Wire,
    frames: websocket::Reader,
    is_over: bool,
}

impl Coupling for Tunnel {
    fn wires(&mut self) -> (&mut Wire, &mut Wire) {
        (&mut self.client, &mut self.backend)
    }

    fn advance(&mut self) {
        self.client.send_answer();
        while !self.is_over && self.backend.has_room() {
            match self.frames.read(&mut self.client.incoming) {
                Ok(None) => break,
                Ok(Some(Event::Data { bytes, .. })) => {
                    self.backend.outgoing.extend_from_slice(&bytes);
                }
                Ok(Some(Event::Ping(bytes))) => self.client.answer(websocket::pong(&bytes)),
                Ok(Some(Event::Close)) => self.end(close_code::NORMAL),
                Err(Violation) => self.end(close_code::PROTOCOL_ERROR),
            }
        }
        if !self.is_over && !self.backend.incoming.is_empty() && self.client.has_room() {
            let bytes = self.backend.incoming.split();
            websocket::write(Opcode::Binary, &bytes, &mut self.client.outgoing);
        }
        if self.backend.has_ended && self.backend.incoming.is_empty() {
            self.end(close_code::NORMAL);
        }
        // While the backend has no room, bytes of the client may still wait to be forwarded.
        self.is_over |= self.client.has_ended && self.backend.has_room();
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Tunnel {
    fn end(&mut self, code: u16) {
        if !std::mem::replace(&mut self.is_over, true) {
            websocket::write_close(code, &mut self.client.outgoing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of a client, with a zero mask.
    fn sent(payload: &[u8]) -> Vec<u8> {
        [&[0x82, 0x80 | payload.len() as u8, 0, 0, 0, 0], payload].concat()
    }

    #[test]
    fn bytes_are_independent_of_message_boundaries() {
        let mut tunnel = Tunnel::default();
        let (client, backend) = tunnel.wires();
        client.incoming.extend_from_slice(&[sent(b"to "), sent(b"the backend")].concat());
        backend.incoming.extend_from_slice(b"back");
        tunnel.advance();
        assert_eq!(tunnel.backend.outgoing, "to the backend");
        assert_eq!(
            tunnel.client.outgoing,
            "\u{82}\u{4}back".chars().map(|c| c as u8).collect::<Vec<u8>>()
        );
        assert!(!tunnel.is_over());
    }

    #[test]
    fn bytes_to_the_backend_do_not_wait_for_the_client_to_read() {
        let mut tunnel = Tunnel::default();
        tunnel.client.outgoing.extend_from_slice(&[0; 1 << 17]);
        tunnel.client.incoming.extend_from_slice(&[0x89, 0x80, 0, 0, 0, 0]);
        tunnel.client.incoming.extend_from_slice(&sent(b"to the backend"));
        tunnel.advance();
        assert_eq!(tunnel.backend.outgoing, "to the backend");
        tunnel.client.outgoing.clear();
        tunnel.advance();
        assert_eq!(tunnel.client.outgoing, websocket::pong(b""));
    }

    #[test]
    fn a_tunnel_ends_with_either_side() {
        let mut tunnel = Tunnel::default();
        tunnel.backend.has_ended = true;
        tunnel.backend.incoming.extend_from_slice(b"rest");
        tunnel.advance();
        assert!(tunnel.is_over());
        assert_eq!(&tunnel.client.outgoing[..], b"\x82\x04rest\x88\x02\x03\xe8");
        for last in [&[0x88, 0x80, 0, 0, 0, 0][..], &[0x82, 0x01, 0]] {
            let mut tunnel = Tunnel::default();
            tunnel.client.incoming.extend_from_slice(last);
            tunnel.advance();
            assert!(tunnel.is_over(), "{last:?}");
        }
        let mut tunnel = Tunnel::default();
        tunnel.client.has_ended = true;
        tunnel.advance();
        assert!(tunnel.is_over());
    }
}
