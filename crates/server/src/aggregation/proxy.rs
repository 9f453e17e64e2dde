//! Proxies requests to extension API servers, which trust this server's identity headers, and
//! relays the responses.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderName, HeaderValue, LOCATION};
use http::request::Parts;
use http::{Request, StatusCode};
use http_body_util::Empty;
use pintle_auth::User;
use pintle_trace::SpanContext;
use tokio::time::Instant;

use super::{Aggregation, ApiService, identity};
use crate::authentication::Authentication;
use crate::backends::{self, Backend, Extensions, Unreachable};
use crate::body::{Body, RequestBody, Upload};
use crate::lifecycle::Stopping;
use crate::query::Query;
use crate::relay::response::{Until, relayed};
use crate::relay::{headers, upgrade};
use crate::respond::{self, Response};
use crate::traces::context_headers;

/// The timeout of discovery, so that a slow server does not delay clients (upstream's).
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// An authorized request.
pub(crate) struct ProxiedRequest<'a> {
    pub(crate) head: &'a Parts,
    pub(crate) query: &'a Query,
    pub(crate) user: &'a User,
    pub(crate) from: IpAddr,
    pub(crate) audit_id: HeaderValue,
    /// The context of the request's trace.
    pub(crate) context: Option<SpanContext>,
    pub(crate) authentication: &'a Authentication,
    /// The deadline of the response; `None` for a long-running request.
    pub(crate) deadline: Option<Instant>,
    pub(crate) stopping: Stopping,
}

impl Aggregation {
    /// Proxies a request to the server of an APIService.
    pub(crate) async fn proxy(
        &self,
        service: &ApiService,
        proxied: ProxiedRequest<'_>,
        body: Upload<impl RequestBody + Send + 'static>,
    ) -> Response {
        if !service.is_available {
            return unavailable("service unavailable");
        }
        let backend = match self.backend(service) {
            Ok(backend) => backend,
            Err(Unreachable::Address(why)) => {
                tracing::debug!(name = %service.name, why, "cannot find an extension API server");
                return unavailable("service unavailable");
            }
            Err(Unreachable::Trust(why)) => return respond::text(500, format!("{why}\n")),
        };
        if headers::requests_upgrade(&proxied.head.headers) {
            return proxied.upgrade(&backend).await;
        }
        match proxied.request(&backend, body) {
            Ok(request) => proxied.ask(&self.extensions, &backend, request).await,
            Err(why) => unavailable(&format!("error trying to reach service: {why}")),
        }
    }
}

/// 503 as plain text, as upstream has it.
fn unavailable(why: &str) -> Response {
    respond::text(503, format!("{why}\n"))
}

impl ProxiedRequest<'_> {
    /// Builds the backend's request.
    fn request<B>(&self, backend: &Backend, body: B) -> Result<Request<B>, String> {
        let path = self.head.uri.path();
        let query = self.query.sorted();
        let target = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        let mut request = Request::new(body);
        *request.method_mut() = self.head.method.clone();
        *request.uri_mut() =
            target.parse().map_err(|why: http::uri::InvalidUri| why.to_string())?;
        let mut sent = self.authentication.without_credentials(&self.head.headers);
        let host = HeaderValue::try_from(&backend.authority).map_err(|why| why.to_string())?;
        if !headers::requests_upgrade(&self.head.headers) {
            headers::remove_hop_by_hop(&mut sent);
            sent.insert(FORWARDED_HOST, host.clone());
            sent.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
            let uri = HeaderValue::try_from(path).map_err(|why| why.to_string())?;
            sent.insert(FORWARDED_URI, uri);
        }
        sent.insert(HOST, host);
        sent.insert(AUDIT_ID, self.audit_id.clone());
        context_headers::write(self.context.as_ref(), &mut sent);
        headers::forward_for(self.from, &mut sent);
        identity::write(self.user, &mut sent)?;
        *request.headers_mut() = sent;
        Ok(request)
    }

    async fn ask(
        self,
        extensions: &Extensions,
        backend: &Backend,
        request: Request<Upload<impl RequestBody + Send + 'static>>,
    ) -> Response {
        let is_discovery = is_discovery(self.head.uri.path());
        let timeout = if is_discovery { DISCOVERY_TIMEOUT } else { Duration::MAX };
        let answer = tokio::time::timeout(timeout, extensions.ask(backend, request)).await;
        if let Ok(answer) = &answer {
            let counts = &extensions.deprecated.extensions;
            counts.add(backends::deprecations(answer), backend.host());
        }
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(failure)) => {
                return unavailable(&format!("error trying to reach service: {failure}"));
            }
            Err(_) => {
                return unavailable("error trying to reach service: context deadline exceeded");
            }
        };
        if answer.status().is_redirection() && answer.headers().contains_key(LOCATION) {
            let why = "the backend attempted to redirect this request, which is not permitted";
            let mut response = Response::new(Body::full(why));
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            return response;
        }
        relayed(answer, self.deadline.map_or(Until::WatchEnds, Until::Time), self.stopping)
    }

    /// Forwards the client's own upgrade.
    async fn upgrade(self, backend: &Backend) -> Response {
        let Some(client) = upgrade::client(self.head) else {
            return unavailable("request connection cannot be hijacked");
        };
        let request = self.request(backend, Empty::<Bytes>::new()).map(|mut request| {
            headers::remove_body_length(request.headers_mut());
            request
        });
        let answer = match request {
            Ok(request) => upgrade::forward(client, backend, request, self.stopping).await,
            Err(why) => Err(why),
        };
        answer.unwrap_or_else(|why| unavailable(&why))
    }
}

/// `/apis/G/V`
fn is_discovery(path: &str) -> bool {
    path.trim_matches('/').split('/').count() == 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discovery_is_the_path_of_a_group_version() {
        assert!(is_discovery("/apis/a.io/v1") && is_discovery("/apis/a.io/v1/"));
        assert!(!is_discovery("/apis/a.io/v1/things") && !is_discovery("/apis/a.io"));
    }
}
