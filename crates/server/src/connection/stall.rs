//! How long what is sent waits for its peer to take it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep};

use super::conduct::Conduct;

/// Something that a peer does not take.
pub(super) struct Stall {
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Stall {
    /// From now on.
    pub(super) fn begin(conduct: &Conduct) -> Self {
        Self { since: Instant::now(), timer: Box::pin(sleep(conduct.limits().write_stall)) }
    }

    /// Ready when it has lasted for too long. Whether it may last as long as a session is asked every so
    /// often: nobody wakes those who wait when the server stops.
    pub(super) fn poll_too_long(
        &mut self,
        conduct: &Conduct,
        may_pause: bool,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(context));
            let limits = conduct.limits();
            let borne = if may_pause { limits.session_stall } else { limits.write_stall };
            let left = borne.saturating_sub(self.since.elapsed());
            if left.is_zero() {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(Instant::now() + left.min(limits.write_stall));
        }
    }
}
