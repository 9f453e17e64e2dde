//! Bodies: what a response sends, and how a request's is read within its bound.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use pintle_meta::Status;

/// The largest body of a request, in bytes: upstream's 3 MiB (OAS-11).
pub(crate) const REQUEST_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Streamed bodies are sent in pieces of at least so many bytes, so that frames and TLS records are
/// full; it is also the size beyond which a body is compressed (CMP-03).
pub(crate) const CHUNK_BYTES: usize = 128 * 1024;

/// A response's body.
pub(crate) struct Body {
    source: Source,
    /// Dropped when the body has been sent or given up: counts, limits.
    guard: Option<Box<dyn Send>>,
}

/// A stream of pieces, made as they are sent.
pub(crate) type Pieces = Box<dyn Iterator<Item = Bytes> + Send>;
/// A stream of frames that come when they come.
pub(crate) type Frames = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

enum Source {
    /// Everything at once.
    Full(Bytes),
    /// More than [`CHUNK_BYTES`], made piece by piece.
    Pieces(Pieces),
    /// A watch.
    Frames(Frames),
}

impl Body {
    /// The whole body.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::new(Source::Full(bytes.into()))
    }

    /// Nothing.
    pub(crate) fn empty() -> Self {
        Self::full(Bytes::new())
    }

    /// A body whose pieces are made as they are sent. One that fits into a single piece is sent as a
    /// whole, with its length.
    pub(crate) fn pieces(mut pieces: Pieces) -> Self {
        let first = pieces.next().unwrap_or_default();
        match pieces.next() {
            None => Self::full(first),
            Some(second) => {
                let all = [first, second].into_iter().chain(pieces);
                Self::new(Source::Pieces(Box::new(all)))
            }
        }
    }

    /// A body that goes on as long as there are frames.
    pub(crate) fn frames(frames: Frames) -> Self {
        Self::new(Source::Frames(frames))
    }

    fn new(source: Source) -> Self {
        Self { source, guard: None }
    }

    /// Keeps `guard` until the body has been sent or given up.
    pub(crate) fn hold(&mut self, guard: Box<dyn Send>) {
        self.guard = Some(guard);
    }

    /// Whether compressing is worth it: it is long, and no watch.
    pub(crate) fn is_long(&self) -> bool {
        match &self.source {
            Source::Full(bytes) => bytes.len() > CHUNK_BYTES,
            Source::Pieces(_) => true,
            Source::Frames(_) => false,
        }
    }

    /// The same body with `wrap` around its pieces; watches stay as they are.
    pub(crate) fn map_pieces(self, wrap: impl FnOnce(Pieces) -> Pieces) -> Self {
        let source = match self.source {
            Source::Full(bytes) => Source::Pieces(wrap(Box::new(std::iter::once(bytes)))),
            Source::Pieces(pieces) => Source::Pieces(wrap(pieces)),
            watch @ Source::Frames(_) => watch,
        };
        Self { source, guard: self.guard }
    }

    /// The same body with `convert` applied to it as a whole; watches stay as they are.
    pub(crate) fn map_whole(self, convert: impl FnOnce(&[u8]) -> Vec<u8>) -> Self {
        let whole = match self.source {
            Source::Full(bytes) => bytes,
            Source::Pieces(pieces) => {
                let mut whole = BytesMut::new();
                pieces.for_each(|piece| whole.extend_from_slice(&piece));
                whole.freeze()
            }
            watch @ Source::Frames(_) => return Self { source: watch, guard: self.guard },
        };
        Self { source: Source::Full(convert(&whole).into()), guard: self.guard }
    }

    /// The length, where it is known.
    pub(crate) fn len(&self) -> Option<usize> {
        match &self.source {
            Source::Full(bytes) => Some(bytes.len()),
            _ => None,
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.source {
            Source::Full(bytes) => {
                Poll::Ready(Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty()))
            }
            Source::Pieces(pieces) => Poll::Ready(pieces.next()),
            Source::Frames(frames) => frames.as_mut().poll_next(context),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.source, Source::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            _ => SizeHint::default(),
        }
    }
}

/// Reads a request's body, or 413.
pub(crate) async fn read<B>(body: B) -> Result<Bytes, Status>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let too_large = || Status::too_large(format_args!("limit is {REQUEST_BYTES_MAX}"));
    let mut body = body;
    if body.size_hint().lower() > REQUEST_BYTES_MAX as u64 {
        return Err(too_large());
    }
    let (mut first, mut more) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Status::bad_request(format!("reading the body: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + more.len() + data.len() > REQUEST_BYTES_MAX {
            return Err(too_large());
        }
        if first.is_empty() {
            first = data; // most bodies are one frame: nothing is copied
        } else {
            more.extend_from_slice(&data);
        }
    }
    if more.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + more.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&more);
    Ok(whole.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{Full, StreamBody};

    fn collect(body: Body) -> (Option<u64>, Vec<u8>) {
        let size = body.size_hint().exact();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        (size, runtime.block_on(body.collect()).unwrap().to_bytes().to_vec())
    }

    fn pieces(parts: &'static [&'static str]) -> Body {
        Body::pieces(Box::new(parts.iter().map(|part| Bytes::from(*part))))
    }

    #[test]
    fn a_body_of_one_piece_has_a_length() {
        assert_eq!(collect(pieces(&["abc"])), (Some(3), b"abc".to_vec()));
        assert_eq!(collect(pieces(&[])), (Some(0), Vec::new()));
        assert_eq!(collect(pieces(&["ab", "cd", "e"])), (None, b"abcde".to_vec()));
    }

    #[test]
    fn the_guard_lives_as_long_as_the_body() {
        let guard = std::sync::Arc::new(());
        let mut body = pieces(&["ab", "cd"]);
        body.hold(Box::new(guard.clone()));
        let body = body.map_pieces(|pieces| pieces);
        assert_eq!(std::sync::Arc::strong_count(&guard), 2);
        drop(collect(body));
        assert_eq!(std::sync::Arc::strong_count(&guard), 1);
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
        // without a length that could be seen before
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
