//! Exec, attach and port-forward: streams between a client and the kubelet of a pod's node.
//!
//! A protocol that both sides speak is passed through unchanged. Where the kubelet does not declare
//! the newer WebSocket protocols, [`translate`] turns a client's WebSocket into SPDY for remote
//! commands, and [`tunnel`] does so for port-forwarding.

mod translate;
mod tunnel;

use bytes::Bytes;
use http::Request;
use http::header::HeaderMap;
use http_body_util::Empty;
use pintle_effects::{Destination, destination};
use pintle_meta::Status;
use pintle_registry::Verb;
use pintle_value::Value;

use super::failed;
use crate::backends::{Backend, Verification};
use crate::handlers::Call;
use crate::query::percent_encode;
use crate::relay::{headers, upgrade};
use crate::respond::Response;
use crate::target::Found;
use crate::websocket;

/// Serves GET or POST of a pod's `exec`, `attach` or `portforward`; `options` is the options
/// object.
pub(super) async fn stream(
    call: &Call<'_>,
    found: &Found,
    options: &Value,
) -> Result<Response, Status> {
    authorize(call, found).await?;
    let container = options.str_at(&["container"]).unwrap_or_default();
    let kubelets = &call.api.kubelets;
    let preferred = &kubelets.preferred_address_types;
    let to = destination(&call.api.registry, &found.target, container, preferred)?;
    let Destination::Kubelet { kubelet, container } = to else {
        return Err(failed("a pod without a node".to_owned()));
    };
    let part = found.target.subresource.as_str();
    let remote = Remote {
        backend: kubelets.backend(&kubelet, Verification::Configured).await,
        path: path(found, &container, options),
    };
    call.api.metrics.streams.opened(part, kubelet.supports_websockets);
    let is_websocket = websocket::is_asked_for(&call.head.headers);
    match part {
        _ if kubelet.supports_websockets || !is_websocket => {}
        "portforward" => {
            let protocols = tunnel::protocols(&call.head.headers);
            if !protocols.is_empty() {
                return tunnel::tunnel(call, remote, &protocols).await;
            }
        }
        _ if translate::is_wanted(&call.head.headers) => {
            return translate::translate(call, remote, options);
        }
        _ => {}
    }
    forward(call, &remote).await
}

/// The kubelet and the path of a stream.
struct Remote {
    backend: Backend,
    /// The path with its query.
    path: String,
}

/// Requires the permission to create, too: a client that opens a WebSocket sends GET
/// (`AuthorizePodWebsocketUpgradeCreatePermission`).
async fn authorize(call: &Call<'_>, found: &Found) -> Result<(), Status> {
    if call.info.verb.is(Verb::Create) {
        return Ok(());
    }
    let ruling = call.api.rule(call.user, Verb::Create.as_str(), call.info).await;
    if ruling.allowed() {
        return Ok(());
    }
    let resource = found.target.resource.group_resource();
    Err(Status::forbidden(&resource, &found.target.name, &ruling.reason.to_string()))
}

/// Builds the kubelet's path, with the kubelet's names of the options, in upstream's order.
fn path(found: &Found, container: &str, options: &Value) -> String {
    let (namespace, pod) = (&found.target.namespace, &found.target.name);
    let (action, pairs) = match found.target.subresource.as_str() {
        "portforward" => ("portForward", ports(options)),
        part => (part, streams(options)),
    };
    let mut path = format!("/{action}/{namespace}/{pod}");
    if !container.is_empty() {
        path.push('/');
        path.push_str(container);
    }
    for (index, (name, value)) in pairs.iter().enumerate() {
        path.push(if index == 0 { '?' } else { '&' });
        path.push_str(&format!("{name}={}", percent_encode(value)));
    }
    path
}

fn streams(options: &Value) -> Vec<(&'static str, String)> {
    let words = options.get("command").and_then(Value::as_array).unwrap_or_default();
    let words = words.iter().filter_map(Value::as_str);
    let mut pairs: Vec<_> = words.map(|word| ("command", word.to_owned())).collect();
    for (name, ours) in
        [("error", "stderr"), ("input", "stdin"), ("output", "stdout"), ("tty", "tty")]
    {
        pairs.extend(is_on(options, ours).then(|| (name, "1".to_owned())));
    }
    pairs
}

fn is_on(options: &Value, name: &str) -> bool {
    options.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn ports(options: &Value) -> Vec<(&'static str, String)> {
    let ports = options.get("ports").and_then(Value::as_array).unwrap_or_default();
    let ports: Vec<String> =
        ports.iter().filter_map(Value::as_int).map(|port| port.to_string()).collect();
    if ports.is_empty() { Vec::new() } else { vec![("port", ports.join(","))] }
}

/// Forwards the client's own upgrade to the kubelet.
async fn forward(call: &Call<'_>, remote: &Remote) -> Result<Response, Status> {
    let client = upgrade::client(call.head);
    let client = client.ok_or_else(|| Status::bad_request("Upgrade request required"))?;
    let mut request = Request::builder().method(&call.head.method).uri(&remote.path);
    let headers = relayed_headers(call);
    request.headers_mut().into_iter().for_each(|to| to.clone_from(&headers));
    let request = request.body(Empty::<Bytes>::new());
    let request = request.map_err(|why| Status::bad_request(why.to_string()))?;
    let stopping = call.api.lifecycle.stopping();
    upgrade::forward(client, &remote.backend, request, stopping).await.map_err(failed)
}

/// The client's headers without credentials, for the kubelet.
pub(super) fn relayed_headers(call: &Call<'_>) -> HeaderMap {
    let mut headers = call.api.authentication.without_credentials(&call.head.headers);
    headers::remove_body_length(&mut headers);
    headers::forward_for(call.from, &mut headers);
    headers
}

#[cfg(test)]
mod tests {
    use pintle_value::json;

    use super::*;

    #[test]
    fn kubelets_have_names_of_their_own_for_options() {
        let options = br#"{"command":["sh","-c","a b&c"],"stdin":true,"stdout":true,"tty":true,"stderr":true}"#;
        let pairs = streams(&json::parse(options).unwrap());
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let expected = "command=sh command=-c command=a b&c error=1 input=1 output=1 tty=1";
        assert_eq!(pairs.join(" "), expected);
        let options = br#"{"ports":[80,81]}"#;
        assert_eq!(ports(&json::parse(options).unwrap()), [("port", "80,81".to_owned())]);
        assert_eq!(ports(&json::parse(b"{}").unwrap()), []);
    }
}
