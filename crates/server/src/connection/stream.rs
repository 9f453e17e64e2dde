//! HTTP/2 streams. Each is a task, which ends when its peer stops reading the response.
//!
//! A peer controls the window of each stream. A peer that opens no window would hold a response and
//! its resources forever, and the socket does not stall. The response reports when it has given a
//! frame to HTTP/2; the next poll shows that the frame was sent. If that takes too long, the task
//! ends, and the stream with a `RST_STREAM`. Other streams of the connection go on.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use hyper::rt::Executor;

use super::stall::Stall;
use super::state::ConnectionState;

/// The last report of a stream's response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sending {
    /// The number of frames that the response has given to HTTP/2.
    frames: u64,
    /// Whether the last one may not have been sent.
    waits: bool,
    /// Whether it belongs to a session.
    of_session: bool,
}

tokio::task_local! {
    /// Set for tasks of [`Streams`].
    static SENDING: Cell<Sending>;
}

/// Reports that a response or session gave a frame.
pub(super) fn record_frame(of_session: bool) {
    say(|sending| Sending { frames: sending.frames + 1, waits: true, of_session });
}

/// Reports that the last frame was sent.
pub(super) fn is_asked_for_more() {
    say(|sending| Sending { waits: false, ..sending });
}

fn say(what: impl FnOnce(Sending) -> Sending) {
    // HTTP/1.1 has no streams; the socket's deadline is enough.
    let _ = SENDING.try_with(|sending| sending.set(what(sending.get())));
}

/// The executor of a connection's streams.
#[derive(Clone)]
pub(super) struct Streams(pub(super) Arc<ConnectionState>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        tokio::spawn(SENDING.scope(Cell::default(), bounded(stream, self.0.clone())));
    }
}

/// Runs a stream until it ends or its peer has stalled too long.
async fn bounded(stream: impl Future<Output = ()>, connection: Arc<ConnectionState>) {
    let mut stream = pin!(stream);
    let mut waits_since = Sending::default();
    let mut stall: Option<Stall> = None;
    poll_fn(|context| {
        if stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let sending = SENDING.with(Cell::get);
        if !sending.waits {
            stall = None;
            return Poll::Pending;
        }
        if sending != waits_since {
            (waits_since, stall) = (sending, None);
        }
        let stall = stall.get_or_insert_with(|| Stall::begin(&connection));
        stall.poll_too_long(&connection, sending.of_session && connection.may_pause(), context)
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::config::ConnectionLimits;
    use crate::connection::register::Register;

    const STALL: Duration = Duration::from_secs(30);

    fn connection() -> Arc<ConnectionState> {
        let limits = ConnectionLimits { write_stall: STALL, ..ConnectionLimits::default() };
        let from = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Arc::new(ConnectionState::new(0, from, Register::new(limits)))
    }

    /// The lifetime of a stream with this response.
    async fn stream_lifetime(
        answer: impl Future<Output = ()>,
        connection: Arc<ConnectionState>,
    ) -> Duration {
        let began = Instant::now();
        SENDING.scope(Cell::default(), bounded(answer, connection)).await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_nobody_takes_ends_its_stream() {
        let answer = async {
            record_frame(false);
            std::future::pending().await
        };
        assert_eq!(stream_lifetime(answer, connection()).await.as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn each_frame_has_its_own_time() {
        let answer = async {
            for _ in 0..3 {
                record_frame(false);
                sleep(STALL / 2).await;
                is_asked_for_more();
            }
            record_frame(false);
            std::future::pending().await
        };
        assert_eq!(stream_lifetime(answer, connection()).await.as_secs(), 45 + 30);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_has_nothing_to_send_may_wait() {
        let answer = async {
            record_frame(false);
            is_asked_for_more();
            sleep(STALL * 10).await;
        };
        assert_eq!(stream_lifetime(answer, connection()).await.as_secs(), 300);
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_waits_for_its_client_and_nothing_else_over_its_connection_does() {
        let paused = |of_session| async move {
            record_frame(of_session);
            std::future::pending().await
        };
        let connection = connection();
        let _session = connection.begin_session();
        let (session, answer) = tokio::join!(
            stream_lifetime(paused(true), connection.clone()),
            stream_lifetime(paused(false), connection)
        );
        assert_eq!((session.as_secs(), answer.as_secs()), (4 * 60 * 60, 30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_is_paused_does_not_hold_up_a_server_that_stops() {
        let connection = connection();
        let _session = connection.begin_session();
        let stops = async {
            sleep(STALL * 10).await;
            connection.close();
        };
        let paused = async {
            record_frame(true);
            std::future::pending().await
        };
        let (lasted, ()) = tokio::join!(stream_lifetime(paused, connection.clone()), stops);
        assert!((300..=330).contains(&lasted.as_secs()), "{lasted:?}");
    }
}
