//! DELETE of one object, or of a collection.

use bytes::Bytes;
use pintle_meta::Status;
use pintle_registry::request::{DeleteOptions, Encoding};

use super::Call;
use crate::negotiation::Encodings;
use crate::options::{delete_options, list_options};
use crate::respond::{self, Response};
use crate::target::Found;

/// DELETE of one object.
pub(super) async fn delete(
    call: &Call<'_>,
    found: &Found,
    body: Bytes,
) -> Result<Response, Status> {
    let (negotiated, rendering) = call.negotiate(found)?;
    let options = options(call, &body).await?;
    let outcome = call.api.registry.delete(&found.target, &options, &call.context()).await?;
    respond::outcome(&outcome, &rendering, negotiated)
}

/// DELETE of a collection.
pub(super) async fn delete_collection(
    call: &Call<'_>,
    found: &Found,
    body: Bytes,
) -> Result<Response, Status> {
    let (negotiated, rendering) = call.negotiate(found)?;
    let selection = list_options(call.query)?;
    let options = options(call, &body).await?;
    let registry = &call.api.registry;
    let list = registry
        .delete_collection(&found.collection(), &selection, &options, &call.context())
        .await?;
    respond::list(list, &rendering, negotiated).await
}

async fn options(call: &Call<'_>, body: &Bytes) -> Result<DeleteOptions, Status> {
    // Only a body that is there has to say what it is.
    let encoding =
        if body.is_empty() { Encoding::Json } else { call.preferences().body(Encodings::ALL)? };
    let mut options = delete_options(call.query, body, encoding, call.warnings)?;
    if !body.is_empty() {
        call.record.iter().for_each(|record| record.delete_options(body, encoding));
    }
    // It needs a permission of its own, as upstream has it; without that it changes nothing.
    if options.ignore_read_errors {
        let verb = "unsafe-delete-ignore-read-errors";
        options.ignore_read_errors = call.api.rule(call.user, verb, call.info).await.allowed();
    }
    Ok(options)
}
