//! The protocols of connections that carry streams: WebSocket frames, SPDY, the channels of remote
//! commands, SPDY within WebSockets.
//!
//! Purpose: what stands on the wire after a connection has left HTTP, and how the protocol of a client
//! becomes that of a server ([`Coupling`]). Bytes that were received go in, bytes to be sent come out.
//!
//! Must not know: sockets, HTTP, the clock, kinds.
//!
//! Invariants: no input panics; what a peer sends is handed on in pieces as it comes, and no more is taken
//! from one side than the other has room for, so that nothing here grows with what is sent.

mod coupling;
pub mod remote_command;
pub mod spdy;
mod tunnel;
pub mod websocket;

pub use coupling::{Coupling, Pipe, Wire};
pub use remote_command::RemoteCommand;
pub use tunnel::Tunnel;
