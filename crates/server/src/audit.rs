//! Audit: what is asked of the server, by whom and with what outcome, is recorded as a policy says.
//!
//! A [`Record`] collects what becomes known of a request while it is worked on; at each stage it makes an
//! event. Backends take events from a [`queue`](backend), on a thread of their own: neither JSON nor a disk
//! nor another server holds up a thread that serves connections. Without a policy or a backend there are
//! no records, and requests cost nothing more.

mod backend;
mod headers;
mod log;
mod record;
mod rotation;
mod webhook;

use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use pintle_audit::{Event, Level, Policy};
use pintle_auth::User;
use pintle_measure::{Counter, Shards};

use crate::Error;
use crate::backends::Ways;
use crate::config::AuditOptions;
use crate::request_info::RequestInfo;
use backend::Backend;
pub(crate) use headers::Received;
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

/// What may lose events, by upstream's names.
pub(crate) const LOSSES: [&str; 4] = ["buffered", "log", "truncate", "webhook"];

/// An index of [`LOSSES`].
#[derive(Clone, Copy)]
enum Loss {
    Buffered,
    Log,
    Truncate,
    Webhook,
}

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
        info: &RequestInfo,
        user: Option<&Arc<User>>,
    ) -> Option<Arc<Record>> {
        let recording =
            self.policy.recording(user.map(|user| &**user), info.verb.as_str(), &info.subject());
        self.measures.cells.here().levels[recording.level as usize].add(1);
        (recording.level != Level::None)
            .then(|| Arc::new(Record::new(self.clone(), recording, received, info, user)))
    }

    /// Gives an event to all backends, and waits for those that requests wait for. `false` where one of
    /// them could not take it and must.
    async fn process(&self, event: Event) -> bool {
        let event = self.counted(event);
        let waits = self.backends.iter().map(|backend| backend.process(&event));
        join_all(waits).await.into_iter().all(|is_recorded| is_recorded)
    }

    /// Gives an event to all backends, and waits for none.
    fn hand_over(&self, event: Event) {
        let event = self.counted(event);
        self.backends.iter().for_each(|backend| backend.hand_over(&event));
    }

    fn counted(&self, event: Event) -> Arc<Event> {
        self.measures.cells.here().events.add(1);
        Arc::new(event)
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
