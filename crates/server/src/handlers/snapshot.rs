//! GET of a snapshot: all objects in one file, sent while it is made.
//!
//! Invariant: a user who takes a snapshot may list every object, because the snapshot contains all
//! objects, secrets included.

use bytes::Bytes;
use futures_util::stream;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use pintle_meta::Status;
use pintle_registry::Verb;
use tokio::sync::OwnedSemaphorePermit;

use super::Call;
use crate::body::{Body, Broken};
use crate::request_info::{RequestInfo, RequestVerb, ResourceInfo};
use crate::respond::Response;
use crate::snapshots::{CLIENTS_MAX, Taking, Trigger};

/// `Retry-After` for a client while too many other clients take snapshots.
const RETRY_AFTER_SECONDS: u32 = 10;

/// Answers a request for a snapshot.
pub(crate) async fn answer(call: &Call<'_>) -> Result<Response, Status> {
    may_read_all(call).await?;
    let snapshots = &call.api.snapshots;
    let permit = snapshots.enter().ok_or_else(|| {
        let why = format!("{CLIENTS_MAX} snapshots are being taken; try again later");
        Status::too_many_requests(why, RETRY_AFTER_SECONDS)
    })?;
    let taking = snapshots.begin(&call.api.registry, Trigger::Request).await;
    let taking = taking
        .map_err(|why| Status::service_unavailable(format!("cannot take a snapshot: {why}")))?;
    let pieces = stream::unfold(Some((taking, permit)), pieces);
    let mut response = Response::new(Body::relayed(Box::pin(pieces)));
    let media_type = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    Ok(response)
}

/// A snapshot for a client, with its permit; `None` after its end.
type Sent = Option<(Taking, OwnedSemaphorePermit)>;

/// The next bytes for a client. After an error nothing follows, so the response breaks off.
async fn pieces(sent: Sent) -> Option<(Result<Bytes, Broken>, Sent)> {
    let (mut taking, permit) = sent?;
    match taking.next().await {
        Ok(Some(piece)) => Some((Ok(piece), Some((taking, permit)))),
        Ok(None) => {
            taking.complete();
            None
        }
        Err(why) => {
            tracing::warn!(%why, "a snapshot for a client is broken off");
            Some((Err(Broken(why)), None))
        }
    }
}

/// Returns 403 unless the user may list every resource. The right to get all paths is not enough,
/// because it is often granted for metrics.
async fn may_read_all(call: &Call<'_>) -> Result<(), Status> {
    let all = || "*".to_owned();
    let resource =
        ResourceInfo { group: all(), version: all(), resource: all(), ..ResourceInfo::default() };
    let verb = RequestVerb::Resource(Verb::List);
    let info = RequestInfo { verb, path: call.info.path.clone(), resource: Some(resource) };
    call.api.authorize(call.user, Verb::List, &info).await
}
