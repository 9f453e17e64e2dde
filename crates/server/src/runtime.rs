//! The runtime that a server wants.

use std::num::NonZero;

use tokio::runtime::{Builder, Runtime};

/// Connections are served by at least so many threads: while one of them is in a poll, another answers.
const THREADS_MIN: usize = 2;
/// After so many polls a thread looks what has come over the network. Tokio's 61 would let 61 polls of a
/// few milliseconds each keep a health check waiting.
const POLLS_BETWEEN_EVENTS: u32 = 8;

/// So many long polls take place apart at the same time, at least: one that takes very long leaves room for
/// another.
const COMPUTED_MIN: usize = 2;

/// How many processors there are for this process.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// How many long polls take place apart at the same time.
pub(crate) fn compute_slots() -> usize {
    processors().max(COMPUTED_MIN)
}

/// A runtime as [`Server::start`](crate::Server::start) wants it.
pub fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(processors().max(THREADS_MIN))
        .event_interval(POLLS_BETWEEN_EVENTS)
        .enable_all()
        .build()
}
