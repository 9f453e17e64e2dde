//! The deadline of a write that the peer does not read.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep};

use super::state::ConnectionState;

/// A stalled write.
pub(super) struct Stall {
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Stall {
    /// Begins now.
    pub(super) fn begin(connection: &ConnectionState) -> Self {
        Self { since: Instant::now(), timer: Box::pin(sleep(connection.limits().write_stall)) }
    }

    /// Ready when the stall has lasted too long. Checks at intervals whether the session's longer
    /// limit still applies, since no one wakes stalled writes when the server stops.
    pub(super) fn poll_too_long(
        &mut self,
        connection: &ConnectionState,
        may_pause: bool,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(context));
            let limits = connection.limits();
            let limit = if may_pause { limits.session_stall } else { limits.write_stall };
            let left = limit.saturating_sub(self.since.elapsed());
            if left.is_zero() {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(Instant::now() + left.min(limits.write_stall));
        }
    }
}
