//! Subresources that connect to something else: logs, exec, attach, port-forward, proxies. Where a
//! connection would go is found out, and what makes it impossible is told; the connection itself is
//! not made yet.

use http::header::{CONTENT_TYPE, HeaderValue};
use pintle_effects::{Destination, destination};
use pintle_meta::{Reason, Status};

use super::Call;
use crate::body::Body;
use crate::respond::Response;
use crate::target::Found;

pub(super) fn connect(call: &Call<'_>, found: &Found) -> Result<Response, Status> {
    let container = call.query.text("container");
    match destination(&call.api.registry, &found.target, container)? {
        Destination::Nothing => {
            let mut response = Response::new(Body::empty());
            let text = HeaderValue::from_static("text/plain");
            response.headers_mut().insert(CONTENT_TYPE, text);
            Ok(response)
        }
        Destination::Kubelet { node } if found.target.resource.resource.resource == "pods" => {
            let why = format!(
                "error dialing backend: the kubelet of node {node:?} cannot be reached: this server \
                 does not connect to kubelets yet"
            );
            Err(Status::failure(Reason::Unknown, why))
        }
        Destination::Kubelet { node } => Err(unreachable(&format!("node {node:?}"))),
        Destination::Address { host, .. } => Err(unreachable(&host)),
    }
}

fn unreachable(what: &str) -> Status {
    Status::service_unavailable(format!(
        "error trying to reach service: {what}: this server does not connect to others yet"
    ))
}
