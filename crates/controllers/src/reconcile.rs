//! How most controllers work: changes bring names up, and each name is settled by itself.
//!
//! Several names are settled at the same time, so that their writes share the store's batches; one name
//! never twice at once. What cannot be settled is tried again with growing pauses.
//!
//! Must not know: any particular kind.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, select_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use pintle_meta::{Reason, Status};
use pintle_registry::answer::Event;
use pintle_registry::request::ListOptions;
use pintle_registry::watch::Watch;
use pintle_registry::{Object, Resource};
use pintle_value::Str;

use crate::retry::{DELAY_MAX, Queue};
use crate::{Environment, target};

/// How many names are settled at the same time.
const UNDER_WAY_MAX: usize = 16;
/// How long to wait before a watch that could not be had is asked for again.
const WATCH_DELAY: Duration = Duration::from_secs(1);
/// How long a name is left alone that something else than a collection brought up: that may happen often.
const FURTHER_NAMES_DELAY: Duration = Duration::from_millis(500);

/// A controller that settles one name at a time.
pub(crate) trait Reconciler: Sync {
    /// For the log: what cannot be done.
    fn purpose(&self) -> &'static str;

    /// The queue's name in metrics: upstream's, where it has such a controller.
    fn queue(&self) -> &'static str;

    /// What to follow.
    fn sources(&self) -> Vec<Source>;

    /// How long a name is left alone after a change.
    fn delay(&self) -> Duration {
        Duration::ZERO
    }

    /// How long a name is left alone at most that could not be settled.
    fn delay_max(&self) -> Duration {
        DELAY_MAX
    }

    /// Names that something else than a collection brings up. Cancel safe.
    fn further_names(&self) -> BoxFuture<'_, Vec<Str>> {
        Box::pin(std::future::pending())
    }

    /// Makes things as they should be for a name, from what is stored now.
    fn settle<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>>;
}

/// What a look at a name came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There is nothing more to do until something changes.
    Done,
    /// Something remains, and no change will tell of its end.
    Waiting,
    /// There will be something to do then.
    After(Duration),
}

/// A collection whose changes bring names up.
pub(crate) struct Source {
    resource: Arc<Resource>,
    selection: ListOptions,
    name: fn(&Object) -> Option<Str>,
}

impl Source {
    /// The objects of a resource; each change brings up what `name` says.
    pub(crate) fn new(resource: &Arc<Resource>, name: fn(&Object) -> Option<Str>) -> Self {
        Self { resource: resource.clone(), selection: ListOptions::default(), name }
    }

    /// Only those with such fields.
    pub(crate) fn with_fields(self, selector: impl Into<Str>) -> Self {
        let selection = ListOptions { field_selector: selector.into(), ..self.selection };
        Self { selection, ..self }
    }
}

/// An object brings up itself: `namespace/name`, or `name`.
pub(crate) fn itself(object: &Object) -> Option<Str> {
    Some(Str::from(&*object.item))
}

/// An object brings up the namespace that it is in.
pub(crate) fn its_namespace(object: &Object) -> Option<Str> {
    Some(object.namespace().into())
}

/// Settles what comes up, without end.
pub(crate) async fn work(environment: &Environment, reconciler: &dyn Reconciler) {
    let sources = reconciler.sources();
    let mut watches: Vec<Option<Watch>> = sources.iter().map(|_| None).collect();
    let measures = environment.queues.with([reconciler.queue()]);
    let mut queue = Queue::<Str>::measured(measures, reconciler.delay_max());
    let mut under_way = FuturesUnordered::new();
    loop {
        // None of these comes first: under steady changes the names that they bring up are settled, too.
        tokio::select! {
            names = follow(environment, &sources, &mut watches) => {
                names.iter().for_each(|name| queue.enqueue(name, reconciler.delay()));
            }
            names = reconciler.further_names() => {
                names.iter().for_each(|name| queue.enqueue(name, FURTHER_NAMES_DELAY));
            }
            Some((name, outcome)) = under_way.next() => {
                handle_result(reconciler, &mut queue, &name, outcome);
            }
            name = queue.next(), if under_way.len() < UNDER_WAY_MAX => {
                queue.begin(&name);
                under_way.push(async move {
                    let outcome = reconciler.settle(&name).await;
                    (name, outcome)
                });
            }
        }
    }
}

/// Takes in what became of a name.
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
                tracing::warn!(%name, %status, "cannot {}", reconciler.purpose());
            }
            queue.retry(name);
        }
    }
}

/// The names that the next changes bring up. A watch that ends begins anew and tells all there is.
/// Cancel safe.
async fn follow(
    environment: &Environment,
    sources: &[Source],
    watches: &mut [Option<Watch>],
) -> Vec<Str> {
    for (source, watch) in sources.iter().zip(watches.iter_mut()) {
        while watch.is_none() {
            let all = target(&source.resource, "", "", "");
            match environment.registry.watch(&all, &source.selection).await {
                Ok(begun) => *watch = Some(begun),
                Err(status) => {
                    tracing::warn!(%status, "cannot watch {}", source.resource.resource.resource);
                    tokio::time::sleep(WATCH_DELAY).await;
                }
            }
        }
    }
    let next = watches.iter_mut().flatten().map(|watch| Box::pin(watch.next()));
    let (events, index, _) = select_all(next).await;
    let mut names = Vec::new();
    let mut is_over = events.is_none();
    for event in events.into_iter().flatten() {
        match event {
            Event::Added(object) | Event::Modified(object) | Event::Deleted(object) => {
                names.extend((sources[index].name)(&object));
            }
            Event::Bookmark { .. } => {}
            Event::Error(_) => is_over = true,
        }
    }
    if is_over {
        watches[index] = None;
    }
    names
}
