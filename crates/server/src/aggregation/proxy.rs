//! Requests that an extension API server answers: handed on as they came, by a server that it believes about
//! who asks; its answer goes back as it comes.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use http::request::Parts;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use pintle_auth::User;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use super::{Aggregation, ApiService, identity};
use crate::authentication::Authentication;
use crate::backends::{self, Backend, Extensions, Unreachable};
use crate::body::{Body, Broken, RequestBody, Upload};
use crate::lifecycle::Stopping;
use crate::query::Query;
use crate::relay::headers;
use crate::respond::{self, Response};

/// A server that does not tell soon what it serves shall not keep clients waiting (upstream's).
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);
/// So long a backend may take to say why it does not switch protocols, and a client to take the rest.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(10);
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// Which web pages may ask is for this server to say.
const CORS: [HeaderName; 4] = [
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN,
];

/// A request that may be done.
pub(crate) struct Handed<'a> {
    pub(crate) head: &'a Parts,
    pub(crate) query: &'a Query,
    pub(crate) user: &'a User,
    pub(crate) from: IpAddr,
    pub(crate) audit_id: HeaderValue,
    pub(crate) authentication: &'a Authentication,
    /// When the answer must be whole; a watch has no such time.
    pub(crate) deadline: Option<Instant>,
    pub(crate) stopping: Stopping,
}

impl Aggregation {
    /// Hands a request on to the server of an API service.
    pub(crate) async fn proxy(
        &self,
        service: &ApiService,
        handed: Handed<'_>,
        body: Upload<impl RequestBody + Send + 'static>,
    ) -> Response {
        if !service.is_available {
            return unavailable("service unavailable");
        }
        let backend = match self.backend(service) {
            Ok(backend) => backend,
            Err(Unreachable::Place(why)) => {
                tracing::debug!(name = %service.name, why, "cannot find an extension API server");
                return unavailable("service unavailable");
            }
            Err(Unreachable::Trust(why)) => return respond::text(500, format!("{why}\n")),
        };
        if headers::ask_for_upgrade(&handed.head.headers) {
            return handed.upgrade(&backend).await;
        }
        match handed.request(&backend, body) {
            Ok(request) => handed.ask(&self.extensions, &backend, request).await,
            Err(why) => unavailable(&format!("error trying to reach service: {why}")),
        }
    }
}

/// In upstream's form: plain text.
fn unavailable(why: &str) -> Response {
    respond::text(503, format!("{why}\n"))
}

impl Handed<'_> {
    /// The client's request as the backend gets it.
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
        if !headers::ask_for_upgrade(&self.head.headers) {
            headers::leave_connection(&mut sent);
            sent.insert(FORWARDED_HOST, host.clone());
            sent.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
            let uri = HeaderValue::try_from(path).map_err(|why| why.to_string())?;
            sent.insert(FORWARDED_URI, uri);
        }
        sent.insert(HOST, host);
        sent.insert(AUDIT_ID, self.audit_id.clone());
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
        let patience = if is_discovery { DISCOVERY_TIMEOUT } else { Duration::MAX };
        let answer = match tokio::time::timeout(patience, extensions.ask(backend, request)).await {
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
        let (head, body) = answer.into_parts();
        let mut response = Response::new(pieces(body, self.deadline, self.stopping));
        *response.status_mut() = head.status;
        *response.headers_mut() = received(head.headers);
        response
    }

    /// Lets the backend answer the client's own upgrade.
    async fn upgrade(self, backend: &Backend) -> Response {
        let client = self.head.extensions.get::<OnUpgrade>().cloned();
        let Some(client) = client else {
            return unavailable("request connection cannot be hijacked");
        };
        let request = match self.request(backend, Empty::<Bytes>::new()) {
            Ok(mut request) => {
                headers::leave_body(request.headers_mut());
                request
            }
            Err(why) => return unavailable(&why),
        };
        let answer = match backend.ask(request).await {
            Ok(answer) => answer,
            Err(failure) => return unavailable(&failure.to_string()),
        };
        let code = answer.status();
        if code == StatusCode::SWITCHING_PROTOCOLS {
            return switched(client, answer, self.stopping);
        }
        // A backend that does not switch never gets the client's connection (CVE-2018-1002105).
        if code.as_u16() < 400 {
            return unavailable(&format!(
                "invalid upgrade response: status code {}",
                code.as_u16()
            ));
        }
        let (head, body) = answer.into_parts();
        let deadline = Some(Instant::now() + REFUSAL_TIMEOUT);
        let mut response = Response::new(pieces(body, deadline, self.stopping));
        *response.status_mut() = head.status;
        *response.headers_mut() = received(head.headers);
        response
    }
}

/// Hands the backend's switch on; bytes go both ways from then on, until either end leaves.
fn switched(client: OnUpgrade, mut answer: backends::Response, mut stopping: Stopping) -> Response {
    let headers = answer.headers().clone();
    let mut response = Response::new(Body::successor(Box::pin(async move {
        let (client, backend) = match (client.await, hyper::upgrade::on(&mut answer).await) {
            (Ok(client), Ok(backend)) => (TokioIo::new(client), TokioIo::new(backend)),
            (Err(error), _) | (_, Err(error)) => {
                tracing::debug!(%error, "a protocol was not switched");
                return;
            }
        };
        let (mut from_client, mut to_client) = tokio::io::split(client);
        let (mut from_backend, mut to_backend) = tokio::io::split(backend);
        tokio::select! {
            _ = tokio::io::copy(&mut from_client, &mut to_backend) => {}
            _ = tokio::io::copy(&mut from_backend, &mut to_client) => {}
            () = stopping.wait() => {}
        }
        // Who does not take the rest in time has left.
        let _late = tokio::time::timeout(REFUSAL_TIMEOUT, to_client.shutdown()).await.is_err();
    })));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    response
}

/// `/apis/G/V`
fn is_discovery(path: &str) -> bool {
    path.trim_matches('/').split('/').count() == 3
}

/// What of an answer's headers is the client's.
fn received(mut sent: HeaderMap) -> HeaderMap {
    headers::leave_connection(&mut sent);
    CORS.iter().for_each(|name| drop(sent.remove(name)));
    sent
}

/// A body as it comes. One that breaks, or is not whole in time, is broken off; so is one that is on its way
/// when the server stops.
fn pieces(body: backends::Answer, deadline: Option<Instant>, stopping: Stopping) -> Body {
    let pieces = stream::unfold(Some((body, stopping)), move |state| async move {
        let (mut body, mut stopping) = state?;
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame?,
            () = over(deadline, &mut stopping) => {
                // A watch is over then; whatever else was on its way is not whole.
                let broken = Broken("context deadline exceeded".to_owned());
                return deadline.map(|_| (Err(broken), None));
            }
        };
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(piece)) => Some((Ok(piece), Some((body, stopping)))),
            Ok(Err(_trailers)) => None,
            Err(why) => Some((Err(Broken(why.to_string())), None)),
        }
    });
    Body::relayed(Box::pin(pieces))
}

/// Waits until an answer must be whole, or, where it goes on until the client leaves, until the server stops.
async fn over(deadline: Option<Instant>, stopping: &mut Stopping) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => stopping.wait().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_of_a_group_is_asked_for_at_one_path() {
        assert!(is_discovery("/apis/a.io/v1") && is_discovery("/apis/a.io/v1/"));
        assert!(!is_discovery("/apis/a.io/v1/things") && !is_discovery("/apis/a.io"));
    }
}
