//! The loop of most controllers: changes enqueue names, and each name is reconciled by itself.
//!
//! Several names are reconciled concurrently, so that their writes share the store's batches, but
//! one name never twice at a time. A name that fails is retried with exponential back-off.
//!
//! It must not know any particular kind.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, FuturesUnordered, StreamExt, select_all};
use pintle_meta::{Reason, Status};
use pintle_registry::request::ListOptions;
use pintle_registry::results::Event;
use pintle_registry::watch::Watch;
use pintle_registry::{Object, Registry, Resource};
use pintle_value::Str;

use crate::retry::{DELAY_MAX, Queue};
use crate::{Environment, target};

/// The most names that are reconciled at the same time.
const IN_PROGRESS_MAX: usize = 16;
/// The pause after a watch that could not be started.
const WATCH_DELAY: Duration = Duration::from_secs(1);
/// The delay of names from [`Reconciler::further_names`], which may come often.
const FURTHER_NAMES_DELAY: Duration = Duration::from_millis(500);

/// A controller that reconciles names.
pub(crate) trait Reconciler: Sync {
    /// Its purpose, for log lines that begin with "cannot".
    fn purpose(&self) -> &'static str;

    /// The queue's name in metrics: upstream's, where it has such a controller.
    fn queue(&self) -> &'static str;

    /// The collections to follow.
    fn sources(&self) -> Vec<Source>;

    /// The delay between a change and the reconciliation.
    fn delay(&self) -> Duration {
        Duration::ZERO
    }

    /// The longest pause before a name that failed is tried again.
    fn delay_max(&self) -> Duration {
        DELAY_MAX
    }

    /// Further names to enqueue, besides those of changed objects. Cancel safe.
    fn further_names(&self) -> BoxFuture<'_, Vec<Str>> {
        Box::pin(std::future::pending())
    }

    /// Reconciles a name with the stored state.
    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>>;
}

/// The result of a reconciliation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The name is done until something changes.
    Done,
    /// The work is incomplete, and no change will enqueue the name: it is retried.
    Waiting,
    /// Reconcile again after this time.
    After(Duration),
}

/// A collection whose changes enqueue names.
pub(crate) struct Source {
    resource: Arc<Resource>,
    selection: ListOptions,
    name: fn(&Object) -> Option<Str>,
}

impl Source {
    /// The objects of a resource; each change enqueues the name that `name` returns.
    pub(crate) fn new(resource: &Arc<Resource>, name: fn(&Object) -> Option<Str>) -> Self {
        Self { resource: resource.clone(), selection: ListOptions::default(), name }
    }

    /// Restricts the source to objects that match a field selector.
    pub(crate) fn with_fields(self, selector: impl Into<Str>) -> Self {
        let selection = ListOptions { field_selector: selector.into(), ..self.selection };
        Self { selection, ..self }
    }
}

/// Enqueues the object itself: `namespace/name`, or `name`.
pub(crate) fn itself(object: &Object) -> Option<Str> {
    Some(Str::from(&*object.item))
}

/// Enqueues the object's namespace.
pub(crate) fn its_namespace(object: &Object) -> Option<Str> {
    Some(object.namespace().into())
}

/// Runs the loop, without end.
pub(crate) async fn work(environment: &Environment, reconciler: &dyn Reconciler) {
    let sources = reconciler.sources().into_iter();
    let mut changes = select_all(sources.map(|source| names(&environment.registry, source)));
    let measures = environment.queues.with([reconciler.queue()]);
    let mut queue = Queue::<Str>::measured(measures, reconciler.delay_max());
    let mut in_progress = FuturesUnordered::new();
    loop {
        // No branch has priority, so that names are reconciled under steady changes, too.
        tokio::select! {
            Some(names) = changes.next() => {
                names.iter().for_each(|name| queue.enqueue(name, reconciler.delay()));
            }
            names = reconciler.further_names() => {
                names.iter().for_each(|name| queue.enqueue(name, FURTHER_NAMES_DELAY));
            }
            Some((name, outcome)) = in_progress.next() => {
                handle_result(reconciler, &mut queue, &name, outcome);
            }
            name = queue.next(), if in_progress.len() < IN_PROGRESS_MAX => {
                queue.begin(&name);
                in_progress.push(async move {
                    let outcome = reconciler.reconcile(&name).await;
                    (name, outcome)
                });
            }
        }
    }
}

/// Handles the result of a reconciliation.
fn handle_result(
    reconciler: &dyn Reconciler,
    queue: &mut Queue<Str>,
    name: &Str,
    outcome: Result<Progress, Status>,
) {
    match outcome {
        Ok(Progress::Done) => queue.done(name),
        Ok(Progress::Waiting) => queue.retry(name),
        Ok(Progress::After(delay)) => {
            queue.enqueue(name, delay);
            queue.done(name);
        }
        Err(status) => {
            if status.reason != Some(Reason::Conflict) {
                tracing::warn!(%name, %status, "cannot {}; will try again", reconciler.purpose());
            }
            queue.retry(name);
        }
    }
}

/// The names that the changes of a source enqueue, without end. A watch that ended is started again
/// and lists all objects.
fn names(registry: &Registry, source: Source) -> BoxStream<'_, Vec<Str>> {
    let next = move |(source, watch): (Source, Option<Watch>)| async move {
        let mut watch = match watch {
            Some(watch) => watch,
            None => start(registry, &source).await,
        };
        let events = watch.next().await;
        let mut is_over = events.is_none();
        let mut names = Vec::new();
        for event in events.into_iter().flatten() {
            match event {
                Event::Added(object) | Event::Modified(object) | Event::Deleted(object) => {
                    names.extend((source.name)(&object));
                }
                Event::Bookmark { .. } => {}
                Event::Error(_) => is_over = true,
            }
        }
        Some((names, (source, (!is_over).then_some(watch))))
    };
    stream::unfold((source, None), next).boxed()
}

/// Starts the watch of a source, as soon as that is possible. Other sources are followed meanwhile.
async fn start(registry: &Registry, source: &Source) -> Watch {
    let all = target(&source.resource, "", "", "");
    loop {
        match registry.watch(&all, &source.selection).await {
            Ok(watch) => return watch,
            Err(status) => {
                tracing::warn!(%status, "cannot watch {}; will try again", source.resource.resource.resource);
                tokio::time::sleep(WATCH_DELAY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
