//! The API: everything that a request may need, and the way of a request through it.
//!
//! The order: who asks (401), as whom (403), whether they may (403), whether there is room (429), the
//! handler (400, 404 and others), headers, compression, counts. Upstream looks for room first; here who may
//! not do a thing takes no room either.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use pintle_auth::{Attributes, Authorizer, User};
use pintle_controllers::garbage::Progress;
use pintle_meta::Status;
use pintle_registry::request::Now;
use pintle_registry::{Registry, Resource};

use crate::audit_id::AuditIds;
use crate::authentication::impersonation::impersonated;
use crate::authentication::{Authentication, Peer, misplaced_token};
use crate::body::{self, Body, RequestBody};
use crate::compute::Compute;
use crate::connection::Conduct;
use crate::cors::{self, Cors};
use crate::discovery::Discovery;
use crate::handlers::{self, Call};
use crate::lifecycle::Lifecycle;
use crate::limits::{Limits, Place};
use crate::metrics::{Gauge, Metrics, RequestLabels};
use crate::negotiation::Preferences;
use crate::openapi::OpenApi;
use crate::options::request_timeout;
use crate::paths;
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::respond::{self, Response, add_warnings};
use crate::target;
use crate::token_issuer::TokenIssuer;

/// Writes are given up after this time, however long the client would wait (OAS-11).
const WRITE_TIMEOUT: Duration = Duration::from_secs(34);
/// What is counted as an apply.
const APPLY: &str = "application/apply-patch+yaml";
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Everything that a request may need.
pub(crate) struct Api {
    pub(crate) registry: Arc<Registry>,
    pub(crate) authentication: Authentication,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) tokens: TokenIssuer,
    pub(crate) discovery: Discovery,
    pub(crate) openapi: OpenApi,
    pub(crate) metrics: Metrics,
    /// How far the garbage collector is.
    pub(crate) collector: Arc<Progress>,
    pub(crate) limits: Limits,
    pub(crate) compute: Compute,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) audit_ids: AuditIds,
    pub(crate) settings: Settings,
}

/// What the configuration says about requests.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How long a request may take that is no watch.
    pub(crate) request_timeout: Duration,
    /// Watches last between this and twice this, unless the client says otherwise.
    pub(crate) min_request_timeout: Duration,
    /// See [`crate::health::Health`].
    pub(crate) livez_grace_period: Duration,
    /// Whether long answers are compressed (CMP-02).
    pub(crate) compression: bool,
    /// Whether CBOR is spoken (CBOR-01).
    pub(crate) cbor: bool,
    /// Which web pages may ask.
    pub(crate) cors: Cors,
    /// Whether there is `/statusz`.
    pub(crate) statusz: bool,
    /// Whether there is `/flagz`.
    pub(crate) flagz: bool,
    /// See [`crate::Config`].
    pub(crate) flags: Vec<(String, String)>,
    /// Where clients reach the server: `host:port`.
    pub(crate) address: String,
}

/// A request, read.
struct Asked<'a> {
    head: &'a Parts,
    query: &'a Query,
    info: &'a RequestInfo,
    /// The resource that the path names, if it is served.
    resource: Option<Arc<Resource>>,
}

/// What is counted and held while a request is worked on and its answer is sent.
struct InProgress {
    api: Arc<Api>,
    labels: RequestLabels,
    code: u16,
    began: Instant,
    long_running: Option<Arc<Gauge>>,
    /// Given back when the handler has returned; for a long answer, when that has been sent.
    place: Option<Place>,
}

impl Drop for InProgress {
    fn drop(&mut self) {
        drop(self.place.take());
        if let Some(gauge) = &self.long_running {
            gauge.add(-1);
        }
        self.api.metrics.answered(&self.labels, self.code, self.began.elapsed());
    }
}

impl Api {
    /// Answers a request that came over a connection.
    pub(crate) async fn serve(
        self: Arc<Self>,
        peer: &Peer,
        conduct: &Conduct,
        request: Request<impl RequestBody + Send + 'static>,
    ) -> Response {
        let began = Instant::now();
        let (head, mut body) = request.into_parts();
        let page = self.settings.cors.origin(&head.headers);
        if page.is_some() && head.method == Method::OPTIONS {
            let mut answer = Response::new(Body::empty());
            *answer.status_mut() = StatusCode::NO_CONTENT;
            return self.finish(&head, page, answer);
        }
        let query = Query::parse(head.uri.query().unwrap_or_default());
        let preferences = Preferences::new(&head.headers, &query).with_cbor(self.settings.cbor);
        let mut response = match RequestInfo::parse(&head.method, head.uri.path(), &query) {
            Ok(info) => {
                let named = info.resource.as_ref();
                let resource = named.and_then(|named| target::resource(&self.registry, named));
                let mut progress = self.begin(&info, &head, resource.as_deref(), &query, began);
                let asked = Asked { head: &head, query: &query, info: &info, resource };
                let answer = match self.identify(peer, conduct, &asked) {
                    Ok((user, now)) => {
                        self.answer(user, now, asked, &mut body, &mut progress).await
                    }
                    Err(status) => Err(status),
                };
                let mut response =
                    answer.unwrap_or_else(|status| respond::status(&status, preferences.error()));
                progress.code = response.status().as_u16();
                // A short answer is bytes and nothing else. A long one is made as it is sent, or large, so
                // it counts until then, as upstream's handlers do; how long is bounded.
                if !response.body().is_long() {
                    progress.place = None;
                }
                response.body_mut().hold(Box::new(progress));
                response
            }
            Err(_) => {
                let status = Status::bad_request("the path is not a valid encoding");
                respond::status(&status, preferences.error())
            }
        };
        body::discard(body, &head);
        if self.settings.compression {
            response = respond::compress(response, &head.headers);
        }
        self.finish(&head, page, response)
    }

    fn begin(
        self: &Arc<Self>,
        info: &RequestInfo,
        head: &Parts,
        resource: Option<&Resource>,
        query: &Query,
        began: Instant,
    ) -> InProgress {
        let named = info.resource.as_ref().zip(resource);
        let served = named.is_some_and(|(info, resource)| target::is_served(resource, info));
        let dry_run = query.all("dryRun").any(|value| value == "All");
        let applies = head.headers.get(CONTENT_TYPE).is_some_and(|said| said == APPLY);
        let labels = RequestLabels::new(info, served, applies, dry_run);
        InProgress { api: self.clone(), labels, code: 0, began, long_running: None, place: None }
    }

    /// Who a request is done as, and when.
    fn identify(
        &self,
        peer: &Peer,
        conduct: &Conduct,
        asked: &Asked<'_>,
    ) -> Result<(Arc<User>, Now), Status> {
        let (headers, info, now) = (&asked.head.headers, asked.info, now());
        let known = self.authentication.user(peer, headers, now, &self.registry);
        conduct.asked(known.as_deref().ok(), asked.head.version);
        let user = known.map_err(|error| {
            tracing::debug!(%error, path = %info.path, "unable to authenticate the request");
            Status::unauthorized()
        })?;
        Ok((impersonated(user, headers, info, &*self.authorizer)?, now))
    }

    async fn answer(
        self: &Arc<Self>,
        user: Arc<User>,
        now: Now,
        asked: Asked<'_>,
        body: impl RequestBody,
        progress: &mut InProgress,
    ) -> Result<Response, Status> {
        let Asked { head, query, info, resource } = asked;
        let timeout = self.timeout(info, query)?;
        self.authorize(&user, info.verb, info)?;
        if info.long_running() {
            let gauge = self.metrics.long_running(&progress.labels);
            gauge.iter().for_each(|gauge| gauge.add(1));
            progress.long_running = gauge;
        } else if !info.is_health_check() {
            progress.place = Some(self.limits.enter(info.read_only(), &user)?);
        }
        let call = Call { api: self, head, query, info, user: &user, now };
        let work = self.compute.run(&user, dispatch(&call, resource, body));
        let mut response = match timeout {
            // A watch bounds itself; what comes before its first byte is quick.
            None => work.await,
            Some(timeout) => tokio::time::timeout(timeout, work).await.unwrap_or_else(|_| {
                let why = "request did not complete within the allotted timeout";
                Err(Status::timeout(why, 0))
            }),
        }?;
        response.body_mut().compute_in(self.compute.lane(&user));
        Ok(response)
    }

    fn timeout(&self, info: &RequestInfo, query: &Query) -> Result<Option<Duration>, Status> {
        if info.long_running() {
            return Ok(None);
        }
        let asked = request_timeout(query)?.unwrap_or(self.settings.request_timeout);
        let longest = match info.verb {
            "create" | "update" | "patch" | "delete" => {
                self.settings.request_timeout.min(WRITE_TIMEOUT)
            }
            _ => self.settings.request_timeout,
        };
        Ok(Some(asked.min(longest)))
    }

    /// Whether a user may do what a request is about, by its own verb or by another.
    pub(crate) fn authorize(
        &self,
        user: &User,
        verb: &str,
        info: &RequestInfo,
    ) -> Result<(), Status> {
        let attributes = Attributes { user, verb, subject: info.subject() };
        let ruling = self.authorizer.authorize(&attributes);
        if ruling.allowed() { Ok(()) } else { Err(attributes.forbidden(&ruling.reason)) }
    }

    /// How long a watch lasts whose client does not say.
    pub(crate) fn watch_timeout(&self) -> Duration {
        self.settings.min_request_timeout.mul_f64(1.0 + self.audit_ids.fraction())
    }

    /// Adds what every answer has (OAS-09).
    fn finish(&self, head: &Parts, page: Option<&HeaderValue>, mut response: Response) -> Response {
        if let Some(origin) = page {
            cors::grant(origin, response.headers_mut());
        }
        respond::forbid_caching(response.headers_mut());
        add_warnings(response.headers_mut(), misplaced_token(&head.headers).into_iter());
        let audit_id = self.audit_id(&head.headers);
        response.headers_mut().insert(AUDIT_ID, audit_id);
        if head.method == Method::HEAD {
            let length = response.body().len();
            let (mut parts, body) = response.into_parts();
            if let Some(length) = length {
                parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
            }
            drop(body);
            response = Response::from_parts(parts, Body::empty());
        }
        response
    }

    /// The client's id for the request, if it is one, or a new one.
    fn audit_id(&self, headers: &HeaderMap) -> HeaderValue {
        const LENGTH_MAX: usize = 64;
        let given = headers.get(AUDIT_ID).filter(|id| !id.is_empty() && id.len() <= LENGTH_MAX);
        given.cloned().unwrap_or_else(|| self.audit_ids.next())
    }
}

/// The room that a path belongs to.
async fn dispatch(
    call: &Call<'_>,
    resource: Option<Arc<Resource>>,
    body: impl RequestBody,
) -> Result<Response, Status> {
    if !call.info.is_routable() {
        return Err(Status::no_such_path());
    }
    match &call.info.resource {
        None => paths::handle(call).await,
        Some(info) => {
            let found = target::find(resource, info, call.info.verb, &call.head.method)?;
            let body = if call.info.read_only() { Bytes::new() } else { body::read(body).await? };
            handlers::handle(call, found, body).await
        }
    }
}

/// The time.
pub(crate) fn now() -> Now {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Now { unix_micros: i64::try_from(since.as_micros()).unwrap_or(i64::MAX) }
}
