//! An answer on its way over a connection.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;

use super::conduct::{Busy, InSession};
use super::stream;
use crate::body::{Body, Broken, CHUNK_BYTES, UpgradedSession};

/// The largest piece that is given away as the last one while a peer takes none of it: HTTP/2's smallest
/// window for a frame. What was given away with the end of the body cannot be taken back.
const LAST_PIECE_BYTES_MAX: usize = 16 * 1024;

/// A body, cut into pieces; its connection knows that it is on its way, and when it must be there.
pub(super) struct Answer {
    body: Body,
    /// What of the body's last frame has not been given yet.
    rest: Bytes,
    /// When it must have been sent; a watch has its own end.
    deadline: Option<Instant>,
    /// The connection is not idle as long as this is there.
    busy: Busy,
    /// There where the client may let wait what is sent.
    session: Option<InSession>,
}

/// Why an answer is not sent to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unsent {
    /// The peer took too long over it.
    #[error("the answer was not taken in time")]
    TooSlow,
    /// There is no rest.
    #[error(transparent)]
    Broken(#[from] Broken),
}

impl Answer {
    /// A body that must have been sent at the deadline, if it has one.
    pub(super) fn new(
        body: Body,
        deadline: Option<Instant>,
        busy: Busy,
        session: Option<InSession>,
    ) -> Self {
        Self { body, rest: Bytes::new(), deadline, busy, session }
    }

    /// Takes the session that uses the connection after the answer.
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
            // The last byte is given when the peer has room for all before it.
            length => (length - 1).min(CHUNK_BYTES),
        };
        self.rest.split_to(length)
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = Unsent;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Unsent>>> {
        stream::is_asked_for_more();
        if self.rest.is_empty() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
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
        stream::gave_a_frame(self.session.is_some());
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
