//! Protocols of streaming connections: WebSocket frames, SPDY, the channels of remote commands,
//! SPDY within WebSockets.
//!
//! A [`Coupling`] translates between the protocols of a client and of a server after their
//! connections left HTTP. Received bytes go in, bytes to send come out.
//!
//! Must not know: sockets, HTTP, the clock, kinds.
//!
//! Invariants: no input panics. Payload is forwarded in pieces as it arrives, and no more is taken
//! from one side than the other has room for, so memory does not grow with the amount of data.

mod coupling;
pub mod remote_command;
pub mod spdy;
mod tunnel;
pub mod websocket;

pub use coupling::{Coupling, Pipe, Wire};
pub use remote_command::RemoteCommand;
pub use tunnel::Tunnel;
