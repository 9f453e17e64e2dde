//! The API: everything that a request may need, and the way of a request through it.
//!
//! The order: its time (400), who asks (401), as whom (403), whether they may (403), whether there is room
//! (429), the handler (400, 404 and others) or the extension API server that answers for the path, headers,
//! compression, counts. Upstream looks for room first; here who may not do a thing takes no room either.
//!
//! The future of a request is moved at each step, so large futures of rare steps are boxed.

use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use pintle_auth::{Attributes, Authorizer, Decision, Ruling, User};
use pintle_meta::Status;
use pintle_registry::request::{Now, Warnings};
use pintle_registry::{Registry, Resource, Verb};

use crate::aggregation::{Aggregation, ApiService, Handed};
use crate::audit::{Audit, Received, Record};
use crate::audit_id::AuditIds;
use crate::authentication::impersonation::impersonated;
use crate::authentication::{Authentication, Peer, misplaced_token};
use crate::backends::Kubelets;
use crate::body::{self, Body, RequestBody, Upload};
use crate::compute::Compute;
use crate::config::ProxiedAddresses;
use crate::connection::Conduct;
use crate::cors::{self, Cors};
use crate::discovery::{Discovery, Documents};
use crate::encryption;
use crate::fairness::{Fairness, Rejected, Wanting};
use crate::handlers::{self, Call};
use crate::health::{self, NO_SUCH_PAGE};
use crate::in_progress::InProgress;
use crate::lifecycle::Lifecycle;
use crate::limits::Limits;
use crate::metrics::{Metrics, WriteVerb};
use crate::negotiation::Preferences;
use crate::openapi::OpenApi;
use crate::options::request_timeout;
use crate::paths;
use crate::query::Query;
use crate::relay::headers::ask_for_upgrade;
use crate::request_info::RequestInfo;
use crate::request_log::RequestLog;
use crate::respond::{self, Response, add_warnings};
use crate::target::{self, Found};
use crate::token_issuer::TokenIssuer;

/// Writes are given up after this time, however long the client would wait (OAS-11).
const WRITE_TIMEOUT: Duration = Duration::from_secs(34);
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Everything that a request may need.
pub(crate) struct Api {
    pub(crate) registry: Arc<Registry>,
    pub(crate) authentication: Authentication,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) tokens: TokenIssuer,
    pub(crate) kubelets: Kubelets,
    pub(crate) aggregation: Arc<Aggregation>,
    /// How values are encrypted where they are stored, if they are.
    pub(crate) encryption: Option<Arc<encryption::Current>>,
    pub(crate) discovery: Discovery,
    pub(crate) openapi: OpenApi,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Limits,
    /// What requests wait for; `None` where only [`Self::limits`] bound them.
    pub(crate) fairness: Option<Arc<Fairness>>,
    pub(crate) compute: Compute,
    pub(crate) lifecycle: Lifecycle,
    /// `None` where nothing is audited.
    pub(crate) audit: Option<Arc<Audit>>,
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
    /// Whether watches may begin with the state (SL-01).
    pub(crate) watch_list: bool,
    /// Whether objects that cannot be read can be deleted.
    pub(crate) unsafe_deletion: bool,
    /// Where proxies may lead.
    pub(crate) proxied_addresses: ProxiedAddresses,
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
    info: &'a Arc<RequestInfo>,
    /// The resource that the path names, if it is served.
    resource: Option<Arc<Resource>>,
    /// The address that it comes from.
    from: IpAddr,
    audit_id: &'a HeaderValue,
    began: Instant,
    /// What the client should hear, whatever becomes of its request.
    warned: &'a Warnings,
}

/// Why a request is not done.
enum Refusal {
    Status(Status),
    /// Nobody can say whether it may be.
    Undecided(String),
    /// There are no seats for it.
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

/// What a request that may be done is done with.
struct Permitted {
    user: Arc<User>,
    now: Now,
    /// What runs long bounds itself.
    timeout: Option<Duration>,
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
                let asked = Asked {
                    head: &head,
                    query: &query,
                    info: &info,
                    resource: named.and_then(|named| target::resource(&self.registry, named)),
                    from: conduct.from(),
                    audit_id: &audit_id,
                    began,
                    warned: &Warnings::default(),
                };
                self.settle(peer, conduct, asked, &mut body, began).await
            }
            // Upstream's HTTP server answers this itself, so that no handler adds anything to it.
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

    /// Answers a request that was read.
    async fn settle(
        self: &Arc<Self>,
        peer: &Peer,
        conduct: &Conduct,
        asked: Asked<'_>,
        body: &mut Upload<impl RequestBody + Send + 'static>,
        began: Instant,
    ) -> Response {
        let (info, query, warned) = (asked.info, asked.query, asked.warned);
        let uri = &asked.head.uri;
        let preferences = Preferences::new(&asked.head.headers, query);
        let form = preferences.with_cbor(self.settings.cbor).error();
        let mut progress = InProgress::new(self, query, began);
        let log = RequestLog::begin(began, asked.head, (info, query), asked.audit_id, asked.from);
        progress.log = log;
        let permitted = self.permit(peer, conduct, &asked, &mut progress, began).await;
        let refused = permitted.is_err();
        let answer = match permitted {
            Ok(permitted) => match self.aggregation.answering(&info.path) {
                Some(service) => {
                    let handed =
                        self.hand_on(&service, permitted, asked, body.take(), &mut progress);
                    Box::pin(handed).await
                }
                None => self.answer(permitted, asked, body, &mut progress).await,
            },
            Err(refusal) => Err(refusal),
        };
        let mut response = answer.unwrap_or_else(|refusal| match refusal {
            Refusal::Undecided(why) => respond::undecided(uri, &why),
            Refusal::Rejected(rejected) => respond::too_many(rejected.retry_after_seconds),
            Refusal::Status(status)
                if status.is_no_such_path() && !paths::is_routed(&self.registry, &info.path) =>
            {
                respond::text(404, NO_SUCH_PAGE)
            }
            Refusal::Status(status) => respond::status(&status, form),
        });
        progress.class.iter().for_each(|class| class.tell(response.headers_mut()));
        add_warnings(response.headers_mut(), &warned.take());
        let code = response.status();
        // But for a malformed timeout: it is found by whoever bounds requests.
        let is_refusal = code == StatusCode::FORBIDDEN
            || code == StatusCode::BAD_REQUEST && self.timeout(info, query).is_ok();
        if refused && is_refusal {
            respond::forbid_sniffing(response.headers_mut());
        }
        if let Some(record) = &progress.record {
            response = record.answered(response);
            if info.long_running() {
                record.started().await;
            } else if response.body().whole().is_some() {
                record.completed().await;
            }
        }
        progress.code = response.status().as_u16();
        progress.log.iter_mut().for_each(|log| log.answered());
        // A short answer is bytes and nothing else. A long one is made as it is sent, or large, so
        // it counts until then, as upstream's handlers do; how long is bounded. So does a session.
        if !response.body().is_long() && !response.body().is_session() {
            progress.permit = None;
            progress.seat.get_mut().take();
        }
        response.body_mut().hold(Box::new(progress));
        response
    }

    /// Whether a request may be done, as whom, when, and within which time.
    async fn permit(
        &self,
        peer: &Peer,
        conduct: &Conduct,
        asked: &Asked<'_>,
        progress: &mut InProgress,
        began: Instant,
    ) -> Result<Permitted, Refusal> {
        let (info, now) = (asked.info, now());
        let timeout = self.timeout(info, asked.query).inspect_err(|_| {
            progress.record = self.record(asked, None, now);
        })?;
        let user = self.authenticate(peer, conduct, asked, (now, began)).await;
        progress.log.iter_mut().for_each(|log| log.authenticated());
        progress.record = self.record(asked, user.as_ref().ok(), now);
        let user = user?;
        if let Some(record) = &progress.record
            && !record.received().await
        {
            return Err(Refusal::Undecided("failed to store audit event".to_owned()));
        }
        let user = self.impersonate(user, asked, progress.record.as_ref()).await?;
        let asked_at = Instant::now();
        let question =
            Attributes { user: &user, verb: info.verb.as_str(), subject: info.subject() };
        if !info.connects() {
            let fairness = self.fairness.as_ref();
            progress.class = fairness.and_then(|fairness| fairness.classify(&question));
        }
        let ruling = self.authorizer.authorize(&question).await;
        self.metrics.access.authorized(ruling.decision, asked_at.elapsed());
        progress.log.iter_mut().for_each(|log| log.authorized());
        progress.record.iter().for_each(|record| record.authorized(&ruling));
        match ruling.error {
            Some(why) if ruling.decision != Decision::Allow => return Err(Refusal::Undecided(why)),
            _ => allowed(&user, info.verb.as_str(), info, &ruling)?,
        }
        Ok(Permitted { user, now, timeout })
    }

    /// Who makes a request.
    async fn authenticate(
        &self,
        peer: &Peer,
        conduct: &Conduct,
        asked: &Asked<'_>,
        (now, began): (Now, Instant),
    ) -> Result<Arc<User>, Status> {
        let access = &self.metrics.access;
        peer.certificate_remaining_seconds(now).into_iter().for_each(|s| access.certificate(s));
        let shown = (&asked.head.headers, asked.info.path.as_str());
        let known = self.authentication.user(peer, shown, now, &self.registry).await;
        access.authenticated(known.as_deref(), began.elapsed());
        conduct.asked(known.as_deref().ok(), asked.head.version);
        known.map_err(|error| {
            tracing::debug!(%error, path = %asked.info.path, "unable to authenticate the request");
            Status::unauthorized()
        })
    }

    /// Who a request is done as that a user makes.
    async fn impersonate(
        &self,
        user: Arc<User>,
        asked: &Asked<'_>,
        record: Option<&Arc<Record>>,
    ) -> Result<Arc<User>, Status> {
        let began = Instant::now();
        let is_same = |one: &Arc<User>| Arc::ptr_eq(one, &user);
        let headers = &asked.head.headers;
        let acting = impersonated(user.clone(), headers, asked.info, &*self.authorizer).await;
        self.metrics.access.impersonated(began.elapsed());
        let (acting, way) = acting?;
        if !is_same(&acting) {
            record.iter().for_each(|record| record.impersonated(&acting, way));
        }
        Ok(acting)
    }

    /// A record of a request, if it is audited; `user` is `None` where no credential holds.
    fn record(&self, asked: &Asked<'_>, user: Option<&Arc<User>>, now: Now) -> Option<Arc<Record>> {
        let Asked { head, audit_id, from, .. } = *asked;
        let received = Received { head, audit_id, from, at_unix_micros: now.unix_micros };
        self.audit.as_ref()?.begin(&received, asked.info, user)
    }

    async fn answer(
        self: &Arc<Self>,
        permitted: Permitted,
        asked: Asked<'_>,
        body: &mut Upload<impl RequestBody + Send + 'static>,
        progress: &mut InProgress,
    ) -> Result<Response, Refusal> {
        let is_session = asked.info.connects();
        let destination = destination(asked.resource.clone(), asked.info, asked.head)?;
        progress.take_route(destination.as_ref(), asked.info, asked.head, asked.query);
        self.enter(&asked, &permitted, is_session, progress).await?;
        let Asked { head, query, info, from, warned: warnings, .. } = asked;
        let Permitted { user, now, timeout } = permitted;
        let (waited, seat) = (&progress.waited, &progress.seat);
        let record = progress.record.as_ref();
        let user = &user;
        let call =
            Call { api: self, head, query, info, user, from, now, warnings, record, waited, seat };
        let dispatched = pin!(dispatch(&call, destination, body));
        let mut response = within(timeout, self.compute.run(user, dispatched))
            .await
            .unwrap_or_else(|TooLate| {
                progress.timed_out();
                Err(TooLate.status())
            })?;
        response.body_mut().compute_in(self.compute.lane(user));
        Ok(response)
    }

    /// Lets an extension API server answer.
    async fn hand_on(
        self: &Arc<Self>,
        service: &ApiService,
        permitted: Permitted,
        asked: Asked<'_>,
        body: Upload<impl RequestBody + Send + 'static>,
        progress: &mut InProgress,
    ) -> Result<Response, Refusal> {
        let is_session = ask_for_upgrade(&asked.head.headers);
        self.enter(&asked, &permitted, is_session, progress).await?;
        let Permitted { user, timeout, .. } = permitted;
        let handed = Handed {
            head: asked.head,
            query: asked.query,
            user: &user,
            from: asked.from,
            audit_id: asked.audit_id.clone(),
            authentication: &self.authentication,
            deadline: timeout.map(|timeout| tokio::time::Instant::now() + timeout),
            stopping: self.lifecycle.stopping(),
        };
        let answer = within(timeout, self.aggregation.proxy(service, handed, body)).await;
        answer.map_err(|TooLate| {
            progress.timed_out();
            TooLate.status().into()
        })
    }

    /// Waits for the seats of a request, where it is one that needs some; takes a permit for a session,
    /// and for a request where no seats are counted.
    async fn enter(
        &self,
        asked: &Asked<'_>,
        permitted: &Permitted,
        is_session: bool,
        progress: &mut InProgress,
    ) -> Result<(), Refusal> {
        let (info, user) = (asked.info, &permitted.user);
        if info.long_running() {
            progress.runs_long();
        }
        let fairness = self.fairness.as_ref().zip(progress.class.clone());
        if let Some((fairness, class)) = fairness.filter(|_| !is_session) {
            if health::is_check(info) && !class.is_exempt() {
                return Ok(());
            }
            let wanting = Wanting {
                class: &class,
                user,
                info,
                query: asked.query,
                resource: asked.resource.as_deref(),
                began: asked.began,
                timeout: permitted.timeout.unwrap_or(self.settings.request_timeout),
            };
            let seat = fairness.admit(wanting).await.inspect_err(|_| progress.was_rejected())?;
            *progress.seat.get_mut() = Some(seat);
            if info.verb.is(Verb::Watch) {
                progress.watch = fairness.begin_watch(info);
            }
            return Ok(());
        }
        let permit = match info.long_running() || health::is_check(info) {
            _ if is_session => self.limits.enter_session(user),
            false => self.limits.enter(info.read_only(), user),
            true => return Ok(()),
        };
        progress.permit = Some(permit.inspect_err(|_| progress.was_rejected())?);
        Ok(())
    }

    /// Discovery's documents of what is served now.
    pub(crate) fn documents(&self) -> Arc<Documents> {
        let served = || self.aggregation.served();
        self.discovery.documents(&self.registry, served, self.aggregation.number())
    }

    /// Whether they are built.
    pub(crate) fn has_documents(&self) -> bool {
        self.discovery.is_current(&self.registry, self.aggregation.number())
    }

    fn timeout(&self, info: &RequestInfo, query: &Query) -> Result<Option<Duration>, Status> {
        if info.long_running() {
            return Ok(None);
        }
        let asked = request_timeout(query)?.unwrap_or(self.settings.request_timeout);
        let longest = match info.verb.on_resource() {
            Some(Verb::Create | Verb::Update | Verb::Patch | Verb::Delete) => {
                self.settings.request_timeout.min(WRITE_TIMEOUT)
            }
            _ => self.settings.request_timeout,
        };
        Ok(Some(asked.min(longest)))
    }

    /// Whether a user may do what a request is about, by its own verb or by another.
    pub(crate) async fn authorize(
        &self,
        user: &User,
        verb: Verb,
        info: &RequestInfo,
    ) -> Result<(), Status> {
        allowed(user, verb.as_str(), info, &self.rule(user, verb.as_str(), info).await)
    }

    /// What an authorizer says of it.
    pub(crate) async fn rule(&self, user: &User, verb: &str, info: &RequestInfo) -> Ruling {
        self.authorizer.authorize(&Attributes { user, verb, subject: info.subject() }).await
    }

    /// How long a watch lasts whose client does not say.
    pub(crate) fn watch_timeout(&self) -> Duration {
        self.settings.min_request_timeout.mul_f64(1.0 + self.audit_ids.fraction())
    }

    /// Adds what every answer has (OAS-09).
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

    /// The client's id for the request, if it is one, or a new one.
    fn audit_id(&self, headers: &HeaderMap) -> HeaderValue {
        const LENGTH_MAX: usize = 64;
        let given = headers.get(AUDIT_ID).filter(|id| !id.is_empty() && id.len() <= LENGTH_MAX);
        given.cloned().unwrap_or_else(|| self.audit_ids.next())
    }
}

/// A request took longer than it may.
struct TooLate;

impl TooLate {
    fn status(&self) -> Status {
        Status::timeout("request did not complete within the allotted timeout", 0)
    }
}

/// Waits so long. What comes before a watch's first byte is quick, and connections have deadlines of their own.
async fn within<T>(timeout: Option<Duration>, work: impl Future<Output = T>) -> Result<T, TooLate> {
    match timeout {
        None => Ok(work.await),
        Some(timeout) => tokio::time::timeout(timeout, work).await.map_err(|_| TooLate),
    }
}

/// 403 for what is not allowed.
fn allowed(user: &User, verb: &str, info: &RequestInfo, ruling: &Ruling) -> Result<(), Status> {
    if ruling.allowed() {
        return Ok(());
    }
    Err(Attributes { user, verb, subject: info.subject() }.forbidden(&ruling.reason))
}

/// What a request is about, or 404 or 405; nothing for a path that is no resource.
fn destination(
    resource: Option<Arc<Resource>>,
    info: &RequestInfo,
    head: &Parts,
) -> Result<Option<Found>, Status> {
    if !info.is_routable() {
        return Err(Status::no_such_path());
    }
    match &info.resource {
        None => Ok(None),
        Some(named) => {
            target::find(resource, named, info.verb.on_resource(), &head.method).map(Some)
        }
    }
}

/// The room that a destination belongs to.
async fn dispatch(
    call: &Call<'_>,
    destination: Option<Found>,
    body: &mut Upload<impl RequestBody + Send + 'static>,
) -> Result<Response, Status> {
    match destination {
        None => paths::handle(call).await,
        Some(found) => {
            if let Some(route) = found.route(call.info.verb.on_resource()) {
                call.preferences().routed(route)?;
            }
            if found.connects() {
                return Box::pin(handlers::connect::connect(call, &found, body)).await;
            }
            let body = if call.info.read_only() { Bytes::new() } else { body::read(body).await? };
            if let Some(verb) = call.info.verb.on_resource().and_then(WriteVerb::of) {
                let resource = &found.target.resource;
                call.api.metrics.requests.of(resource).body(verb, body.len());
            }
            handlers::handle(call, found, body).await
        }
    }
}

/// The time.
pub(crate) fn now() -> Now {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Now { unix_micros: i64::try_from(since.as_micros()).unwrap_or(i64::MAX) }
}
