//! Audit: what is asked of the server, by whom and with what outcome, is recorded as a policy says.
//!
//! A [`Record`] collects what becomes known of a request while it is worked on; at each stage it makes an
//! event, of which the [`queue`] of each backend keeps the text. Backends take these on a thread of their own:
//! neither the objects of large requests nor a disk nor another server holds up a thread that serves
//! connections. Without a policy or a backend there are no records, and requests cost nothing more.

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
use crate::backends::Ways;
use crate::config::AuditOptions;
use crate::request_info::RequestInfo;
use backend::{Backend, Outcome};
pub(crate) use headers::Received;
pub(crate) use losses::LOSSES;
use losses::{Loss, Losses};
use moment::Moment;
pub(crate) use record::Record;

/// The policy, and where events go.
pub(crate) struct Audit {
    policy: Policy,
    backends: Vec<Backend>,
    measures: Arc<Measures>,
}

/// What is counted of audit.
pub(crate) struct Measures {
    cells: Shards<Cells>,
    /// Events that were lost, by what lost them.
    pub(crate) errors: [Counter; LOSSES.len()],
    /// Requests that were refused because they could not be recorded.
    pub(crate) rejected: Counter,
}

#[derive(Default)]
struct Cells {
    events: Counter,
    levels: [Counter; Level::ALL.len()],
}

/// What becomes of an event in each backend that requests wait for.
#[derive(Default)]
struct Outcomes(Vec<Outcome>);

impl Audit {
    /// Reads the policy and opens the backends; `None` where nothing is to be recorded.
    ///
    /// # Errors
    /// What is wrong with a file.
    pub(crate) fn start(
        options: &AuditOptions,
        ways: &Ways,
        measures: Arc<Measures>,
    ) -> Result<Option<Arc<Self>>, Error> {
        let Some(path) = &options.policy_file else {
            if options.log.is_some() || options.webhook.is_some() {
                tracing::warn!("nothing is audited, for there is no --audit-policy-file");
            }
            return Ok(None);
        };
        let policy = read_policy(path)?;
        let mut backends = Vec::new();
        if let Some(log) = &options.log {
            backends.push(log::start(log, measures.clone())?);
        }
        if let Some(webhook) = &options.webhook {
            let way = ways.control_plane.clone();
            backends.push(webhook::start(webhook, way, measures.clone())?);
        }
        if backends.is_empty() {
            tracing::warn!(
                "nothing is audited, for there is neither --audit-log-path nor --audit-webhook-config-file"
            );
            return Ok(None);
        }
        Ok(Some(Arc::new(Self { policy, backends, measures })))
    }

    /// A record of a request, if the policy wants one. `user` is `None` where no credential holds.
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

    /// Gives an event to all backends, and says what the request has to wait for.
    fn record(&self, moment: Moment) -> Outcomes {
        let moment = self.counted(moment);
        if !self.blocks() {
            self.backends.iter().for_each(|backend| backend.hand_over(&moment));
            return Outcomes::default();
        }
        Outcomes(self.backends.iter().map(|backend| backend.record(&moment)).collect())
    }

    /// Gives an event to all backends, and waits for none.
    fn hand_over(&self, moment: Moment) {
        let moment = self.counted(moment);
        self.backends.iter().for_each(|backend| backend.hand_over(&moment));
    }

    fn counted(&self, moment: Moment) -> Arc<Moment> {
        self.measures.cells.here().events.add(1);
        Arc::new(moment)
    }

    /// Whether requests wait for some backend.
    fn blocks(&self) -> bool {
        self.backends.iter().any(Backend::blocks)
    }

    /// Ends the backends when they have given on all events.
    pub(crate) async fn close(&self) {
        join_all(self.backends.iter().map(Backend::close)).await;
    }
}

impl Outcomes {
    /// Waits until the event is recorded. `false` where a backend could not take it, and must.
    async fn finished(self) -> bool {
        join_all(self.0.into_iter().map(Outcome::settled)).await.into_iter().all(|is| is)
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
        tracing::warn!("--audit-policy-file: {path}: what is unknown has no effect: {unknown}");
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
    /// How many events there were.
    pub(crate) fn events(&self) -> u64 {
        self.cells.all().map(|cells| cells.events.get()).sum()
    }

    /// How many requests there were at each level.
    pub(crate) fn levels(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |level| self.cells.all().map(|cells| cells.levels[level as usize].get()).sum();
        Level::ALL.into_iter().map(move |level| (level.name(), count(level)))
    }

    fn lost(&self, to: Loss, count: usize) {
        self.errors[to as usize].add(count as u64);
    }
}
