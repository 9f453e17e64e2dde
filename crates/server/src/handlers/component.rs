//! `componentstatuses`: the health of this server's store, and of the components that upstream
//! expects beside a server.

use bytes::Bytes;
use futures_util::future::join_all;
use pintle_meta::{GroupResource, Status};
use pintle_registry::Verb;
use pintle_value::{Value, json};

use super::Call;
use crate::probe;
use crate::respond::{self, Item, Response};
use crate::target::Found;

/// The components, sorted by name, with the local port of their `/healthz`; `None` for this
/// server's own store.
const COMPONENTS: [(&str, Option<u16>); 3] =
    [("controller-manager", Some(10257)), ("etcd-0", None), ("scheduler", Some(10259))];

/// Serves GET of one component status or of all.
pub(super) async fn read(call: &Call<'_>, found: &Found) -> Result<Response, Status> {
    let (negotiated, rendering) = call.negotiate(found)?;
    if call.info.verb.is(Verb::Get) {
        let name = found.target.name.as_str();
        let component = COMPONENTS.into_iter().find(|(known, _)| *known == name);
        let component = component
            .ok_or_else(|| Status::not_found(&GroupResource::new("", "componentstatus"), name))?;
        let body = rendering.document(&status(call, component).await)?;
        return Ok(respond::object(200, body, rendering.type_name(), negotiated));
    }
    let all = join_all(COMPONENTS.map(|component| status(call, component))).await;
    let items = all.into_iter().map(Item::Made).collect();
    respond::collection(b"{}", items, &rendering, negotiated, &call.api.runs).await
}

async fn status(call: &Call<'_>, (name, port): (&str, Option<u16>)) -> Bytes {
    let outcome = match (port, call.api.registry.check()) {
        (Some(port), _) => probe::healthz(port).await,
        (None, Ok(())) => Ok("ok".to_owned()),
        (None, Err(_)) => Err("the store takes no writes".to_owned()),
    };
    let status = if outcome.is_ok() { "True" } else { "False" };
    let (Ok(message) | Err(message)) = outcome;
    let condition = Value::from([
        ("type", Value::from("Healthy")),
        ("status", status.into()),
        ("message", message.into()),
    ]);
    let object = Value::from([
        ("kind", Value::from("ComponentStatus")),
        ("apiVersion", "v1".into()),
        ("metadata", Value::from([("name", Value::from(name))])),
        ("conditions", vec![condition].into()),
    ]);
    Bytes::from(json::to_string(&object))
}
