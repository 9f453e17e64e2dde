//! The bounds of HTTP. Those that hyper and h2 have by themselves, and that matter, are set here all the
//! same, so that they stand in one place and no new release changes them.
//!
//! What else h2 bounds without a setting: frames that must be answered (`SETTINGS`, `PING`) are read one
//! at a time, the next one only when the answer to the last could be written, so that they pile up
//! nowhere; a block of headers may have a quarter more `CONTINUATION` frames than its greatest length
//! needs, and four times that length ends the connection; many small `DATA` frames end it as well.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto::Builder;

use tokio::time::Instant;

use super::conduct::Conduct;
use super::stream::Streams;

/// Bounds a request's line and headers; long selectors go into the line.
const HEADER_BYTES_MAX: usize = 256 * 1024;
/// How many requests a client may have open over one HTTP/2 connection. Upstream has 250 unless told
/// otherwise (`--http2-max-streams-per-connection`).
const HTTP2_STREAMS_MAX: u32 = 250;
/// How many streams a client may reset before they are looked at (CVE-2023-44487): beyond that the
/// connection ends.
const HTTP2_PENDING_RESETS_MAX: usize = 20;
/// How many streams may be reset because the client broke the protocol on them: likewise.
const HTTP2_ERROR_RESETS_MAX: usize = 1024;
/// How much of a request's body may be on its way (upstream's values).
const HTTP2_STREAM_WINDOW: u32 = 256 * 1024;
const HTTP2_CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;
/// HTTP/2's least: the largest frame that a client may send.
const HTTP2_FRAME_BYTES_MAX: u32 = 16 * 1024;
/// How much of an answer may wait to be sent, for each stream.
const HTTP2_SEND_BUFFER: usize = 512 * 1024;
/// A client from which nothing has come for so long is asked whether it is still there …
const HTTP2_PING_AFTER: Duration = Duration::from_secs(60);
/// … and must answer within so long. Together as long as the kernel's own questions take.
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(60);

/// HTTP/1.1 and HTTP/2 within their bounds. How long headers may take is for the
/// [`register`](super::register) to say, which needs no timer for each request.
pub(super) fn http(conduct: &Arc<Conduct>) -> Builder<Streams> {
    let mut http = Builder::new(Streams(conduct.clone()));
    http.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(HEADER_BYTES_MAX);
    http.http2()
        .timer(Questions(conduct.clone()))
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

/// When a client is asked whether it is still there, and has not answered in time: not as long as it may
/// pause, for a program that was stopped does not answer. The kernel's own questions go on.
struct Questions(Arc<Conduct>);

struct Question {
    at: Pin<Box<tokio::time::Sleep>>,
    conduct: Arc<Conduct>,
}

impl Timer for Questions {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until((Instant::now() + duration).into_std())
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        let at = Box::pin(tokio::time::sleep_until(deadline.into()));
        Box::pin(Question { at, conduct: self.0.clone() })
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }
}

impl Sleep for Question {}

impl Future for Question {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.at.as_mut().poll(context));
            if !self.conduct.may_pause() {
                return Poll::Ready(());
            }
            self.at.as_mut().reset(Instant::now() + HTTP2_PING_TIMEOUT);
        }
    }
}
