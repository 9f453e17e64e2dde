//! Leader election: of several servers on one database, one runs the controllers (upstream:
//! client-go's `leaderelection` with a Lease).
//!
//! Invariants:
//! - A server that leads stops its controllers at most `RENEWAL_DEADLINE` and `RETRY` after its
//!   last renewal, which is before its lease ends.
//! - A server takes a lease that another server holds only when it has seen no renewal for the
//!   lease's duration by its own clock. Clocks of different servers are never compared.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_meta::{Reason, Status, time};
use pintle_registry::Resource;
use pintle_registry::request::{WriteOptions, granted};
use pintle_value::{Str, Value};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::{Environment, SERVER, body, target, until};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "pintle-controllers";
/// How long a lease is valid after a renewal.
const DURATION: Duration = Duration::from_secs(15);
/// How long the leader continues without a renewal.
const RENEWAL_DEADLINE: Duration = Duration::from_secs(10);
/// The interval of renewals, and of attempts to acquire the lease.
const RETRY: Duration = Duration::from_secs(2);

/// Whether this server is the leader.
#[derive(Clone, Debug)]
pub struct Leadership(watch::Receiver<bool>);

impl Leadership {
    /// Returns the leadership of a server that has no competitors, because its store is its own.
    pub fn alone() -> Self {
        Self(watch::Sender::new(true).subscribe())
    }

    /// Returns the leadership of a server that never leads, because it runs no controllers.
    pub fn none() -> Self {
        Self(watch::Sender::new(false).subscribe())
    }

    /// Whether this server leads now.
    pub fn is_held(&self) -> bool {
        *self.0.borrow()
    }

    /// Runs `work` whenever this server leads, until shutdown. `work` must end when the future that
    /// it gets ends: the server is stopping or no longer leads.
    pub async fn run<W, F>(mut self, stopping: impl Future<Output = ()>, mut work: W)
    where
        W: FnMut(Ended) -> F,
        F: Future<Output = ()>,
    {
        until(stopping, async {
            loop {
                if self.0.wait_for(|leads| *leads).await.is_err() && !self.is_held() {
                    return; // the candidate ended without leading
                }
                work(Box::pin(lost(self.0.clone()))).await;
                lost(self.0.clone()).await; // work that ended by itself is not started again
            }
        })
        .await;
    }
}

/// Ends when a server no longer leads.
pub type Ended = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

async fn lost(mut leads: watch::Receiver<bool>) {
    if leads.wait_for(|leads| !*leads).await.is_err() {
        std::future::pending().await // no other server will lead
    }
}

/// A server's candidacy in the election.
pub struct Candidate {
    environment: Environment,
    leases: Arc<Resource>,
    /// The server's name as holder, different at each start.
    holder: Str,
    leads: watch::Sender<bool>,
    /// The lease's spec as last seen, and when it was first seen so.
    observed: Option<(Value, Instant)>,
}

impl Candidate {
    /// Makes a candidate; `None` if leases are not served.
    pub fn new(environment: Environment, holder: Str) -> Option<Self> {
        let leases = environment.resource("coordination.k8s.io", "v1", "leases")?;
        let leads = watch::Sender::new(false);
        Some(Self { environment, leases, holder, leads, observed: None })
    }

    /// Returns the candidate's leadership, which follows the election.
    pub fn leadership(&self) -> Leadership {
        Leadership(self.leads.subscribe())
    }

    /// Takes part in the election until shutdown, then releases the lease, so that another server
    /// need not wait.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let leads = self.leads.clone();
        until(shutdown, campaign(&mut self, |one| Box::pin(one.acquire()), &leads)).await;
        let led = leads.send_replace(false);
        if led && let Err(status) = self.release().await {
            tracing::debug!(%status, "cannot release the lease of the controllers");
        }
    }

    /// Renews the lease, or acquires it if no other server holds it; returns whether this server
    /// holds it.
    async fn acquire(&mut self) -> Result<bool, Status> {
        let lease = match self.read().await {
            Ok(lease) => lease,
            Err(status) if status.reason == Some(Reason::NotFound) => {
                let lease = self.lease(self.spec(&Value::Null));
                return self.written(self.create(&lease).await);
            }
            Err(status) => return Err(status),
        };
        let spec = lease.get("spec").cloned().unwrap_or_default();
        if self.observed.as_ref().is_none_or(|(seen, _)| *seen != spec) {
            self.observed = Some((spec.clone(), Instant::now()));
        }
        let holder = spec.str_at(&["holderIdentity"]).unwrap_or_default();
        let since = self.observed.as_ref().map(|(_, since)| since.elapsed());
        let is_valid = since.is_some_and(|since| since < duration(&spec));
        if !holder.is_empty() && holder != self.holder.as_str() && is_valid {
            return Ok(false);
        }
        let mut lease = lease;
        lease.make_object().insert("spec", self.spec(&spec));
        self.written(self.update(&lease).await)
    }

    /// Returns whether a write of the lease succeeded. A conflict with another server is no
    /// failure.
    fn written(&mut self, answer: Result<(), Status>) -> Result<bool, Status> {
        match answer {
            Ok(()) => Ok(true),
            Err(status)
                if matches!(
                    status.reason,
                    Some(Reason::Conflict | Reason::AlreadyExists | Reason::NotFound)
                ) =>
            {
                Ok(false)
            }
            Err(status) => Err(status),
        }
    }

    /// Returns the lease's spec with this server as the holder, following the spec `before`.
    fn spec(&self, before: &Value) -> Value {
        let now = Value::from(time::format_micro((self.environment.clock)().unix_micros));
        let is_own = before.str_at(&["holderIdentity"]) == Some(self.holder.as_str());
        let acquired = before.get("acquireTime").filter(|_| is_own).cloned();
        let transitions = before.get("leaseTransitions").and_then(Value::as_int).unwrap_or(0);
        let transitions = match before.get("holderIdentity") {
            Some(_) if !is_own => transitions.saturating_add(1),
            _ => transitions,
        };
        Value::from([
            ("holderIdentity", Value::from(self.holder.clone())),
            ("leaseDurationSeconds", Value::from(seconds(DURATION))),
            ("acquireTime", acquired.unwrap_or_else(|| now.clone())),
            ("renewTime", now),
            ("leaseTransitions", Value::from(transitions)),
        ])
    }

    async fn release(&self) -> Result<(), Status> {
        let mut lease = self.read().await?;
        if lease.str_at(&["spec", "holderIdentity"]) != Some(self.holder.as_str()) {
            return Ok(());
        }
        let spec = lease.object_entry("spec");
        spec.insert("holderIdentity", "");
        spec.insert("leaseDurationSeconds", 1);
        self.update(&lease).await
    }

    async fn read(&self) -> Result<Value, Status> {
        let one = target(&self.leases, NAMESPACE, NAME, "");
        // Reads the newest state, even if another server wrote it.
        self.environment.registry.get(&one, "").await?;
        let stored = self.environment.registry.peek(&self.leases, NAMESPACE, NAME);
        let gone = || Status::not_found(&self.leases.group_resource(), NAME);
        let stored = stored.ok_or_else(gone)?;
        self.leases.tree(&stored)
    }

    async fn create(&self, lease: &Value) -> Result<(), Status> {
        let all = target(&self.leases, NAMESPACE, "", "");
        let (options, context) = (WriteOptions::default(), self.environment.context(SERVER));
        let registry = &self.environment.registry;
        registry.create(&all, &body(lease), &options, &context).await.map(|_| ())
    }

    async fn update(&self, lease: &Value) -> Result<(), Status> {
        let one = target(&self.leases, NAMESPACE, NAME, "");
        let (options, context) = (WriteOptions::default(), self.environment.context(SERVER));
        let registry = &self.environment.registry;
        registry.update(&one, &body(lease), &options, &context, &granted).await.map(|_| ())
    }

    fn lease(&self, spec: Value) -> Value {
        Value::from([
            ("apiVersion", Value::from("coordination.k8s.io/v1")),
            ("kind", self.leases.kind.clone().into()),
            ("metadata", Value::from([("name", NAME), ("namespace", NAMESPACE)])),
            ("spec", spec),
        ])
    }
}

/// Acquires and renews the lease of a candidate at intervals, and sets whether it leads.
async fn campaign<C>(
    candidate: &mut C,
    acquire: impl for<'a> Fn(&'a mut C) -> BoxFuture<'a, Result<bool, Status>>,
    leads: &watch::Sender<bool>,
) {
    let mut renewed = Instant::now();
    loop {
        let now = Instant::now();
        let timeout = RENEWAL_DEADLINE.saturating_sub(renewed.elapsed());
        let timeout = if *leads.borrow() { timeout } else { RENEWAL_DEADLINE };
        match tokio::time::timeout(timeout, acquire(candidate)).await {
            Ok(Ok(true)) => {
                renewed = now;
                set_leads(leads, true);
            }
            Ok(Ok(false)) => set_leads(leads, false),
            Ok(Err(status)) => {
                tracing::debug!(%status, "cannot renew the lease of the controllers");
            }
            Err(_) => tracing::debug!("renewing the lease of the controllers timed out"),
        }
        if renewed.elapsed() >= RENEWAL_DEADLINE {
            set_leads(leads, false);
        }
        // A renewal that took long is old, so the next one follows at once.
        tokio::time::sleep_until(now + RETRY).await;
    }
}

fn set_leads(leads: &watch::Sender<bool>, value: bool) {
    let change = |now: &mut bool| std::mem::replace(now, value) != value;
    if leads.send_if_modified(change) {
        let what = if value { "this server leads and runs" } else { "this server no longer runs" };
        tracing::info!("{what} the controllers");
    }
}

/// Returns how long a lease is valid after a renewal.
fn duration(spec: &Value) -> Duration {
    let seconds = spec.get("leaseDurationSeconds").and_then(Value::as_int);
    seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(DURATION, Duration::from_secs)
}

const fn seconds(duration: Duration) -> i64 {
    duration.as_secs() as i64
}
