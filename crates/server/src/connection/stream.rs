//! HTTP/2 streams: each a task of its own, which ends when its peer takes nothing of the answer.
//!
//! A peer decides how much of each stream it takes, so one that opens no window keeps an answer, and all
//! that the answer holds, for as long as it likes; the socket does not show it. The answer says when it
//! has given a frame to be sent, and hears that the frame is on its way by being asked for the next one;
//! where that takes too long, the task ends, and with it the stream, by a `RST_STREAM`. The other streams
//! of the connection go on.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use hyper::rt::Executor;
use tokio::time::{Sleep, sleep};

/// What the answer of a stream said last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sending {
    /// How many frames it has given.
    frames: u64,
    /// Whether the last one may still wait for the peer.
    waits: bool,
}

tokio::task_local! {
    /// Set for tasks of [`Streams`].
    static SENDING: Cell<Sending>;
}

/// An answer gave a frame to be sent.
pub(super) fn gave_a_frame() {
    say(|sending| Sending { frames: sending.frames + 1, waits: true });
}

/// An answer was asked for more: the frame that it gave last is on its way.
pub(super) fn is_asked_for_more() {
    say(|sending| Sending { waits: false, ..sending });
}

fn say(what: impl FnOnce(Sending) -> Sending) {
    // HTTP/1.1 has no streams: there the socket's deadline is enough.
    let _ = SENDING.try_with(|sending| sending.set(what(sending.get())));
}

/// Runs the streams of connections.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    /// How long a frame may wait for its peer.
    pub(super) write_stall: Duration,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        tokio::spawn(SENDING.scope(Cell::default(), bounded(stream, self.write_stall)));
    }
}

/// Runs a stream until it ends, or until its peer takes nothing of it for `write_stall`.
async fn bounded(stream: impl Future<Output = ()>, write_stall: Duration) {
    let mut stream = pin!(stream);
    let mut waits_since = Sending::default();
    let mut deadline: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|context| {
        if stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let sending = SENDING.with(Cell::get);
        if !sending.waits {
            deadline = None;
            return Poll::Pending;
        }
        if sending != waits_since {
            (waits_since, deadline) = (sending, None);
        }
        let deadline = deadline.get_or_insert_with(|| Box::pin(sleep(write_stall)));
        deadline.as_mut().poll(context)
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    const STALL: Duration = Duration::from_secs(30);

    /// How long a stream lasts whose answer does this.
    async fn lasts(answer: impl Future<Output = ()>) -> Duration {
        let began = Instant::now();
        SENDING.scope(Cell::default(), bounded(answer, STALL)).await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_nobody_takes_ends_its_stream() {
        let ended = lasts(async {
            gave_a_frame();
            std::future::pending().await
        });
        assert_eq!(ended.await.as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn each_frame_has_its_own_time() {
        let ended = lasts(async {
            for _ in 0..3 {
                gave_a_frame();
                sleep(STALL / 2).await;
                is_asked_for_more();
            }
            gave_a_frame();
            std::future::pending().await
        });
        assert_eq!(ended.await.as_secs(), 45 + 30);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_has_nothing_to_send_may_wait() {
        let ended = lasts(async {
            gave_a_frame();
            is_asked_for_more();
            sleep(STALL * 10).await;
        });
        assert_eq!(ended.await.as_secs(), 300);
    }
}
