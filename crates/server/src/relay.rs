//! Relays backends' responses, and the bytes of upgraded connections.
//!
//! Must not know which backend is called and why, nor the protocols of streams, which are in
//! [`pintle_streams`].

pub(crate) mod headers;
pub(crate) mod page;
pub(crate) mod response;
pub(crate) mod rewriting;
mod session;
pub(crate) mod upgrade;

pub(crate) use session::{Session, send_and_close};
