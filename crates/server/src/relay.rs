//! Requests that others answer, and what goes between a client and a backend after HTTP.
//!
//! Must not know: who is asked and why; protocols, which are [`pintle_streams`]'s.

pub(crate) mod answer;
pub(crate) mod headers;
pub(crate) mod page;
pub(crate) mod rewriting;
mod session;
pub(crate) mod upgrade;

pub(crate) use session::{Session, say_last};
