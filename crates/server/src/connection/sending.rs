//! A response body while its connection sends it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;

use super::state::{Busy, InSession};
use super::stream;
use crate::body::{Body, Broken, CHUNK_BYTES, UpgradedSession};

/// The largest last piece that is given to HTTP/2 while the peer's window is closed: HTTP/2's
/// smallest frame limit. A piece with the end of the body cannot be taken back.
const LAST_PIECE_BYTES_MAX: usize = 16 * 1024;

/// A body in pieces. It marks its connection as busy and has a deadline.
pub(super) struct SendingBody {
    body: Body,
    /// The rest of the body's last frame.
    rest: Bytes,
    /// The deadline of sending a long body; `None` for a short body, a watch or a backend's
    /// response.
    deadline: Option<Instant>,
    /// Marks the connection as busy.
    busy: Busy,
    /// Set if the client may pause the body.
    session: Option<InSession>,
}

/// Why a response is aborted.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unsent {
    /// The peer read too slowly.
    #[error("the client did not read the response in time")]
    TooSlow,
    /// The rest of the response could not be made.
    #[error("the server panicked while it sent the response")]
    Panicked,
    /// The backend broke off.
    #[error(transparent)]
    Broken(#[from] Broken),
}

impl SendingBody {
    /// A body with its deadline, if it has one.
    pub(super) fn new(
        body: Body,
        deadline: Option<Instant>,
        busy: Busy,
        session: Option<InSession>,
    ) -> Self {
        Self { body, rest: Bytes::new(), deadline, busy, session }
    }

    /// Takes the session that runs on the connection after the response.
    pub(super) fn take_upgraded(&mut self) -> Option<UpgradedSession> {
        let upgraded = self.body.take_upgraded()?;
        let (busy, session) = (self.busy.clone(), self.session.take());
        Some(Box::pin(async move {
            upgraded.await;
            drop((busy, session));
        }))
    }

    fn piece(&mut self) -> Bytes {
        let length = match self.rest.len() {
            0..=LAST_PIECE_BYTES_MAX => self.rest.len(),
            // The last byte is held back until the peer has room for all before it.
            length => (length - 1).min(CHUNK_BYTES),
        };
        self.rest.split_to(length)
    }
}

impl HttpBody for SendingBody {
    type Data = Bytes;
    type Error = Unsent;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Unsent>>> {
        stream::is_asked_for_more();
        if self.rest.is_empty() {
            let body = Pin::new(&mut self.body);
            let polled = catch_unwind(AssertUnwindSafe(|| body.poll_frame(context)));
            let Ok(polled) = polled else {
                self.body.break_off();
                return Poll::Ready(Some(Err(Unsent::Panicked)));
            };
            let frame = ready!(polled);
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(bytes))) => self.rest = bytes,
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(broken)) => return Poll::Ready(Some(Err(broken.into()))),
                None => return Poll::Ready(None),
            }
        }
        if self.deadline.is_some_and(|deadline| Instant::now() > deadline) {
            self.body.break_off();
            return Poll::Ready(Some(Err(Unsent::TooSlow)));
        }
        stream::record_frame(self.session.is_some());
        let piece = self.piece();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        match self.body.size_hint().exact() {
            Some(length) => SizeHint::with_exact(length + rest),
            None => SizeHint::default(),
        }
    }
}
