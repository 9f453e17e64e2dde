//! What connects a client to something else: the server between clients and a kubelet of the tests' own.

#![allow(clippy::unwrap_used, reason = "a test that cannot connect has nothing to say")]

mod client;
mod kubelet;
mod logs;
mod streams;
