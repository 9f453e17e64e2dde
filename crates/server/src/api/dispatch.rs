//! Passes an authorized request to its handler, or to the extension API server that serves its
//! path.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use pintle_meta::Status;
use pintle_registry::{Resource, Verb};
use pintle_trace::Layer;

use super::permission::Authorized;
use super::{Api, Incoming, Refusal};
use crate::aggregation::{ApiService, ProxiedRequest};
use crate::body::{self, RequestBody, Upload};
use crate::fairness::SeatRequest;
use crate::handlers::{self, Call};
use crate::health;
use crate::in_progress::InProgress;
use crate::metrics::WriteVerb;
use crate::options::request_timeout;
use crate::paths;
use crate::query::Query;
use crate::relay::headers::requests_upgrade;
use crate::request_info::RequestInfo;
use crate::respond::Response;
use crate::target::{self, Found};

/// The longest time of a write, whatever timeout the client sets (OAS-11).
const WRITE_TIMEOUT: Duration = Duration::from_secs(34);
/// A shorter wait for a seat does not count as time in the queue.
const WAITED_MIN: Duration = Duration::from_millis(1);

impl Api {
    pub(super) async fn handle(
        self: &Arc<Self>,
        authorized: Authorized,
        incoming: Incoming<'_>,
        body: &mut Upload<impl RequestBody + Send + 'static>,
        progress: &mut InProgress,
    ) -> Result<Response, Refusal> {
        let is_session = incoming.info.connects();
        let destination = destination(incoming.resource.clone(), incoming.info, incoming.head)?;
        progress.set_route(destination.as_ref(), incoming.info, incoming.head, incoming.query);
        self.take_seat(&incoming, &authorized, is_session, progress).await?;
        let Incoming { head, query, info, from, warnings, .. } = incoming;
        let Authorized { user, now, timeout } = authorized;
        let (timing, seat) = (&progress.timing, &progress.seat);
        let record = progress.record.as_ref();
        let user = &user;
        let call =
            Call { api: self, head, query, info, user, from, now, warnings, record, timing, seat };
        let dispatched = pin!(dispatch(&call, destination, body));
        let work = self.compute.run(user, dispatched);
        let mut response = within(timeout, work).await.unwrap_or_else(|DeadlineExceeded| {
            progress.timed_out();
            Err(DeadlineExceeded.status())
        })?;
        response.body_mut().compute_in(self.compute.lane(user));
        Ok(response)
    }

    /// Forwards a request to the extension API server that serves its group version.
    pub(super) async fn forward(
        self: &Arc<Self>,
        service: &ApiService,
        authorized: Authorized,
        incoming: Incoming<'_>,
        body: Upload<impl RequestBody + Send + 'static>,
        progress: &mut InProgress,
    ) -> Result<Response, Refusal> {
        let is_session = requests_upgrade(&incoming.head.headers);
        self.take_seat(&incoming, &authorized, is_session, progress).await?;
        let Authorized { user, timeout, .. } = authorized;
        let proxied = ProxiedRequest {
            head: incoming.head,
            query: incoming.query,
            user: &user,
            from: incoming.from,
            audit_id: incoming.audit_id.clone(),
            context: progress.timing.context(None),
            authentication: &self.authentication,
            deadline: timeout.map(|timeout| tokio::time::Instant::now() + timeout),
            stopping: self.lifecycle.stopping(),
        };
        let answer = within(timeout, self.aggregation.proxy(service, proxied, body)).await;
        answer.map_err(|DeadlineExceeded| {
            progress.timed_out();
            DeadlineExceeded.status().into()
        })
    }

    /// Waits for a seat of the request's priority level; a health check takes none, unless the
    /// level is exempt. Without priority and fairness, a request takes a permit of `Limits`, unless
    /// the request is long-running or a health check. A session always takes a permit.
    async fn take_seat(
        &self,
        incoming: &Incoming<'_>,
        authorized: &Authorized,
        is_session: bool,
        progress: &mut InProgress,
    ) -> Result<(), Refusal> {
        let (info, user) = (incoming.info, &authorized.user);
        if info.long_running() {
            progress.runs_long();
        }
        let fairness = self.fairness.as_ref().zip(progress.class.clone());
        if let Some((fairness, class)) = fairness.filter(|_| !is_session) {
            if health::is_check(info) && !class.is_exempt() {
                return Ok(());
            }
            let seat_request = SeatRequest {
                class: &class,
                user,
                info,
                query: incoming.query,
                resource: incoming.resource.as_deref(),
                began: incoming.began,
                timeout: authorized.timeout.unwrap_or(self.settings.request_timeout),
            };
            let asked_at = Instant::now();
            let seat =
                fairness.admit(seat_request).await.inspect_err(|_| progress.was_rejected())?;
            // A request that got its seats at once has not waited.
            if asked_at.elapsed() >= WAITED_MIN {
                progress.timing.spent(Layer::Queue, asked_at);
            }
            *progress.seat.get_mut() = Some(seat);
            if info.verb.is(Verb::Watch) {
                progress.watch = fairness.begin_watch(info);
            }
            return Ok(());
        }
        let permit = if is_session {
            self.limits.enter_session(user)
        } else if info.long_running() || health::is_check(info) {
            return Ok(());
        } else {
            self.limits.enter(info.read_only(), user)
        };
        progress.permit = Some(permit.inspect_err(|_| progress.was_rejected())?);
        Ok(())
    }

    pub(super) fn timeout(
        &self,
        info: &RequestInfo,
        query: &Query,
    ) -> Result<Option<Duration>, Status> {
        if info.long_running() {
            return Ok(None);
        }
        let wanted = request_timeout(query)?.unwrap_or(self.settings.request_timeout);
        let longest = match info.verb.on_resource() {
            Some(Verb::Create | Verb::Update | Verb::Patch | Verb::Delete) => {
                self.settings.request_timeout.min(WRITE_TIMEOUT)
            }
            _ => self.settings.request_timeout,
        };
        Ok(Some(wanted.min(longest)))
    }
}

/// The handler did not finish before the deadline.
struct DeadlineExceeded;

impl DeadlineExceeded {
    fn status(&self) -> Status {
        Status::timeout("request did not complete within the allotted timeout", 0)
    }
}

/// Runs `work` until the deadline, if there is one. Long-running requests have none: their handlers
/// return quickly, and connections have deadlines of their own.
async fn within<T>(
    timeout: Option<Duration>,
    work: impl Future<Output = T>,
) -> Result<T, DeadlineExceeded> {
    match timeout {
        None => Ok(work.await),
        Some(timeout) => tokio::time::timeout(timeout, work).await.map_err(|_| DeadlineExceeded),
    }
}

/// Looks up the resource and subresource of a request, or returns 404, 405 or another error of
/// [`target::find`]; `None` for a path that names no resource.
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

/// Receives the request's body.
async fn receive(
    call: &Call<'_>,
    body: &mut Upload<impl RequestBody + Send + 'static>,
) -> Result<Bytes, Status> {
    let began = Instant::now();
    let received = body::read(body).await;
    call.timing.spent(Layer::Receiving, began);
    received
}

/// Calls the handler of the resource, of a connection to a backend, or of a path that names no
/// resource.
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
            let body =
                if call.info.read_only() { Bytes::new() } else { receive(call, body).await? };
            if let Some(verb) = call.info.verb.on_resource().and_then(WriteVerb::of) {
                let resource = &found.target.resource;
                call.api.metrics.requests.of(resource).body(verb, body.len());
            }
            handlers::handle(call, found, body).await
        }
    }
}
