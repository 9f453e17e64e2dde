//! Proxied requests: a pod, a node or a service's endpoint answers them (upstream: `ProxyREST` and
//! `UpgradeAwareHandler`).

use bytes::Bytes;
use futures_util::stream;
use http::header::{
    CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue, LOCATION,
};
use http::{Method, Request, StatusCode};
use http_body::Body as _;
use http_body_util::Empty;
use pintle_effects::{Destination, proxied};
use pintle_meta::Status;
use pintle_meta::quote::quote;

use super::{failed, stream::relayed_headers};
use crate::backends::{self, Backend, Refused, Verification};
use crate::body::{Body, RequestBody, Upload};
use crate::handlers::Call;
use crate::header_text;
use crate::machine::random;
use crate::query::encode_path;
use crate::relay::response::{Until, relayed, relayed_from};
use crate::relay::rewriting::{Rewriting, join};
use crate::relay::{headers, page, upgrade};
use crate::respond::Response;
use crate::target::Found;

const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// Serves any method on `proxy` and on paths below it.
pub(super) async fn proxy(
    call: &Call<'_>,
    found: &Found,
    body: Upload<impl RequestBody + Send + 'static>,
) -> Result<Response, Status> {
    let to = remote(call, found).await?;
    let path = call.info.resource.as_ref().map_or("", |info| info.subpath.as_str());
    let path = if path.is_empty() { String::new() } else { join("", path) };
    if let Some(client) = upgrade::client(call.head) {
        // Upstream drops the query of an upgrade.
        let request = request(call, &path, None, relayed_headers(call), Empty::<Bytes>::new())?;
        let stopping = call.api.lifecycle.stopping();
        let answer = upgrade::forward(client, &to.backend, request, stopping).await;
        return answer.map_err(failed);
    }
    if path.is_empty() && matches!(call.head.method, Method::GET | Method::HEAD) {
        return redirect(call);
    }
    relay(call, to, &path, body).await
}

/// The backend of a proxied request.
struct Remote {
    backend: Backend,
    /// The host that links in the backend's pages name.
    host: String,
}

/// Returns the backend that the request names.
async fn remote(call: &Call<'_>, found: &Found) -> Result<Remote, Status> {
    let kubelets = &call.api.kubelets;
    let preferred = &kubelets.preferred_address_types;
    let registry = &call.api.registry;
    let remote = match proxied(registry, &found.target, preferred, random).await? {
        Destination::Nothing => return Err(failed("a pod without a node".to_owned())),
        Destination::Kubelet { kubelet, .. } => Remote {
            host: kubelet.authority(),
            backend: kubelets.backend(&kubelet, Verification::Configured).await,
        },
        Destination::Address { host, tls } => {
            Remote { backend: kubelets.unverified(with_port(&host, tls), tls).await, host }
        }
    };
    let backend = call.api.settings.proxied_addresses.find(remote.backend).await;
    let backend = backend.map_err(|why| match why {
        Refused::Address | Refused::Unknown(_) => Status::bad_request(why.to_string()),
        Refused::Port(_) => unreachable(&why),
    })?;
    Ok(Remote { backend, ..remote })
}

/// Returns `host:port`, with the scheme's default port where `host` has none.
fn with_port(host: &str, tls: bool) -> String {
    let port =
        host.rsplit_once(':').filter(|(before, _)| !before.contains(':') || before.ends_with(']'));
    match (port, tls) {
        (Some(_), _) => host.to_owned(),
        (None, true) => format!("{host}:443"),
        (None, false) => format!("{host}:80"),
    }
}

/// Redirects a client that names no path to the root below the proxy, so that relative links
/// resolve.
fn redirect(call: &Call<'_>) -> Result<Response, Status> {
    let query = call.head.uri.query().filter(|query| !query.is_empty());
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let to = header(&format!("{}/{query}", call.info.path))?;
    response.headers_mut().insert(LOCATION, to);
    Ok(response)
}

/// Forwards the request and relays the backend's response.
async fn relay(
    call: &Call<'_>,
    to: Remote,
    path: &str,
    body: Upload<impl RequestBody + Send + 'static>,
) -> Result<Response, Status> {
    let rewriting = Rewriting::new(&call.info.path, path, to.host, host(call).to_owned());
    let mut headers = call.api.authentication.without_credentials(&call.head.headers);
    headers::remove_hop_by_hop(&mut headers);
    headers::remove_body_length(&mut headers);
    headers::forward_for(call.from, &mut headers);
    // A method that may have a body gets an explicit length of zero.
    let takes_body = [Method::POST, Method::PUT, Method::PATCH].contains(&call.head.method);
    if takes_body && body.is_end_stream() {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(0));
    }
    let uri = rewriting.forwarded(&encode_path(if path.is_empty() { "/" } else { path }));
    headers.insert(FORWARDED_URI, header(&uri)?);
    let request = request(call, path, call.head.uri.query(), headers, body)?;
    let mut stopping = call.api.lifecycle.stopping();
    let answer = tokio::select! {
        answer = to.backend.ask(request) => answer.map_err(|failure| unreachable(&failure))?,
        () = stopping.wait() => return Err(unreachable(&"the server stops")),
    };
    rewritten(call, answer, &rewriting).await
}

/// Rewrites the redirect, or the links of an HTML page, so that they stay below the proxy.
async fn rewritten(
    call: &Call<'_>,
    mut answer: backends::Response,
    rewriting: &Rewriting,
) -> Result<Response, Status> {
    let (until, stopping) = (Until::ServerStops, call.api.lifecycle.stopping());
    if let Some(location) = answer.headers().get(LOCATION).map(header_text::text) {
        let to = rewriting.rewritten(&location).map_err(|why| {
            let location = quote(&location);
            Status::internal(format!(
                "error trying to parse Location header: parse {location}: {why}"
            ))
        })?;
        if let Some(to) = to {
            let to = header(&to)?;
            answer.headers_mut().insert(LOCATION, to);
        }
        return Ok(relayed(answer, until, stopping));
    }
    let Some(encoding) = page::Encoding::of_page(answer.headers()) else {
        return Ok(relayed(answer, until, stopping));
    };
    if call.head.method == Method::HEAD {
        // The rewritten page has another length.
        answer.headers_mut().remove(CONTENT_LENGTH);
        return Ok(relayed(answer, until, stopping));
    }
    let mut ends = stopping.clone();
    let beginning = tokio::select! {
        beginning = page::beginning(answer.body_mut()) => beginning,
        () = ends.wait() => return Err(unreachable(&"the server stops")),
    };
    let beginning = beginning.map_err(|why| failed(why.to_string()))?;
    if !beginning.is_all {
        return Ok(relayed_from(beginning.bytes, answer, until, stopping));
    }
    pintle_registry::work::ahead(beginning.bytes.len()).await;
    let page = page::rewritten(&beginning.bytes, encoding, rewriting);
    let page = page.map_err(|why| failed(why.to_string()))?;
    let length = HeaderValue::from(page.len());
    let mut response = relayed(answer, until, stopping);
    response.headers_mut().insert(CONTENT_LENGTH, length);
    // A relayed body is never compressed or indented by this server, and this page is encoded
    // already.
    *response.body_mut() = Body::relayed(Box::pin(stream::iter([Ok(page)])));
    Ok(response)
}

fn request<T>(
    call: &Call<'_>,
    path: &str,
    query: Option<&str>,
    headers: HeaderMap,
    body: T,
) -> Result<Request<T>, Status> {
    let mut target = encode_path(if path.is_empty() { "/" } else { path });
    query.iter().for_each(|query| target.extend(["?", query]));
    let request = Request::builder().method(&call.head.method).uri(target).body(body);
    let mut request = request.map_err(|why| Status::bad_request(why.to_string()))?;
    *request.headers_mut() = headers;
    // HTTP/1.1 has the client's host in a header, HTTP/2 in `:authority`.
    request.headers_mut().insert(HOST, header(host(call))?);
    Ok(request)
}

/// Returns the host of the client's request.
fn host<'a>(call: &'a Call<'_>) -> &'a str {
    let named = call.head.headers.get(HOST).and_then(|host| host.to_str().ok());
    named.or_else(|| call.head.uri.authority().map(|host| host.as_str())).unwrap_or_default()
}

fn header(text: &str) -> Result<HeaderValue, Status> {
    let value = HeaderValue::from_bytes(text.as_bytes());
    value.map_err(|why: InvalidHeaderValue| Status::bad_request(why.to_string()))
}

/// The 503 of an unreachable backend; the text is upstream's.
fn unreachable(why: &dyn std::fmt::Display) -> Status {
    Status::service_unavailable(format!("error trying to reach service: {why}"))
}
