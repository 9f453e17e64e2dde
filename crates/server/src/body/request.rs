//! The bodies of requests: they are read within a limit and a time, discarded, or taken by a proxy.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Version;
use http::header::EXPECT;
use http::request::Parts;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use pintle_meta::Status;

/// The largest request body, in bytes: upstream's 3 MiB (OAS-11).
const REQUEST_BYTES_MAX: usize = 3 * 1024 * 1024;
/// A request body above [`REQUEST_BYTES_MAX`] is read and discarded up to this size.
const REQUEST_BYTES_DISCARDED_MAX: usize = 4 * REQUEST_BYTES_MAX;
/// An unread body is drained up to this size (Go's value) and for this time.
const UNWANTED_BYTES_MAX: usize = 256 * 1024;
const UNWANTED_TIMEOUT: Duration = Duration::from_secs(5);
/// The time within which a request body must arrive: upstream's for a write. It is independent of
/// the request's timeout.
const READ_TIMEOUT: Duration = Duration::from_secs(34);

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
