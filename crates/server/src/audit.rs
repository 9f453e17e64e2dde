//! Audit: records who requested what, and with what result, as a policy says.
//!
//! A [`Record`] collects the facts of a request while the request is handled. At each stage it
//! makes an event, and the [`queue`] of each backend stores the event's text. Each backend writes
//! events on its own thread, so neither large objects nor a disk nor another server blocks a thread
//! that serves connections. Without a policy or a backend there are no records, and requests have
//! no audit costs.

mod backend;
mod batch;
mod headers;
mod latency;
mod log;
mod losses;
mod moment;
mod queue;
mod record;
mod rotation;
mod throttle;
mod webhook;

use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use pintle_audit::{Level, Policy};
use pintle_auth::User;
use pintle_measure::{Counter, Shards};

use crate::Error;
use crate::backends::Dialers;
use crate::config::AuditOptions;
use crate::request_info::RequestInfo;
use backend::{Backend, Outcome};
pub(crate) use headers::Received;
pub(crate) use losses::LOSSES;
use losses::{Loss, Losses};
use moment::Moment;
pub(crate) use record::Record;

/// The policy and the backends.
pub(crate) struct Audit {
    policy: Policy,
    backends: Vec<Backend>,
    measures: Arc<Measures>,
}

/// The measures of audit.
pub(crate) struct Measures {
    cells: Shards<Cells>,
    /// The number of lost events, by the cause in [`LOSSES`].
    pub(crate) errors: [Counter; LOSSES.len()],
    /// The number of requests that were refused because they could not be recorded.
    pub(crate) rejected: Counter,
}

#[derive(Default)]
struct Cells {
    events: Counter,
    levels: [Counter; Level::ALL.len()],
}

/// The outcomes of an event in the backends that requests wait for.
#[derive(Default)]
struct Outcomes(Vec<Outcome>);

impl Audit {
    /// Reads the policy and opens the backends. Returns `None` without a policy or without a
    /// backend.
    ///
    /// # Errors
    /// `Error::Flag` names the flag whose file is invalid or cannot be used.
    pub(crate) fn start(
        options: &AuditOptions,
        dialers: &Dialers,
        measures: Arc<Measures>,
    ) -> Result<Option<Arc<Self>>, Error> {
        let Some(path) = &options.policy_file else {
            if options.log.is_some() || options.webhook.is_some() {
                tracing::warn!("no request is audited, because --audit-policy-file is not set");
            }
            return Ok(None);
        };
        let policy = read_policy(path)?;
        let mut backends = Vec::new();
        if let Some(log) = &options.log {
            backends.push(log::start(log, measures.clone())?);
        }
        if let Some(webhook) = &options.webhook {
            backends.push(webhook::start(webhook, dialers, measures.clone())?);
        }
        if backends.is_empty() {
            tracing::warn!(
                "no request is audited, because neither --audit-log-path nor --audit-webhook-config-file is set"
            );
            return Ok(None);
        }
        Ok(Some(Arc::new(Self { policy, backends, measures })))
    }

    /// Returns a new record of a request, unless the policy's level for it is `None`. `user` is
    /// `None` if the request was refused before or by authentication.
    pub(crate) fn begin(
        self: &Arc<Self>,
        received: &Received<'_>,
        info: &Arc<RequestInfo>,
        user: Option<&Arc<User>>,
    ) -> Option<Arc<Record>> {
        let recording =
            self.policy.recording(user.map(|user| &**user), info.verb.as_str(), &info.subject());
        self.measures.cells.here().levels[recording.level as usize].add(1);
        (recording.level != Level::None)
            .then(|| Arc::new(Record::new(self.clone(), recording, received, info, user)))
    }

    /// Queues an event in all backends, and returns the outcomes that the request must wait for.
    fn record(&self, moment: Moment) -> Outcomes {
        let moment = self.counted(moment);
        if !self.blocks() {
            self.backends.iter().for_each(|backend| backend.enqueue(&moment));
            return Outcomes::default();
        }
        Outcomes(self.backends.iter().map(|backend| backend.record(&moment)).collect())
    }

    /// Queues an event in all backends. The request waits for none of them.
    fn enqueue(&self, moment: Moment) {
        let moment = self.counted(moment);
        self.backends.iter().for_each(|backend| backend.enqueue(&moment));
    }

    fn counted(&self, moment: Moment) -> Arc<Moment> {
        self.measures.cells.here().events.add(1);
        Arc::new(moment)
    }

    /// Whether requests wait for a backend.
    fn blocks(&self) -> bool {
        self.backends.iter().any(Backend::blocks)
    }

    /// Closes the backends, and returns when they have written all queued events or their deadline
    /// has passed.
    pub(crate) async fn close(&self) {
        join_all(self.backends.iter().map(Backend::close)).await;
    }
}

impl Outcomes {
    /// Waits until the event is recorded. Returns false if a strict backend lost it.
    async fn finished(self) -> bool {
        join_all(self.0.into_iter().map(Outcome::wait)).await.into_iter().all(|is| is)
    }
}

fn read_policy(path: &Path) -> Result<Policy, Error> {
    let refuse = |why: &dyn std::fmt::Display| Error::Flag {
        flag: "audit-policy-file",
        reason: format!("loading audit policy file: {why}: from file {}", path.display()),
    };
    let bytes = std::fs::read(path).map_err(|why| refuse(&why))?;
    let (policy, unknown) = Policy::read(&bytes).map_err(|why| refuse(&why))?;
    if !unknown.is_empty() {
        let (path, unknown) = (path.display(), unknown.join(", "));
        tracing::warn!("--audit-policy-file: {path}: unknown fields are ignored: {unknown}");
    }
    Ok(policy)
}

impl Default for Measures {
    fn default() -> Self {
        Self {
            cells: Shards::new(Cells::default),
            errors: Default::default(),
            rejected: Counter::default(),
        }
    }
}

impl Measures {
    /// The number of events.
    pub(crate) fn events(&self) -> u64 {
        self.cells.all().map(|cells| cells.events.get()).sum()
    }

    /// The number of requests at each level.
    pub(crate) fn levels(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |level| self.cells.all().map(|cells| cells.levels[level as usize].get()).sum();
        Level::ALL.into_iter().map(move |level| (level.name(), count(level)))
    }

    fn lost(&self, to: Loss, count: usize) {
        self.errors[to as usize].add(count as u64);
    }
}
