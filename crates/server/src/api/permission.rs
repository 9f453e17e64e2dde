//! Authenticates, impersonates and authorizes a request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pintle_auth::token::Authenticated;
use pintle_auth::{Attributes, Decision, Ruling, Subject, User};
use pintle_meta::Status;
use pintle_registry::Verb;
use pintle_registry::request::Now;
use pintle_trace::{Layer, Timing};

use super::{Api, Incoming, Refusal};
use crate::audit::{Received, Record};
use crate::authentication::Peer;
use crate::authentication::impersonation::{Impersonation, impersonated};
use crate::connection::ConnectionState;
use crate::console;
use crate::in_progress::InProgress;
use crate::machine::now;
use crate::request_info::RequestInfo;
use crate::traces;

/// The outcome of authorization: a request that the handler may serve.
pub(super) struct Authorized {
    pub(super) user: Arc<User>,
    pub(super) now: Now,
    /// `None` for long-running requests, which end by other deadlines.
    pub(super) timeout: Option<Duration>,
}

impl Api {
    /// Runs the steps from the timeout to authorization, or refuses the request.
    pub(super) async fn authorize_incoming(
        &self,
        peer: &Peer,
        connection: &ConnectionState,
        incoming: &Incoming<'_>,
        progress: &mut InProgress,
    ) -> Result<Authorized, Refusal> {
        let (info, now) = (incoming.info, now());
        let timeout = self.timeout(info, incoming.query).inspect_err(|_| {
            progress.record = self.record(incoming, None, now, &progress.timing);
        })?;
        let timing = progress.timing.clone();
        let known = self.authenticate(peer, connection, incoming, now, &timing).await;
        let user = known.as_ref().ok().map(|known| &known.user);
        progress.record = self.record(incoming, user, now, &timing);
        let known = known?;
        traces::begin(
            self.traces.as_ref(),
            &timing,
            &traces::Asked {
                head: incoming.head,
                info,
                user: &known.user,
                audit_id: incoming.audit_id,
                from: incoming.from,
                began: incoming.began,
            },
        );
        if let Some(record) = &progress.record {
            record.presented(&known);
            if !record.received().await {
                return Err(Refusal::Undecided("failed to store audit event".to_owned()));
            }
        }
        if self.settings.console && !self.settings.cors.allows(&incoming.head.headers) {
            console::check_origin(incoming.head)?;
        }
        let user = self.impersonate(known.user, incoming, progress).await?;
        let asked_at = Instant::now();
        let subject = self.console_subject(info).unwrap_or_else(|| info.subject());
        let question = Attributes { user: &user, verb: info.verb.as_str(), subject };
        if !info.connects() {
            let fairness = self.fairness.as_ref();
            progress.class = fairness.and_then(|fairness| fairness.classify(&question));
        }
        let ruling = self.authorizer.authorize(&question).await;
        let took = timing.spent(Layer::Authorization, asked_at);
        self.metrics.access.authorized(ruling.decision, took);
        progress.record.iter().for_each(|record| record.authorized(&ruling));
        match ruling.error {
            Some(why) if ruling.decision != Decision::Allow => return Err(Refusal::Undecided(why)),
            _ => allowed(&user, info.verb.as_str(), info, &ruling)?,
        }
        Ok(Authorized { user, now, timeout })
    }

    /// Returns the user whom the request's credentials prove, or 401.
    async fn authenticate(
        &self,
        peer: &Peer,
        connection: &ConnectionState,
        incoming: &Incoming<'_>,
        now: Now,
        timing: &Timing,
    ) -> Result<Authenticated, Status> {
        let access = &self.metrics.access;
        peer.certificate_remaining_seconds(now).into_iter().for_each(|s| access.certificate(s));
        let shown = (&incoming.head.headers, incoming.info.path.as_str());
        let known = self.authentication.user(peer, shown, now, &self.registry).await;
        let user = known.as_ref().map(|known| &*known.user);
        access.authenticated(user, timing.spent(Layer::Authentication, incoming.began));
        // A browser requests the many small files of the console before anybody can log in, so such
        // a request does not close the connection. The shorter idle timeout still applies.
        if self.console_subject(incoming.info).is_none() {
            connection.record_user(user.ok(), incoming.head.version);
        }
        known.map_err(|error| {
            tracing::debug!(%error, path = %incoming.info.path, "unable to authenticate the request");
            Status::unauthorized()
        })
    }

    /// The subject of authorization of a file of the console, if the console is served.
    fn console_subject(&self, info: &RequestInfo) -> Option<Subject<'static>> {
        self.settings.console.then(|| console::subject(info)).flatten()
    }

    /// Returns the user as whom the request acts: the one that impersonation headers name, or
    /// `user` without such headers.
    async fn impersonate(
        &self,
        user: Arc<User>,
        incoming: &Incoming<'_>,
        progress: &InProgress,
    ) -> Result<Arc<User>, Status> {
        let began = Instant::now();
        let is_same = |one: &Arc<User>| Arc::ptr_eq(one, &user);
        let headers = &incoming.head.headers;
        let impersonation = Impersonation {
            authorizer: &*self.authorizer,
            is_constrained: self.settings.constrained_impersonation,
            measures: &self.metrics.impersonation,
        };
        let acting = impersonated(user.clone(), headers, incoming.info, &impersonation).await;
        let took = began.elapsed();
        self.metrics.access.impersonated(took);
        let (acting, mode) = acting?;
        if !is_same(&acting) {
            progress.timing.spent(Layer::Impersonation, began);
            progress.record.iter().for_each(|record| record.impersonated(&acting, mode));
        }
        Ok(acting)
    }

    /// Begins the audit record, if the policy wants one. `user` is `None` where the timeout is
    /// invalid or authentication failed.
    fn record(
        &self,
        incoming: &Incoming<'_>,
        user: Option<&Arc<User>>,
        now: Now,
        timing: &Arc<Timing>,
    ) -> Option<Arc<Record>> {
        let Incoming { head, audit_id, from, .. } = *incoming;
        let at_unix_micros = now.unix_micros;
        let received = Received { head, audit_id, from, at_unix_micros, timing };
        self.audit.as_ref()?.begin(&received, incoming.info, user)
    }

    /// Authorizes a request under `verb`, which may differ from its own verb, or returns 403.
    pub(crate) async fn authorize(
        &self,
        user: &User,
        verb: Verb,
        info: &RequestInfo,
    ) -> Result<(), Status> {
        allowed(user, verb.as_str(), info, &self.rule(user, verb.as_str(), info).await)
    }

    /// Returns the authorizers' ruling on a request under `verb`.
    pub(crate) async fn rule(&self, user: &User, verb: &str, info: &RequestInfo) -> Ruling {
        self.authorizer.authorize(&Attributes { user, verb, subject: info.subject() }).await
    }
}

/// Returns 403 unless the ruling allows the request.
fn allowed(user: &User, verb: &str, info: &RequestInfo, ruling: &Ruling) -> Result<(), Status> {
    if ruling.allowed() {
        return Ok(());
    }
    Err(Attributes { user, verb, subject: info.subject() }.forbidden(&ruling.reason))
}
