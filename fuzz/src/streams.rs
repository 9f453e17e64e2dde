//! Invariants of translating arbitrary bytes from clients and kubelets on streams. A panic is a
//! finding.

#![allow(dead_code)]

use pintle_streams::remote_command::{Channels, RemoteCommand};
use pintle_streams::{Coupling, Tunnel};

/// The bound of the output buffer: the room of one side, and one piece.
const WAITING_BYTES_MAX: usize = 256 * 1024;

/// Sends the bytes in pieces. A byte before each piece is its sender, client or kubelet, and its
/// length.
pub(crate) fn streams(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let is = |bit: u8| first >> bit & 1 == 1;
    let wanted = Channels { stdin: is(0), stdout: is(1), stderr: is(2), resize: is(3) };
    couple(RemoteCommand::new(wanted), rest);
    couple(Tunnel::default(), rest);
}

fn couple(mut coupling: impl Coupling, mut bytes: &[u8]) {
    while let Some((head, rest)) = bytes.split_first() {
        let length = usize::from(head & 0x7f).min(rest.len());
        let (piece, rest) = rest.split_at(length);
        bytes = rest;
        let (client, backend) = coupling.wires();
        let from = if head & 0x80 == 0 { client } else { backend };
        match piece {
            [] if *head == 0x80 => coupling.tick(),
            [] => from.has_ended = true,
            piece if from.is_wanted() => from.incoming.extend_from_slice(piece),
            _ => {}
        }
        coupling.advance();
        let (client, backend) = coupling.wires();
        assert!(
            client.outgoing.len() < WAITING_BYTES_MAX && backend.outgoing.len() < WAITING_BYTES_MAX
        );
        if coupling.is_over() {
            return;
        }
    }
}
