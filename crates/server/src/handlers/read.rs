//! GET: one object, or a collection.

use pintle_meta::Status;
use pintle_registry::results::ResponseBody;
use pintle_registry::work;

use super::Call;
use crate::options::list_options;
use crate::respond::Response;
use crate::target::Found;

/// Serves GET of one object.
pub(super) async fn get(call: &Call<'_>, found: &Found) -> Result<Response, Status> {
    let (negotiated, rendering) = call.negotiate(found)?;
    let revision = call.query.text("resourceVersion");
    let outcome = call.api.registry.get(&found.target, revision).await?;
    if let ResponseBody::Object(object) = &outcome.body
        && !negotiated.is_stored_form()
    {
        work::ahead(object.size()).await;
    }
    call.respond(&outcome, &rendering, negotiated)
}

/// Serves GET of a collection.
pub(super) async fn list(call: &Call<'_>, found: &Found) -> Result<Response, Status> {
    let (negotiated, rendering) = call.negotiate(found)?;
    let mut options = list_options(call.query)?;
    options.names_unreadable = call.api.settings.unsafe_deletion;
    let list = call.api.registry.list(&found.collection(), &options).await?;
    call.respond_list(list, &rendering, negotiated).await
}
