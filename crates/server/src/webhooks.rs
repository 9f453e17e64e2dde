//! Calls webhooks over HTTPS, at a URL or a service, with the CA of the webhook's configuration.
//! Connections are reused.

pub(crate) mod measures;
mod remote;
mod response;
pub(crate) mod retry;
mod user;
mod users;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use pintle_registry::webhook::{CallError, Caller, Conversion, Endpoint, ResponseFuture};
use pintle_registry::work;
use pintle_trace::SpanContext;
use pintle_value::Str;

use measures::{Calls, Conversions};
pub(crate) use remote::Remote;
use response::Outcome;
use user::User;
pub(crate) use users::{Users, WithUsers};

use crate::backends::{self, Backend, Connections, Dialers, Failure, Services};
use crate::traces::context_headers;

/// The largest response in bytes: a page of converted objects.
const ANSWER_BYTES_MAX: usize = 128 << 20;
/// The number of redirects at which a call fails, as in Go.
const REDIRECTIONS_MAX: usize = 10;

/// The client of webhooks.
pub(crate) struct Webhooks {
    services: Arc<Services>,
    /// The proxies of outgoing connections.
    pub(crate) dialers: Dialers,
    anonymous: User,
    connections: Arc<Connections>,
    pub(crate) calls: Calls,
    pub(crate) conversions: Conversions,
}

/// The origin of a call: the user whose credentials it has, and its trace.
struct Sender<'a> {
    user: &'a User,
    /// The context of the call's trace.
    context: Option<SpanContext>,
}

impl Caller for Webhooks {
    fn call<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
        timeout: Duration,
        context: Option<SpanContext>,
    ) -> ResponseFuture<'a> {
        let sender = Sender { user: &self.anonymous, context };
        self.call_as(sender, endpoint, body, timeout)
    }

    fn uid(&self) -> Str {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("an operating system without randomness runs no TLS");
        pintle_meta::uid::format(bytes).into()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn converted(&self, conversion: &Conversion<'_>, began: Instant) {
        self.conversions.ended(conversion, began.elapsed());
    }
}

impl Webhooks {
    /// `services` resolves the webhooks that name a service.
    pub(crate) fn new(services: Arc<Services>, dialers: Dialers) -> Self {
        Self {
            services,
            dialers,
            anonymous: User::anonymous(),
            connections: Arc::default(),
            calls: Calls::default(),
            conversions: Conversions::default(),
        }
    }

    /// [`Caller::call`] with the credentials of a user.
    fn call_as<'a>(
        &'a self,
        sender: Sender<'a>,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
        timeout: Duration,
    ) -> ResponseFuture<'a> {
        Box::pin(async move {
            let answer = tokio::time::timeout(timeout, self.post(&sender, endpoint, body)).await;
            let answer = answer.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
            answer.unwrap_or_else(|why| {
                Err(CallError::no_response(format!("Post {:?}: {why}", endpoint.url)))
            })
        })
    }

    /// Calls as upstream's client does: follows redirects on the same server, and retries after
    /// `Retry-After`. The outer error means that there is no response; the inner one is the
    /// response's error.
    async fn post(
        &self,
        sender: &Sender<'_>,
        endpoint: &Endpoint,
        body: Vec<u8>,
    ) -> Result<Result<Vec<u8>, CallError>, String> {
        let mut uri: Uri = endpoint.url.parse().map_err(|_| "the URL is malformed".to_owned())?;
        let body = Bytes::from(body);
        let (mut redirections, mut answers) = (0, 0);
        while redirections < REDIRECTIONS_MAX {
            match self.exchange((sender, endpoint), &uri, &body, answers > 0).await? {
                Outcome::Review(review) => return Ok(Ok(review)),
                Outcome::RetryAfter(pause, _) if answers + 1 < retry::ANSWERS_MAX => {
                    tokio::time::sleep(pause).await;
                    answers += 1;
                }
                Outcome::Refusal(refusal) | Outcome::RetryAfter(_, refusal) => {
                    return Ok(Err(refusal));
                }
                Outcome::Elsewhere(path) => {
                    let mut parts = uri.into_parts();
                    parts.path_and_query = Some(path);
                    uri = Uri::from_parts(parts).map_err(|why| why.to_string())?;
                    redirections += 1;
                }
            }
        }
        Err(format!("stopped after {REDIRECTIONS_MAX} redirects"))
    }

    /// Sends a request and reads the response. As in Go, a request that was sent is not repeated if
    /// the connection breaks: the webhook may have acted on it.
    async fn exchange(
        &self,
        (sender, endpoint): (&Sender<'_>, &Endpoint),
        uri: &Uri,
        body: &Bytes,
        is_retry: bool,
    ) -> Result<Outcome, String> {
        let backend = self.backend((sender.user, endpoint), uri)?;
        let answer = self.send(&backend, sender, uri, body).await?;
        if is_retry {
            self.calls.retried(host(uri), answer.as_ref().ok().map(code));
        }
        let (head, body) = answer.map_err(|why| why.to_string())?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|why| why.to_string())?.to_bytes();
        self.calls.received(host(uri), body.len());
        work::ahead(body.len()).await;
        response::read(&head, &body, uri)
    }

    async fn send(
        &self,
        backend: &Backend,
        sender: &Sender<'_>,
        uri: &Uri,
        body: &Bytes,
    ) -> Result<Result<backends::Response, Failure>, String> {
        let began = Instant::now();
        let answer = self.connections.ask(backend, request(sender, uri, body)?).await;
        let counts = &self.dialers.deprecated.webhooks;
        counts.add(backends::deprecations(&answer), uri.host().unwrap_or_default());
        let code = answer.as_ref().ok().map(code);
        self.calls.sent(host(uri), code, body.len(), began.elapsed());
        Ok(answer)
    }

    fn backend(&self, (user, endpoint): (&User, &Endpoint), uri: &Uri) -> Result<Backend, String> {
        if uri.scheme_str() != Some("https") {
            return Err("the URL must begin with https://".to_owned());
        }
        let host = uri.host().ok_or("the URL names no host")?;
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let (authority, dialer) = match &endpoint.service {
            None => {
                (format!("{host}:{}", uri.port_u16().unwrap_or(443)), &self.dialers.control_plane)
            }
            Some((namespace, name, port)) => {
                (self.services.authority(namespace, name, *port)?, &self.dialers.cluster)
            }
        };
        let tls = Some(user.tls(Some(&endpoint.ca_bundle))?);
        Ok(Backend { authority, name: Some(name), tls, addresses: None, dialer: dialer.clone() })
    }
}

fn code(answer: &backends::Response) -> u16 {
    answer.status().as_u16()
}

/// The host and the port of a URL.
fn host(uri: &Uri) -> &str {
    uri.authority().map_or("", |authority| authority.as_str())
}

fn request(sender: &Sender<'_>, uri: &Uri, body: &Bytes) -> Result<Request<Full<Bytes>>, String> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::post(path)
        .header(HOST, host(uri))
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, */*")
        .header(USER_AGENT, "kube-apiserver-admission");
    if let Some(authorization) = sender.user.authorization()? {
        request = request.header(AUTHORIZATION, authorization);
    }
    let mut request = request.body(Full::new(body.clone())).map_err(|why| why.to_string())?;
    context_headers::write(sender.context.as_ref(), request.headers_mut());
    Ok(request)
}
