//! Reads the events of an extension API server's watch: one JSON object a line.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::stream::{self, BoxStream};
use http_body_util::BodyExt;
use memchr::memchr;
use pintle_value::{Value, json};
use tokio::time::Instant;

use super::exchange::ANSWER_BYTES_MAX;

/// The events as they arrive. They end with the body, with an invalid event, and at the deadline.
pub(super) fn events<B>(body: B, timeout: Duration) -> BoxStream<'static, Value>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
{
    let lines = Lines { body, received: BytesMut::new(), searched: 0 };
    let deadline = Instant::now() + timeout;
    Box::pin(stream::unfold(lines, move |mut lines| async move {
        let line = tokio::time::timeout_at(deadline, lines.next()).await.ok()??;
        Some((json::parse(&line).ok()?, lines))
    }))
}

/// The lines of a body.
struct Lines<B> {
    body: B,
    received: BytesMut,
    /// The number of bytes that were searched for a newline.
    searched: usize,
}

impl<B: http_body::Body<Data = Bytes> + Unpin> Lines<B> {
    /// The next line; `None` if the body ends, breaks or has too long a line.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(end) = memchr(b'\n', &self.received[self.searched..]) {
                let line = self.received.split_to(self.searched + end).freeze();
                self.received.advance(1);
                self.searched = 0;
                return Some(line);
            }
            self.searched = self.received.len();
            if self.searched > ANSWER_BYTES_MAX {
                return None;
            }
            let frame = self.body.frame().await?.ok()?;
            if let Some(data) = frame.data_ref() {
                self.received.extend_from_slice(data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;

    use super::*;

    #[tokio::test]
    async fn events_are_lines_however_the_body_is_split() {
        let text = b"{\"a\":1}\n{\"b\":\"\\n\"}\n{\"c\":3}";
        for length in 1..text.len() {
            let pieces = text.chunks(length).map(|piece| {
                Ok::<_, std::convert::Infallible>(Frame::data(Bytes::copy_from_slice(piece)))
            });
            let body = StreamBody::new(stream::iter(pieces.collect::<Vec<_>>()));
            let events: Vec<Value> = events(body, Duration::from_secs(9)).collect().await;
            let events: Vec<String> = events.iter().map(json::to_string).collect();
            assert_eq!(events, [r#"{"a":1}"#, r#"{"b":"\n"}"#], "a line ends with a newline");
        }
        let nonsense = Full::new(Bytes::from_static(b"x\n{}\n"));
        assert_eq!(events(nonsense, Duration::from_secs(9)).count().await, 0);
    }
}
