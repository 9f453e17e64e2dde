//! Response bodies.
//!
//! [`pieces`] has bodies that are encoded while they are sent; [`request`] reads the bodies of
//! requests within their limit.

mod pieces;
mod request;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::compute::Lane;
pub(crate) use pieces::{CHUNK_BYTES, Pieces, Ready};
use pieces::{Framed, cut};
pub(crate) use request::{RequestBody, Upload, discard, read};

/// The number of pieces that a fast reader gets before its body yields. A connection over HTTP/1.1
/// that yielded is polled once more at once, so it sends twice as many before others are polled.
const PIECES_IN_A_ROW: u8 = 4;

/// The end of compact JSON, as upstream writes it.
pub(crate) const NEWLINE: &[u8] = b"\n";

/// A response's body.
pub(crate) struct Body {
    source: Source,
    /// Runs the encoding of pieces that take work.
    lane: Option<Lane>,
    /// The number of pieces sent since the last yield to other connections.
    in_a_row: u8,
    /// Counts the sent bytes and holds the request's permits. Dropped when the body has been sent
    /// or aborted.
    guard: Option<Box<dyn Guard>>,
    /// Whether the client may pause the body for hours, because the body or its upgraded connection
    /// relays a backend.
    is_session: bool,
}

/// Observes the progress of a body, and lives as long as the body.
pub(crate) trait Guard: Send {
    /// Adds to the bytes that were sent.
    fn sent(&mut self, bytes: usize);

    /// The client stalled, and the body was aborted.
    fn broke_off(&mut self);
}

/// The backend broke off its response, or the rest of a response cannot be made. This server breaks
/// off its response to the client, too, so that the client notices.
#[derive(Debug, thiserror::Error)]
#[error("the response is incomplete: {0}")]
pub(crate) struct Broken(pub(crate) String);

/// The frames of a watch.
pub(crate) type Frames = Pin<Box<dyn Stream<Item = Bytes> + Send>>;
/// The pieces of a response that may break off: a backend's, or a snapshot.
pub(crate) type Relayed = Pin<Box<dyn Stream<Item = Result<Bytes, Broken>> + Send>>;
/// The session of an upgraded connection; it runs after the response 101.
pub(crate) type UpgradedSession = Pin<Box<dyn Future<Output = ()> + Send>>;

enum Source {
    /// The whole body, with or without a newline at its end.
    Full { bytes: Bytes, newline: bool },
    /// A body of more than [`CHUNK_BYTES`], encoded piece by piece.
    Pieces(Box<dyn Pieces>),
    /// A watch.
    Frames(Frames),
    /// A backend's response, relayed as it arrives.
    Relayed(Relayed),
    /// An empty body; the session takes the connection after it.
    Upgraded(UpgradedSession),
}

impl Body {
    /// A body that is ready as a whole.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::new(Source::Full { bytes: bytes.into(), newline: false })
    }

    /// An empty body.
    pub(crate) fn empty() -> Self {
        Self::full(Bytes::new())
    }

    /// A body that is encoded while it is sent. If it fits into one piece, it is sent with its
    /// length.
    pub(crate) fn pieces(mut pieces: impl Pieces + 'static) -> Self {
        let first = pieces.next().unwrap_or_default();
        match pieces.next() {
            None => Self::full(first),
            Some(second) => {
                let before = vec![first, second].into_iter();
                let pieces: Option<Box<dyn Pieces>> = Some(Box::new(pieces));
                Self::new(Source::Pieces(Box::new(Framed { before, pieces, behind: None })))
            }
        }
    }

    /// A body of more than [`CHUNK_BYTES`] that is encoded while it is sent.
    pub(crate) fn long(pieces: impl Pieces + 'static) -> Self {
        Self::new(Source::Pieces(Box::new(pieces)))
    }

    /// A body that lasts as long as there are frames.
    pub(crate) fn frames(frames: Frames) -> Self {
        Self::new(Source::Frames(frames))
    }

    /// A backend's body.
    pub(crate) fn relayed(pieces: Relayed) -> Self {
        Self::new(Source::Relayed(pieces))
    }

    /// An empty body. The response is the last one on its connection, and the session runs after
    /// it.
    pub(crate) fn upgraded(session: UpgradedSession) -> Self {
        Self::new(Source::Upgraded(session))
    }

    /// Takes the session, which runs after the response. The session holds the guard.
    pub(crate) fn take_upgraded(&mut self) -> Option<UpgradedSession> {
        if !matches!(self.source, Source::Upgraded(_)) {
            return None;
        }
        match std::mem::replace(self, Self::empty()) {
            Self { source: Source::Upgraded(session), guard, .. } => Some(Box::pin(async move {
                session.await;
                drop(guard);
            })),
            _ => None,
        }
    }

    fn new(source: Source) -> Self {
        Self { source, lane: None, in_a_row: 0, guard: None, is_session: false }
    }

    /// Lets the client pause the body for hours.
    pub(crate) fn begin_session(&mut self) {
        self.is_session = true;
    }

    /// Whether the client may pause the body for hours.
    pub(crate) const fn is_session(&self) -> bool {
        self.is_session
    }

    /// Sets the lane in which pieces that take work are encoded.
    pub(crate) fn compute_in(&mut self, lane: Lane) {
        self.lane = Some(lane);
    }

    /// Keeps `guard` until the body has been sent or aborted.
    pub(crate) fn hold(&mut self, guard: Box<dyn Guard>) {
        self.guard = Some(guard);
    }

    /// Aborts the body, because the client stalled.
    pub(crate) fn break_off(&mut self) {
        self.guard.iter_mut().for_each(|guard| guard.broke_off());
    }

    /// Adds a newline at the end of a full or encoded body. An empty body, a watch and a backend's
    /// response are unchanged.
    pub(crate) fn line(mut self) -> Self {
        self.source = match self.source {
            Source::Full { bytes, .. } => Source::Full { newline: !bytes.is_empty(), bytes },
            Source::Pieces(pieces) => Source::Pieces(Box::new(Framed {
                before: Vec::new().into_iter(),
                pieces: Some(pieces),
                behind: Some(Bytes::from_static(NEWLINE)),
            })),
            other => other,
        };
        self
    }

    /// True for a full or encoded body of more than [`CHUNK_BYTES`], which is worth compressing.
    pub(crate) fn is_long(&self) -> bool {
        match &self.source {
            Source::Full { bytes, .. } => bytes.len() > CHUNK_BYTES,
            Source::Pieces(_) => true,
            Source::Frames(_) | Source::Relayed(_) | Source::Upgraded(_) => false,
        }
    }

    /// Wraps the pieces of a full or encoded body; other bodies are unchanged.
    pub(crate) fn map_pieces(
        mut self,
        wrap: impl FnOnce(Box<dyn Pieces>) -> Box<dyn Pieces>,
    ) -> Self {
        self.source = match self.source {
            Source::Full { bytes, newline } => {
                let end = newline.then_some(Bytes::from_static(NEWLINE));
                Source::Pieces(wrap(Box::new(Ready(cut(bytes).chain(end)))))
            }
            Source::Pieces(pieces) => Source::Pieces(wrap(pieces)),
            other => other,
        };
        self
    }

    /// Wraps pieces that are encoded while they are sent; other bodies are unchanged.
    pub(crate) fn map_made(
        mut self,
        wrap: impl FnOnce(Box<dyn Pieces>) -> Box<dyn Pieces>,
    ) -> Self {
        self.source = match self.source {
            Source::Pieces(pieces) => Source::Pieces(wrap(pieces)),
            other => other,
        };
        self
    }

    /// The bytes without the newline, if the body is ready as a whole.
    pub(crate) const fn whole(&self) -> Option<&Bytes> {
        match &self.source {
            Source::Full { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// Converts a full or encoded body as a whole; other bodies are unchanged.
    pub(crate) fn map_whole(mut self, convert: impl FnOnce(&[u8]) -> Vec<u8>) -> Self {
        let whole = match self.source {
            Source::Full { bytes, .. } => bytes,
            Source::Pieces(mut pieces) => {
                let mut whole = BytesMut::new();
                while let Some(piece) = pieces.next() {
                    whole.extend_from_slice(&piece);
                }
                whole.freeze()
            }
            other => {
                self.source = other;
                return self;
            }
        };
        self.source = Source::Full { bytes: convert(&whole).into(), newline: false };
        self
    }

    /// The length, if it is known.
    pub(crate) fn len(&self) -> Option<usize> {
        match &self.source {
            Source::Full { bytes, newline } => Some(bytes.len() + usize::from(*newline)),
            _ => None,
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        let next = match &mut this.source {
            Source::Full { bytes, newline } => Poll::Ready(if !bytes.is_empty() {
                Some(std::mem::take(bytes))
            } else {
                std::mem::take(newline).then_some(Bytes::from_static(NEWLINE))
            }),
            Source::Pieces(pieces) => match &mut this.lane {
                Some(lane) if pieces.takes_work() => {
                    lane.poll_separately(context, |_| pieces.next())
                }
                _ if this.in_a_row == PIECES_IN_A_ROW => {
                    this.in_a_row = 0;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                _ => {
                    this.in_a_row += 1;
                    Poll::Ready(pieces.next())
                }
            },
            Source::Frames(frames) => frames.as_mut().poll_next(context),
            Source::Relayed(pieces) => match ready!(pieces.as_mut().poll_next(context)) {
                Some(Err(broken)) => return Poll::Ready(Some(Err(broken))),
                Some(Ok(bytes)) => Poll::Ready(Some(bytes)),
                None => Poll::Ready(None),
            },
            Source::Upgraded(_) => Poll::Ready(None),
        };
        if let (Poll::Ready(Some(bytes)), Some(guard)) = (&next, &mut this.guard) {
            guard.sent(bytes.len());
        }
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.len() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.len().map_or_else(SizeHint::default, |length| SizeHint::with_exact(length as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn collect(body: Body) -> (Option<u64>, Vec<u8>) {
        let size = body.size_hint().exact();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        (size, runtime.block_on(body.collect()).unwrap().to_bytes().to_vec())
    }

    fn pieces(parts: &'static [&'static str]) -> Body {
        Body::pieces(Ready(parts.iter().map(|part| Bytes::from(*part))))
    }

    #[test]
    fn a_body_of_one_piece_has_a_length() {
        assert_eq!(collect(pieces(&["abc"])), (Some(3), b"abc".to_vec()));
        assert_eq!(collect(pieces(&[])), (Some(0), Vec::new()));
        assert_eq!(collect(pieces(&["ab", "cd", "e"])), (None, b"abcde".to_vec()));
    }

    #[test]
    fn lines_have_an_end() {
        assert_eq!(collect(Body::full("abc").line()), (Some(4), b"abc\n".to_vec()));
        assert_eq!(collect(Body::empty().line()), (Some(0), Vec::new()));
        assert_eq!(collect(pieces(&["ab", "cd"]).line()), (None, b"abcd\n".to_vec()));
    }

    struct Seen(Arc<AtomicUsize>);

    impl Guard for Seen {
        fn sent(&mut self, bytes: usize) {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }

        fn broke_off(&mut self) {}
    }

    #[test]
    fn the_guard_lives_as_long_as_the_body_and_sees_it_go() {
        let sent = Arc::new(AtomicUsize::new(0));
        let mut body = pieces(&["ab", "cd"]);
        body.hold(Box::new(Seen(sent.clone())));
        let body = body.map_pieces(|pieces| pieces);
        assert_eq!(Arc::strong_count(&sent), 2);
        drop(collect(body));
        assert_eq!((Arc::strong_count(&sent), sent.load(Ordering::Relaxed)), (1, 4));
    }
}
