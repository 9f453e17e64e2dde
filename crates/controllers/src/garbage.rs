//! The garbage collector: deletes objects whose owners are absent, in the background or in the
//! foreground, or removes their owner references (KCM-01).
//!
//! It follows every collection, maintains a graph of owners and dependents, and evaluates an object
//! when its owners or its deletion changed, or one of its owners did. `observation` maintains the graph and `evaluator`
//! decides what to do; this module does it.
//!
//! It must not know any particular kind.
//!
//! It uses the queue of `reconcile`, but a loop of its own: the graph must include every change up
//! to an evaluation (first invariant). A feed can be read up to now; the watches of the common loop
//! can only be awaited.
//!
//! Invariants:
//! - After an object is taken from the queue and before it is evaluated, the collector observes
//!   every change of every collection up to that moment. So when it evaluates a deleted owner, it
//!   knows every dependent that was created before the deletion.
//! - An object with new owners is in the graph, and the feeds of all collections have begun, before
//!   its owners are looked up. If they exist, it is not enqueued: what happens to them later is
//!   observed later, and enqueues it then.
//! - The collector follows objects of extension API servers, too, by watches that may lag. Before
//!   it deletes an object because such an owner is absent, it has asked the owner's server.
//! - The cost of a change depends on the object that changed, not on the number of its owner's
//!   dependents.

mod evaluator;
mod extensions;
mod graph;
mod kinds;
mod observation;
mod owners;
mod perform;
mod progress;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use pintle_meta::{Reason, Status};
use pintle_registry::{Feed, Head, Resource, Unreadable};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::retry::Queue;
use crate::{Environment, target, until};
use evaluator::{Evaluator, Operation};
use extensions::{Extensions, OwnerResource};
use graph::{AbsentOwners, Graph, ObjectKey, Waiting};
use kinds::Kinds;
use owners::OwnerStates;
pub(crate) use owners::may_be_terminating;
use perform::{ServedBy, perform};
pub use progress::Progress;

const USER: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
/// The shortest time between two observations while objects only change: waking this thread for
/// each of a writer's commits would cost more than observing them.
const OBSERVATION_INTERVAL: Duration = Duration::from_millis(10);
/// The most concurrent writes. They share the store's batches.
const IN_PROGRESS_MAX: usize = 64;
/// The most concurrent writes to extension API servers, so that unresponsive servers do not delay
/// the others.
const REQUESTS_MAX: usize = 16;
/// The pause before an owner is evaluated again whose dependents at extension API servers may not
/// all be known.
const BEHIND_DELAY: Duration = Duration::from_secs(1);
/// How long the collector assumes that an owner exists that its extension API server has confirmed
/// and that no watch has reported.
const UNOBSERVED_DELAY: Duration = Duration::from_secs(60);

/// Collects until shutdown.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    until(shutdown, async {
        loop {
            let FellBehind = Collector::new(&environment).work().await;
            tracing::debug!(
                "the garbage collector reads all objects again: it fell behind the changes"
            );
        }
    })
    .await;
}

struct Collector<'e> {
    environment: &'e Environment,
    heads: watch::Receiver<Head>,
    /// The number of the set of served resources that is known, and the set.
    number: Option<u64>,
    resources: Arc<[Arc<Resource>]>,
    /// Built from the set on the first evaluation: there may be thousands of definitions, and few
    /// have objects that own others.
    kinds: OnceCell<Kinds>,
    feeds: HashMap<Arc<str>, Feed>,
    /// Every change up to here has been observed.
    observed: Head,
    graph: Graph,
    absent_owners: AbsentOwners,
    /// Owners that are being deleted and whose dependents must be handled first.
    waiting: Waiting,
    /// Objects that have an owner of a kind that is not served.
    unresolved: BTreeSet<ObjectKey>,
    /// Objects that have an owner that its extension API server confirmed but has not reported in a
    /// watch.
    unobserved: BTreeSet<ObjectKey>,
    queue: Queue<ObjectKey>,
    extensions: Extensions,
    /// The responses of servers about the owners of queued objects.
    owner_states: HashMap<ObjectKey, OwnerStates>,
    /// How many requests to extension API servers are under way.
    requests: usize,
    /// Objects that need such a request while [`REQUESTS_MAX`] are under way.
    deferred: BTreeSet<ObjectKey>,
}

/// Waits for a new head, and until the interval since the last observation has passed.
async fn next_head(
    heads: &mut watch::Receiver<Head>,
    observed: Instant,
) -> Result<(), watch::error::RecvError> {
    heads.changed().await?;
    sleep_until(observed + OBSERVATION_INTERVAL).await;
    Ok(())
}

/// A feed's position is older than the oldest change in the log: deletions may have been missed.
struct FellBehind;

/// The result of an operation on an object.
struct Done {
    key: ObjectKey,
    is_extension_request: bool,
    outcome: Result<Option<OwnerStates>, Status>,
}

impl<'e> Collector<'e> {
    fn new(environment: &'e Environment) -> Self {
        Self {
            environment,
            heads: environment.registry.heads(),
            number: None,
            resources: Arc::default(),
            kinds: OnceCell::new(),
            feeds: HashMap::new(),
            observed: environment.registry.head(),
            graph: Graph::default(),
            absent_owners: AbsentOwners::default(),
            waiting: Waiting::default(),
            unresolved: BTreeSet::new(),
            unobserved: BTreeSet::new(),
            queue: Queue::default(),
            extensions: Extensions::new(environment),
            owner_states: HashMap::new(),
            requests: 0,
            deferred: BTreeSet::new(),
        }
    }

    /// Works until a feed has fallen behind. It alternates between observing changes and evaluating
    /// objects, so that steady writes starve neither.
    async fn work(mut self) -> FellBehind {
        let mut in_progress = JoinSet::new();
        loop {
            let ready = self.ready(IN_PROGRESS_MAX.saturating_sub(in_progress.len()));
            let observed = Instant::now();
            if let Err(fell_behind) = self.observe_changes().await {
                return fell_behind;
            }
            for (key, waited) in ready {
                match self.evaluate(&key, waited).await {
                    Ok(Some(operation)) => self.begin(&mut in_progress, operation),
                    Ok(None) => self.queue.done(&key),
                    Err(why) => {
                        tracing::error!(object = %key.item, collection = %key.collection, "the garbage collector cannot read an object and will try again: {why}");
                        self.queue.retry(&key);
                    }
                }
            }
            while let Some(done) = in_progress.try_join_next() {
                self.handle_result(done);
            }
            self.environment
                .collector
                .report(self.observed.revision, self.queue.len() + in_progress.len());
            let has_room = in_progress.len() < IN_PROGRESS_MAX;
            if has_room && self.queue.due().is_some() {
                tokio::task::yield_now().await; // to other controllers
                continue;
            }
            tokio::select! {
                changed = next_head(&mut self.heads, observed) => {
                    if changed.is_err() {
                        return std::future::pending().await; // the server stops
                    }
                }
                Some(done) = in_progress.join_next() => self.handle_result(done),
                event = self.extensions.next() => self.observe_extensions(event).await,
                _ = self.queue.next(), if has_room => {}
            }
        }
    }

    /// Takes at most `count_max` due objects from the queue, each with whether it is an owner that
    /// waits and whose dependents are all known.
    fn ready(&mut self, count_max: usize) -> Vec<(ObjectKey, bool)> {
        let mut ready = Vec::new();
        while ready.len() < count_max
            && let Some(key) = self.queue.due().cloned()
        {
            self.queue.begin(&key);
            let mut waits = self.waiting.has(&key);
            if waits && self.extensions.is_behind() {
                self.queue.enqueue(&key, BEHIND_DELAY);
                waits = false;
            }
            ready.push((key, waits));
        }
        ready
    }

    fn kinds(&self) -> &Kinds {
        self.kinds.get_or_init(|| Kinds::of(&self.resources))
    }

    /// Enqueues an object; if it is being evaluated, it is evaluated once more.
    fn enqueue(&mut self, key: &ObjectKey) {
        self.queue.enqueue(key, Duration::ZERO);
    }

    /// Decides what to do about an object.
    async fn evaluate(
        &mut self,
        key: &ObjectKey,
        waited: bool,
    ) -> Result<Option<Operation>, Unreadable> {
        self.unobserved.remove(key);
        // The states are used once: they may be outdated at the next evaluation.
        let owner_states = self.owner_states.remove(key).unwrap_or_default();
        let decision = self.begin_evaluation(&owner_states).evaluate(key, waited).await?;
        if decision.unresolved {
            self.unresolved.insert(key.clone());
        }
        if decision.unobserved {
            self.unobserved.insert(key.clone());
            self.queue.enqueue(key, UNOBSERVED_DELAY);
        }
        Ok(decision.operation)
    }

    /// Counts an evaluation, and returns what it depends on.
    fn begin_evaluation<'a>(&'a self, owner_states: &'a OwnerStates) -> Evaluator<'a> {
        self.environment.collector.evaluations.fetch_add(1, Ordering::Relaxed);
        let registry = &*self.environment.registry;
        let (kinds, graph, absent_owners) = (self.kinds(), &self.graph, &self.absent_owners);
        let (waiting, extensions) = (&self.waiting, &self.extensions);
        Evaluator { registry, kinds, graph, absent_owners, waiting, extensions, owner_states }
    }

    /// Begins an operation, or defers it if too many requests to extension API servers are under
    /// way.
    fn begin(&mut self, in_progress: &mut JoinSet<Done>, operation: Operation) {
        let key = operation.key().clone();
        let is_extension =
            |q: &extensions::Question| matches!(q.resource, OwnerResource::Extension(_));
        let is_extension_request = match &operation {
            Operation::Ask(_, questions) => questions.iter().any(is_extension),
            Operation::Delete(..) | Operation::Patch(..) => {
                self.extensions.resource_of(&key).is_some()
            }
        };
        if is_extension_request && self.requests >= REQUESTS_MAX {
            self.queue.done(&key);
            self.deferred.insert(key);
            return;
        }
        self.requests += usize::from(is_extension_request);
        let served_by = self.served_by(&key);
        let environment = self.environment.clone();
        in_progress.spawn(async move {
            // A panic must not leave the object begun forever: it is tried again.
            let performed = AssertUnwindSafe(perform(&environment, served_by, &operation));
            let panicked = |_| Err(Status::internal("the garbage collector panicked"));
            let outcome = performed.catch_unwind().await.unwrap_or_else(panicked);
            Done { key, is_extension_request, outcome }
        });
    }

    fn served_by(&self, key: &ObjectKey) -> Option<ServedBy> {
        if let Some(resource) = self.extensions.resource_of(key) {
            return Some(ServedBy::Extension(resource.clone()));
        }
        let (namespace, name) = key.split();
        let resource = self.kinds().of_collection(&key.collection)?;
        Some(ServedBy::Registry(target(resource, namespace, name, "")))
    }

    /// Handles the result of an operation. The feeds report the operation's own write as any other
    /// change.
    fn handle_result(&mut self, done: Result<Done, JoinError>) {
        let Ok(Done { key, is_extension_request, outcome }) = done else { return }; // aborted
        if is_extension_request {
            self.requests = self.requests.saturating_sub(1);
            if let Some(next) = self.deferred.pop_first() {
                self.enqueue(&next);
            }
        }
        match outcome {
            Ok(owner_states) => {
                self.queue.done(&key);
                if let Some(owner_states) = owner_states {
                    self.enqueue(&key);
                    self.owner_states.insert(key, owner_states);
                }
            }
            Err(status) => {
                if !matches!(status.reason, Some(Reason::Conflict)) {
                    tracing::warn!(object = %key.item, collection = %key.collection, %status, "the garbage collector cannot change an object and will try again");
                }
                self.queue.retry(&key);
            }
        }
    }
}
