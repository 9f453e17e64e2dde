//! The API: the state that requests share, and the steps of a request.
//!
//! The steps, in order: timeout (400), authentication (401), impersonation (403), authorization
//! (403), the lookup of the resource (404, 405) unless an extension API server serves the path,
//! priority and fairness or the in-flight limits (429), then the handler (400, 404 and others) or
//! the extension API server; finally compression, headers and metrics. Upstream takes a seat before
//! it authorizes; here a request that is refused takes no seat.
//!
//! The future of a request is moved at each step, so large futures of rare steps are boxed.

mod dispatch;
mod permission;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use pintle_auth::Authorizer;
use pintle_meta::Status;
use pintle_registry::request::Warnings;
use pintle_registry::{Registry, Resource};

use crate::EffectiveVersion;
use crate::aggregation::Aggregation;
use crate::audit::Audit;
use crate::audit_id::AuditIds;
use crate::authentication::{Authentication, Peer, misplaced_token};
use crate::backends::Kubelets;
use crate::body::{self, Body, RequestBody, Upload};
use crate::compute::Compute;
use crate::config::ProxiedAddresses;
use crate::connection::ConnectionState;
use crate::cors::{self, Cors};
use crate::discovery::{Discovery, Documents};
use crate::encryption;
use crate::fairness::{Fairness, Rejected};
use crate::health::NO_SUCH_PAGE;
use crate::in_progress::InProgress;
use crate::lifecycle::Lifecycle;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::negotiation::Preferences;
use crate::openapi::OpenApi;
use crate::paths;
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::request_log::RequestLog;
use crate::respond::{self, Response, Runs, add_warnings};
use crate::snapshots::Snapshots;
use crate::target;
use crate::token_issuer::TokenIssuer;
use crate::traces::Traces;

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// The state that all requests share.
pub(crate) struct Api {
    pub(crate) registry: Arc<Registry>,
    pub(crate) authentication: Authentication,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) tokens: TokenIssuer,
    pub(crate) kubelets: Kubelets,
    pub(crate) aggregation: Arc<Aggregation>,
    /// The providers that encrypt stored values; `None` without encryption at rest.
    pub(crate) encryption: Option<Arc<encryption::Current>>,
    pub(crate) discovery: Discovery,
    pub(crate) openapi: OpenApi,
    /// Compressed parts of lists.
    pub(crate) runs: Arc<Runs>,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Limits,
    /// Priority and fairness; `None` where only [`Self::limits`] bounds the requests in flight.
    pub(crate) fairness: Option<Arc<Fairness>>,
    pub(crate) compute: Compute,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) lifecycle: Lifecycle,
    /// `None` without an audit policy or without a backend.
    pub(crate) audit: Option<Arc<Audit>>,
    pub(crate) audit_ids: AuditIds,
    /// `None` where no traces are exported.
    pub(crate) traces: Option<Traces>,
    pub(crate) settings: Settings,
}

/// The part of the configuration that concerns requests.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The longest time that a request may take, unless it is long-running.
    pub(crate) request_timeout: Duration,
    /// The timeout of a watch is random between this and twice this, unless the client sets one.
    pub(crate) min_request_timeout: Duration,
    /// A request that takes longer is logged. If zero, no request is logged.
    pub(crate) slow_request_threshold: Duration,
    /// See [`crate::health::Health`].
    pub(crate) livez_grace_period: Duration,
    /// True where long responses are compressed (CMP-02).
    pub(crate) compression: bool,
    /// True where CBOR is served (CBOR-01).
    pub(crate) cbor: bool,
    /// True where watches may send initial events (SL-01).
    pub(crate) watch_list: bool,
    /// True where impersonation has its constrained modes.
    pub(crate) constrained_impersonation: bool,
    /// True where stored objects that cannot be decoded can be deleted.
    pub(crate) unsafe_deletion: bool,
    /// The addresses that proxied requests may go to.
    pub(crate) proxied_addresses: ProxiedAddresses,
    /// The origins whose web pages may use the API.
    pub(crate) cors: Cors,
    /// True where the console is served.
    pub(crate) console: bool,
    /// True where `/statusz` is served.
    pub(crate) statusz: bool,
    /// True where `/flagz` is served.
    pub(crate) flagz: bool,
    /// See [`crate::Config`].
    pub(crate) flags: Vec<(String, String)>,
    /// The release that the server acts as.
    pub(crate) version: EffectiveVersion,
    /// The address at which clients reach the server: `host:port`.
    pub(crate) address: String,
}

/// A request whose head has been parsed.
struct Incoming<'a> {
    head: &'a Parts,
    query: &'a Query,
    info: &'a Arc<RequestInfo>,
    /// The resource that the path names, if it is served.
    resource: Option<Arc<Resource>>,
    /// The client's address.
    from: IpAddr,
    audit_id: &'a HeaderValue,
    began: Instant,
    /// The warnings for the client; sent with errors, too.
    warnings: &'a Warnings,
}

/// Why a request gets an error instead of a handler's response.
enum Refusal {
    Status(Status),
    /// The authorizers returned an error, or a blocking audit backend could not store the event: 500.
    Undecided(String),
    /// Priority and fairness rejected the request: 429.
    Rejected(Rejected),
}

impl From<Rejected> for Refusal {
    fn from(rejected: Rejected) -> Self {
        Self::Rejected(rejected)
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl Api {
    /// Serves one request of a connection.
    pub(crate) async fn serve(
        self: Arc<Self>,
        peer: &Peer,
        connection: &ConnectionState,
        request: Request<impl RequestBody + Send + 'static>,
    ) -> Response {
        let began = Instant::now();
        let (head, body) = request.into_parts();
        let mut body = Upload::new(body);
        let page = self.settings.cors.origin(&head.headers);
        let audit_id = self.audit_id(&head.headers);
        if page.is_some() && head.method == Method::OPTIONS {
            let mut answer = Response::new(Body::empty());
            *answer.status_mut() = StatusCode::NO_CONTENT;
            return self.finish(&head, page, audit_id, answer);
        }
        let query = Query::parse(head.uri.query().unwrap_or_default());
        let mut response = match RequestInfo::parse(&head.method, head.uri.path(), &query) {
            Ok(info) => {
                let info = Arc::new(info);
                let named = info.resource.as_ref();
                let incoming = Incoming {
                    head: &head,
                    query: &query,
                    info: &info,
                    resource: named.and_then(|named| target::resource(&self.registry, named)),
                    from: connection.from(),
                    audit_id: &audit_id,
                    began,
                    warnings: &Warnings::default(),
                };
                self.answer(peer, connection, incoming, &mut body).await
            }
            // Go's HTTP server sends this error itself, so it has none of the headers of
            // [`Self::finish`].
            Err(_) => {
                body::discard(body, &head);
                return respond::page(400, "400 Bad Request");
            }
        };
        body::discard(body, &head);
        if self.settings.compression {
            response = respond::compress(response, &head.headers);
        }
        self.finish(&head, page, audit_id, response)
    }

    /// Runs the steps of a parsed request and writes its response, errors included.
    async fn answer(
        self: &Arc<Self>,
        peer: &Peer,
        connection: &ConnectionState,
        incoming: Incoming<'_>,
        body: &mut Upload<impl RequestBody + Send + 'static>,
    ) -> Response {
        let (info, query, began) = (incoming.info, incoming.query, incoming.began);
        let warnings = incoming.warnings;
        let head = incoming.head;
        let mut progress = InProgress::new(self, query, began);
        let slow = self.settings.slow_request_threshold;
        progress.log =
            RequestLog::begin(head, (info, query), incoming.audit_id, incoming.from, slow);
        let authorized = self.authorize_incoming(peer, connection, &incoming, &mut progress).await;
        let refused = authorized.is_err();
        let answer = match authorized {
            Ok(authorized) => match self.aggregation.answering(&info.path) {
                Some(service) => {
                    let body = body.take();
                    let forwarded =
                        self.forward(&service, authorized, incoming, body, &mut progress);
                    Box::pin(forwarded).await
                }
                None => self.handle(authorized, incoming, body, &mut progress).await,
            },
            Err(refusal) => Err(refusal),
        };
        let mut response =
            answer.unwrap_or_else(|refusal| self.refusal(&refusal, head, query, info));
        progress.class.iter().for_each(|class| class.write_headers(response.headers_mut()));
        add_warnings(response.headers_mut(), &warnings.take());
        let code = response.status();
        // Upstream's filters of authentication and authorization set the header; the filter that
        // reads the timeout does not.
        let is_refusal = code == StatusCode::FORBIDDEN
            || code == StatusCode::BAD_REQUEST && self.timeout(info, query).is_ok();
        if refused && is_refusal {
            respond::forbid_sniffing(response.headers_mut());
        }
        progress.answered = Some(Instant::now());
        if let Some(record) = &progress.record {
            response = record.answered(response);
            if info.long_running() {
                record.started().await;
            } else if response.body().whole().is_some() {
                record.completed().await;
            }
        }
        progress.code = response.status().as_u16();
        // The bytes of a short response exist by now, so the request gives back its permit and
        // seats. A long response is encoded while it is sent, so its request keeps them until the
        // response has been sent, as in upstream's handlers; the time of sending is bounded. A
        // session keeps its permit until it ends.
        if !response.body().is_long() && !response.body().is_session() {
            progress.permit = None;
            progress.seat.get_mut().take();
        }
        response.body_mut().hold(Box::new(progress));
        response
    }

    /// The response of a refused request.
    fn refusal(
        &self,
        refusal: &Refusal,
        head: &Parts,
        query: &Query,
        info: &RequestInfo,
    ) -> Response {
        match refusal {
            Refusal::Undecided(why) => respond::undecided(&head.uri, why),
            Refusal::Rejected(rejected) => respond::too_many(rejected.retry_after_seconds),
            Refusal::Status(status)
                if status.is_no_such_path() && !paths::is_routed(&self.registry, &info.path) =>
            {
                respond::text(404, NO_SUCH_PAGE)
            }
            Refusal::Status(status) => {
                let preferences = Preferences::new(&head.headers, query);
                respond::status(status, preferences.with_cbor(self.settings.cbor).error())
            }
        }
    }

    /// The discovery documents of the resources that are served now.
    pub(crate) fn documents(&self) -> Arc<Documents> {
        let served = || self.aggregation.served();
        self.discovery.documents(&self.registry, served, self.aggregation.number())
    }

    /// Whether [`Self::documents`] need not build them.
    pub(crate) fn has_documents(&self) -> bool {
        self.discovery.is_current(&self.registry, self.aggregation.number())
    }

    /// The OpenID configuration, if the issuer is a URL.
    pub(crate) fn open_id_configuration(&self) -> Option<String> {
        self.tokens
            .configuration(self.authentication.tokens.accounts.keys(), &self.settings.address)
    }

    /// The timeout of a watch whose client sets none.
    pub(crate) fn watch_timeout(&self) -> Duration {
        self.settings.min_request_timeout.mul_f64(1.0 + self.audit_ids.fraction())
    }

    /// Adds the headers that every response of the API has (OAS-09), and drops the body of a
    /// response to HEAD.
    fn finish(
        &self,
        head: &Parts,
        page: Option<&HeaderValue>,
        audit_id: HeaderValue,
        mut response: Response,
    ) -> Response {
        if let Some(origin) = page {
            cors::grant(origin, response.headers_mut());
        }
        respond::forbid_caching(response.headers_mut());
        add_warnings(response.headers_mut(), misplaced_token(&head.headers).as_slice());
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

    /// The audit ID that the client sent, if it is valid, or a new one.
    fn audit_id(&self, headers: &HeaderMap) -> HeaderValue {
        const LENGTH_MAX: usize = 64;
        let given = headers.get(AUDIT_ID).filter(|id| !id.is_empty() && id.len() <= LENGTH_MAX);
        given.cloned().unwrap_or_else(|| self.audit_ids.next())
    }
}
