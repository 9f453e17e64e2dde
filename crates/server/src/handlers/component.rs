//! `componentstatuses`: what this server knows of the components beside it. There is one, its store.

use bytes::Bytes;
use pintle_meta::Status;

use super::Call;
use crate::respond::{self, Response};
use crate::target::Found;

/// The store, under the name that upstream has for it.
const STORE: &str = "etcd-0";

/// GET of the one component, or of all.
pub(super) fn read(call: &Call<'_>, found: &Found) -> Result<Response, Status> {
    let (negotiated, rendering) = call.negotiate(found)?;
    let store = Bytes::from(status(call));
    match (call.info.verb, found.target.name.as_str()) {
        ("get", STORE) => {
            let body = rendering.document(&store)?;
            Ok(respond::object(200, body, rendering.type_name(), negotiated))
        }
        ("get", name) => Err(Status::not_found(&found.target.resource.group_resource(), name)),
        _ => respond::collection(b"{}", Box::new(std::iter::once(store)), &rendering, negotiated),
    }
}

fn status(call: &Call<'_>) -> String {
    let condition = match call.api.registry.check() {
        Ok(()) => r#""status":"True","message":"ok""#,
        Err(_) => r#""status":"False","message":"the store takes no writes""#,
    };
    format!(
        "{{\"kind\":\"ComponentStatus\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"{STORE}\"}},\
         \"conditions\":[{{\"type\":\"Healthy\",{condition}}}]}}"
    )
}
