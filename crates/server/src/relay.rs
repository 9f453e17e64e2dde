//! Relays backends' responses, and the bytes of upgraded connections.
//!
//! Must not know which backend is called and why, nor protocols, which are [`pintle_streams`]'s.

pub(crate) mod answer;
pub(crate) mod headers;
pub(crate) mod page;
pub(crate) mod rewriting;
mod session;
pub(crate) mod upgrade;

pub(crate) use session::{Session, send_and_close};
