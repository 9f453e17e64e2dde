//! Response bodies, and the reading of request bodies within their limit.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http::Version;
use http::header::EXPECT;
use http::request::Parts;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use pintle_meta::Status;

use crate::compute::Lane;

/// The largest request body, in bytes: upstream's 3 MiB (OAS-11).
pub(crate) const REQUEST_BYTES_MAX: usize = 3 * 1024 * 1024;
/// A request body above [`REQUEST_BYTES_MAX`] is read and discarded up to this size.
const REQUEST_BYTES_DISCARDED_MAX: usize = 4 * REQUEST_BYTES_MAX;
/// An unread body is drained up to this size (Go's value) and for this time.
const UNWANTED_BYTES_MAX: usize = 256 * 1024;
const UNWANTED_TIMEOUT: Duration = Duration::from_secs(5);
/// The time within which a request body must arrive: upstream's for a write. It is independent of
/// the request's timeout.
const READ_TIMEOUT: Duration = Duration::from_secs(34);
/// A piece of a streamed body is sent once it has this size, so that frames and TLS records are
/// full. It is also the size above which a body is compressed (CMP-03).
pub(crate) const CHUNK_BYTES: usize = 128 * 1024;

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
    /// True if the client may pause the body for hours, because the body or its upgraded connection
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

/// A body that is encoded while it is sent.
pub(crate) trait Pieces: Send {
    /// The next piece; `None` at the end.
    fn next(&mut self) -> Option<Bytes>;

    /// True if the next piece takes more work than copying, so that it is encoded on a separate
    /// thread. A piece that is only copied may be prepared here.
    fn takes_work(&mut self) -> bool;

    /// The same bytes in gzip, if these pieces have a better way than to be compressed one after the
    /// other. They are empty then. Called before any piece is taken.
    fn compressed(&mut self) -> Option<Box<dyn Pieces>> {
        None
    }
}

/// The backend broke off its response, or the rest of a response cannot be made. This server breaks
/// off its response to the client, too, so that the client notices.
#[derive(Debug, thiserror::Error)]
#[error("the response is incomplete: {0}")]
pub(crate) struct Broken(pub(crate) String);

/// Pieces that exist already.
pub(crate) struct Ready<I>(pub(crate) I);

impl<I: Iterator<Item = Bytes> + Send> Pieces for Ready<I> {
    fn next(&mut self) -> Option<Bytes> {
        self.0.next()
    }

    fn takes_work(&mut self) -> bool {
        false
    }
}

/// Pieces with ready ones before and behind them.
struct Framed {
    before: std::vec::IntoIter<Bytes>,
    pieces: Option<Box<dyn Pieces>>,
    behind: Option<Bytes>,
}

impl Pieces for Framed {
    fn next(&mut self) -> Option<Bytes> {
        if let Some(piece) = self.before.next() {
            return Some(piece);
        }
        if let Some(piece) = self.pieces.as_mut().and_then(|pieces| pieces.next()) {
            return Some(piece);
        }
        self.pieces = None;
        self.behind.take()
    }

    fn takes_work(&mut self) -> bool {
        self.before.len() == 0 && self.pieces.as_mut().is_some_and(|pieces| pieces.takes_work())
    }
}

/// Cuts bytes into pieces of [`CHUNK_BYTES`].
fn cut(mut bytes: Bytes) -> impl Iterator<Item = Bytes> + Send {
    std::iter::from_fn(move || {
        (!bytes.is_empty()).then(|| bytes.split_to(bytes.len().min(CHUNK_BYTES)))
    })
}

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

    /// True if the client may pause the body for hours.
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

/// A request's body as it arrives.
pub(crate) trait RequestBody:
    HttpBody<Data = Bytes, Error: std::fmt::Display> + Unpin
{
}

impl<B: HttpBody<Data = Bytes, Error: std::fmt::Display> + Unpin> RequestBody for B {}

/// A request's body, which a proxy may take and forward.
pub(crate) struct Upload<B>(Option<B>);

impl<B> Upload<B> {
    /// A body that no one has taken.
    pub(crate) const fn new(body: B) -> Self {
        Self(Some(body))
    }

    /// Takes the body and leaves an empty one.
    pub(crate) fn take(&mut self) -> Self {
        Self(self.0.take())
    }
}

impl<B: RequestBody> HttpBody for Upload<B> {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(context));
        let failed = |why: B::Error| std::io::Error::other(why.to_string());
        Poll::Ready(frame.map(|frame| frame.map_err(failed)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

/// Drains an unread body, as Go's server does, so that the connection can serve the next request.
/// Skipped on HTTP/2, where the stream can be reset, and where the client waits for `100 Continue`.
pub(crate) fn discard(mut body: impl RequestBody + Send + 'static, head: &Parts) {
    let costs_connection = head.version <= Version::HTTP_11 && !body.is_end_stream();
    if !costs_connection || head.headers.contains_key(EXPECT) {
        return;
    }
    tokio::spawn(async move {
        let mut length = 0;
        let rest = async {
            while let Some(Ok(frame)) = body.frame().await {
                length += frame.data_ref().map_or(0, Bytes::len);
                if length > UNWANTED_BYTES_MAX {
                    break;
                }
            }
        };
        // A body that arrives too slowly is not drained, so its connection closes.
        let _late = tokio::time::timeout(UNWANTED_TIMEOUT, rest).await.is_err();
    });
}

/// Reads a request's body, or returns 400, 413 or 504.
pub(crate) async fn read(body: impl RequestBody) -> Result<Bytes, Status> {
    tokio::time::timeout(READ_TIMEOUT, read_to_end(body)).await.unwrap_or_else(|_| {
        Err(Status::timeout("the body of the request did not come within the allotted timeout", 0))
    })
}

/// A body that is slightly too large is drained, because most clients read the response only after
/// they have sent everything.
async fn read_to_end(mut body: impl RequestBody) -> Result<Bytes, Status> {
    let (mut first, mut more) = (Bytes::new(), BytesMut::new());
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Status::bad_request(format!("reading the body: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length > REQUEST_BYTES_DISCARDED_MAX {
            break;
        } else if length > REQUEST_BYTES_MAX {
            (first, more) = (Bytes::new(), BytesMut::new());
        } else if first.is_empty() {
            first = data; // most bodies are one frame: nothing is copied
        } else {
            more.extend_from_slice(&data);
        }
    }
    if length > REQUEST_BYTES_MAX {
        return Err(Status::too_large(format_args!("limit is {REQUEST_BYTES_MAX}")));
    }
    if more.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(length);
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&more);
    Ok(whole.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{Full, StreamBody};
    use std::convert::Infallible;
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

    #[tokio::test]
    async fn bodies_are_bounded() {
        // OAS-11
        let whole = Bytes::from(vec![0; REQUEST_BYTES_MAX]);
        assert_eq!(read(Full::new(whole.clone())).await.unwrap(), whole);
        let status =
            read(Full::new(Bytes::from(vec![0; REQUEST_BYTES_MAX + 1]))).await.unwrap_err();
        assert_eq!(
            (status.code, status.message.as_str()),
            (413, "Request entity too large: limit is 3145728")
        );
        // no Content-Length
        let frames = [whole, Bytes::from_static(b"x")].map(|b| Ok::<_, Infallible>(Frame::data(b)));
        let stream = StreamBody::new(futures_util::stream::iter(frames));
        assert_eq!(read(stream).await.unwrap_err().code, 413);
    }

    #[tokio::test]
    async fn bodies_of_many_frames_are_joined() {
        let frames =
            ["a", "b", "c"].map(|text| Ok::<_, Infallible>(Frame::data(Bytes::from(text))));
        let stream = StreamBody::new(futures_util::stream::iter(frames));
        assert_eq!(read(stream).await.unwrap(), "abc");
    }
}
