//! The limits of HTTP. Those that are hyper's and h2's defaults are set, too, so that all limits
//! are in one file and no new release of hyper changes them.
//!
//! h2 also limits, without a setting: frames that need a reply (`SETTINGS`, `PING`) are read one at
//! a time, the next one after the reply to the last, so that replies do not pile up; a block of
//! headers may have a quarter more `CONTINUATION` frames than its largest size needs, and four
//! times that size ends the connection; many small `DATA` frames end it, too.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto::Builder;

use tokio::time::Instant;

use super::state::ConnectionState;
use super::stream::Streams;

/// The limit of a request's line and headers; long selectors are part of the line.
const HEADER_BYTES_MAX: usize = 256 * 1024;
/// The concurrent requests of an HTTP/2 connection. Upstream's default is 250
/// (`--http2-max-streams-per-connection`).
const HTTP2_STREAMS_MAX: u32 = 250;
/// The streams that a client may reset before the server has accepted them (CVE-2023-44487); beyond
/// that the connection ends.
const HTTP2_PENDING_RESETS_MAX: usize = 20;
/// The streams that may be reset for protocol errors; beyond that the connection ends.
const HTTP2_ERROR_RESETS_MAX: usize = 1024;
/// The receive window of a stream (upstream's value).
const HTTP2_STREAM_WINDOW: u32 = 256 * 1024;
const HTTP2_CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;
/// The largest frame that a client may send: the smallest limit that HTTP/2 allows.
const HTTP2_FRAME_BYTES_MAX: u32 = 16 * 1024;
/// The send buffer of a stream.
const HTTP2_SEND_BUFFER: usize = 512 * 1024;
/// A client that has been silent for so long gets a PING.
const HTTP2_PING_AFTER: Duration = Duration::from_secs(60);
/// The deadline of the reply to a PING. Both times together are as long as the kernel's keep-alive
/// takes.
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(60);

/// HTTP/1.1 and HTTP/2 with these limits. The [`register`](super::register) bounds the time of
/// headers, so that a request needs no timer.
pub(super) fn http(connection: &Arc<ConnectionState>) -> Builder<Streams> {
    let mut http = Builder::new(Streams(connection.clone()));
    http.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(HEADER_BYTES_MAX);
    http.http2()
        .timer(PingTimer(connection.clone()))
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .max_pending_accept_reset_streams(HTTP2_PENDING_RESETS_MAX)
        .max_local_error_reset_streams(HTTP2_ERROR_RESETS_MAX)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW)
        .max_frame_size(HTTP2_FRAME_BYTES_MAX)
        .max_send_buf_size(HTTP2_SEND_BUFFER)
        .max_header_list_size(HEADER_BYTES_MAX as u32)
        .keep_alive_interval(HTTP2_PING_AFTER)
        .keep_alive_timeout(HTTP2_PING_TIMEOUT);
    http
}

/// The timers of PINGs. No PING is sent while a client may pause, since a stopped program does not
/// reply; the kernel's keep-alive goes on.
struct PingTimer(Arc<ConnectionState>);

struct PingSleep {
    at: Pin<Box<tokio::time::Sleep>>,
    connection: Arc<ConnectionState>,
}

impl Timer for PingTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until((Instant::now() + duration).into_std())
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        let at = Box::pin(tokio::time::sleep_until(deadline.into()));
        Box::pin(PingSleep { at, connection: self.0.clone() })
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }
}

impl Sleep for PingSleep {}

impl Future for PingSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.at.as_mut().poll(context));
            if !self.connection.may_pause() {
                return Poll::Ready(());
            }
            self.at.as_mut().reset(Instant::now() + HTTP2_PING_TIMEOUT);
        }
    }
}
