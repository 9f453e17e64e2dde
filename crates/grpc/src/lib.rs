//! gRPC over one HTTP/2 connection: calls with one response, and bidirectional streams.
//!
//! It must not know what messages mean, how connections are made, or deadlines. It neither repeats
//! calls nor opens connections again: whether that is harmless depends on the call.
//!
//! Invariant: [`Stage::Unsent`] means that the request was certainly not sent.

mod connection;
mod failure;
mod framing;

pub use connection::{Connection, Requests, Responses, Service};
pub use failure::{Code, Failure, Stage};
pub use framing::framed;
