//! Port-forwarding over a WebSocket, for a kubelet that speaks only SPDY (upstream:
//! `TunnelingHandler`).

use bytes::Bytes;
use http::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Request, StatusCode};
use http_body_util::Empty;
use pintle_meta::Status;
use pintle_streams::Tunnel;

use super::super::failed;
use super::{Remote, relayed_headers};
use crate::backends;
use crate::handlers::Call;
use crate::header_text;
use crate::relay::upgrade::{self, UpgradeResponse};
use crate::respond::{self, Response};
use crate::websocket::{self, Handshake};

/// The prefix and suffix of a subprotocol that carries SPDY within a WebSocket.
const PREFIX: &str = "SPDY/3.1+";
const SUFFIX: &str = ".k8s.io";
pub(super) const SPDY: &str = "SPDY/3.1";
pub(super) const PROTOCOL_VERSION: HeaderName =
    HeaderName::from_static("x-stream-protocol-version");

/// The protocols over SPDY that a client offers through a tunnel.
pub(super) fn protocols(headers: &HeaderMap) -> Vec<String> {
    let offered = websocket::subprotocols(headers).into_iter();
    let inner = offered.filter(|name| name.ends_with(SUFFIX));
    inner.filter_map(|name| Some(name.strip_prefix(PREFIX)?.to_owned())).collect()
}

/// Opens the tunnel once the kubelet has switched to SPDY.
pub(super) async fn tunnel(
    call: &Call<'_>,
    remote: Remote,
    protocols: &[String],
) -> Result<Response, Status> {
    let streams = &call.api.metrics.streams;
    let handshake = Handshake::read(call.head);
    let handshake = handshake.inspect_err(|status| streams.tunnelled(status.code))?;
    let asked = upgrade::ask(&remote.backend, request(call, &remote.path, protocols)?).await;
    let answer = match asked.map_err(failed)? {
        UpgradeResponse::Refused(response) => {
            streams.tunnelled(response.status().as_u16());
            return Ok(response);
        }
        UpgradeResponse::Switched(answer) => answer,
    };
    if !switches_to_spdy(&answer) {
        streams.tunnelled(500);
        let why = "unable to upgrade: missing upgrade headers in response\n";
        return Ok(respond::text(500, why));
    }
    let chosen = answer.headers().get(PROTOCOL_VERSION).map(header_text::text);
    let chosen = chosen.map(|version| format!("{PREFIX}{}", version.trim()));
    let chosen = chosen.filter(|name| handshake.offered.contains(name)).unwrap_or_default();
    streams.tunnelled(101);
    let stopping = call.api.lifecycle.stopping();
    Ok(handshake.accept(&chosen, move |client| {
        upgrade::couple(client, answer, Tunnel::default(), stopping)
    }))
}

/// Whether the kubelet's response switches to SPDY.
pub(super) fn switches_to_spdy(answer: &backends::Response) -> bool {
    let says = |name: &HeaderName, what: &str| {
        let value = answer.headers().get(name).map(header_text::text).unwrap_or_default();
        value.to_ascii_lowercase().contains(&what.to_ascii_lowercase())
    };
    answer.status() == StatusCode::SWITCHING_PROTOCOLS
        && says(&CONNECTION, "upgrade")
        && says(&UPGRADE, SPDY)
}

/// Builds the request that upgrades to SPDY.
fn request(
    call: &Call<'_>,
    path: &str,
    protocols: &[String],
) -> Result<Request<Empty<Bytes>>, Status> {
    let mut headers = relayed_headers(call);
    for name in [SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION] {
        headers.remove(name);
    }
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(SPDY));
    headers.remove(PROTOCOL_VERSION);
    for protocol in protocols {
        let protocol = HeaderValue::from_str(protocol);
        let protocol = protocol.map_err(|why| Status::bad_request(why.to_string()))?;
        headers.append(PROTOCOL_VERSION, protocol);
    }
    let request = Request::post(path).body(Empty::new());
    let mut request = request.map_err(|why| Status::bad_request(why.to_string()))?;
    *request.headers_mut() = headers;
    Ok(request)
}
