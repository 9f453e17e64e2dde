//! The Tokio runtime of a server.

use std::num::NonZero;

use tokio::runtime::{Builder, Runtime};

/// The fewest threads that serve connections, so that another serves while one is in a poll.
const THREADS_MIN: usize = 2;
/// The polls after which a thread checks for I/O. With Tokio's default, 61 polls of a few
/// milliseconds each would delay a health check.
const POLLS_BETWEEN_EVENTS: u32 = 8;

/// The fewest separate threads for long polls, so that a very long one leaves room for another.
const COMPUTED_MIN: usize = 2;

/// The number of processors of this process.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// The number of long polls that run at a time on separate threads.
pub(crate) fn compute_slots() -> usize {
    processors().max(COMPUTED_MIN)
}

/// A runtime for [`Server::start`](crate::Server::start).
pub fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(processors().max(THREADS_MIN))
        .event_interval(POLLS_BETWEEN_EVENTS)
        .enable_all()
        .build()
}
