//! The protocols of connections that carry streams: WebSocket frames.
//!
//! Purpose: what stands on the wire after a connection has left HTTP. Bytes that were received go in,
//! events and bytes to be sent come out.
//!
//! Must not know: sockets, HTTP, the clock, kinds.
//!
//! Invariants: no input panics; what a peer sends is handed on in pieces as it comes, so that nothing
//! here grows with the length of a frame or a message.

pub mod websocket;
