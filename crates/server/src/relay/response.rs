//! Relays a backend's response to the client.

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::StatusCode;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_LENGTH, HeaderName,
};
use http::response::Parts;
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::headers;
use crate::backends;
use crate::body::{Body, Broken};
use crate::lifecycle::Stopping;
use crate::respond::Response;

/// CORS headers, which only this server sets.
const CORS: [HeaderName; 4] = [
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN,
];

type Piece = Result<Bytes, Broken>;

/// The deadline of a relayed response.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    /// The response must be complete by this time.
    Time(Instant),
    /// The response is a watch, which ends normally when the server stops.
    WatchEnds,
    /// The response is aborted when the server stops.
    ServerStops,
}

/// Relays a response as it arrives.
pub(crate) fn relayed(answer: backends::Response, until: Until, stopping: Stopping) -> Response {
    relayed_from(Bytes::new(), answer, until, stopping)
}

/// Relays a response whose beginning has been read.
pub(crate) fn relayed_from(
    beginning: Bytes,
    answer: backends::Response,
    until: Until,
    stopping: Stopping,
) -> Response {
    let (mut head, body) = answer.into_parts();
    received(&mut head);
    let beginning = Some(beginning).filter(|bytes| !bytes.is_empty());
    let pieces = stream::iter(beginning.map(Ok)).chain(pieces(body, until, stopping));
    let mut response = Response::new(Body::relayed(Box::pin(pieces)));
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    response
}

/// Removes headers that are not for the client.
fn received(head: &mut Parts) {
    headers::remove_hop_by_hop(&mut head.headers);
    CORS.iter().for_each(|name| drop(head.headers.remove(name)));
    // These responses have no body. RFC 9110 (8.6) forbids Content-Length for 204, and for 304 does
    // not require it.
    if matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        head.headers.remove(CONTENT_LENGTH);
    }
}

/// The body as it arrives. The client's response is aborted if the body breaks off or misses its
/// deadline.
fn pieces(
    body: backends::ResponseBody,
    until: Until,
    stopping: Stopping,
) -> impl Stream<Item = Piece> + Send {
    stream::unfold(Some((body, stopping)), move |state| async move {
        let (mut body, mut stopping) = state?;
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame?,
            broken = deadline_error(until, &mut stopping) => return broken.map(|broken| (Err(broken), None)),
        };
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(piece)) => Some((Ok(piece), Some((body, stopping)))),
            Ok(Err(_trailers)) => None,
            Err(why) => Some((Err(Broken(why.to_string())), None)),
        }
    })
}

/// Waits until the response must end. Returns an error, unless the response is a watch, which may
/// end then.
async fn deadline_error(until: Until, stopping: &mut Stopping) -> Option<Broken> {
    if let Until::Time(time) = until {
        tokio::time::sleep_until(time).await;
        return Some(Broken("context deadline exceeded".to_owned()));
    }
    stopping.wait().await;
    matches!(until, Until::ServerStops).then(|| Broken("the server stops".to_owned()))
}
