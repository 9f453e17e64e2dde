//! POST, PUT and PATCH.

use bytes::Bytes;
use pintle_meta::Status;
use pintle_registry::request::Body;

use super::Call;
use crate::options::{Write, write_options};
use crate::respond::Response;
use crate::target::Found;

/// Serves POST to a collection or to a subresource.
pub(super) async fn create(
    call: &Call<'_>,
    found: &Found,
    bytes: Bytes,
) -> Result<Response, Status> {
    let (negotiated, rendering) = call.negotiate(found)?;
    let encoding = call.preferences().body(found.encodings())?;
    let options = write_options(call.query, Write::Create, call.warnings)?;
    let body = Body { bytes, encoding };
    let outcome = call.api.registry.create(&found.target, &body, &options, &call.context()).await?;
    call.respond(&outcome, &rendering, negotiated)
}

/// Serves PUT.
pub(super) async fn update(
    call: &Call<'_>,
    found: &Found,
    bytes: Bytes,
) -> Result<Response, Status> {
    let (negotiated, rendering) = call.negotiate(found)?;
    let options = write_options(call.query, Write::Update, call.warnings)?;
    let encoding = call.preferences().body(found.encodings())?;
    let body = Body { bytes, encoding };
    let outcome =
        call.api.registry.update(&found.target, &body, &options, &call.context(), call).await?;
    call.respond(&outcome, &rendering, negotiated)
}

/// Serves PATCH.
pub(super) async fn patch(
    call: &Call<'_>,
    found: &Found,
    bytes: Bytes,
) -> Result<Response, Status> {
    let patch_type = call.preferences().patch(!found.target.resource.typed_items)?;
    let (negotiated, rendering) = call.negotiate(found)?;
    let options = write_options(call.query, Write::Patch(patch_type), call.warnings)?;
    let (registry, context) = (&call.api.registry, call.context());
    call.record.iter().for_each(|record| record.patch(&bytes, patch_type));
    let outcome =
        registry.patch(&found.target, &bytes, patch_type, &options, &context, call).await?;
    call.respond(&outcome, &rendering, negotiated)
}
