//! Expiry: deletes objects some time after their last write: events, after an hour (EVT-07) or
//! `--event-ttl`.
//!
//! Deadlines follow from a watch. The time of the last write is not stored, so the age of an object
//! in the watch's first list is taken from the newest time stamp in it. A change restarts an
//! object's lifetime.
//!
//! It has a loop of its own instead of that of `reconcile`: a change postpones a deadline, which
//! that loop's queue never does, and a deadline does not follow from the stored object alone.

mod schedule;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use pintle_meta::time;
use pintle_registry::request::{DeleteOptions, ListOptions};
use pintle_registry::results::Event;
use pintle_registry::watch::Watch;
use pintle_registry::{Object, Resource, Unreadable};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::{Environment, SERVER, split, target, until};
use schedule::Schedule;

/// The most objects that a sweep deletes. Between two sweeps the events of the watch are read.
const SWEEP_COUNT_MAX: usize = 500;
/// The pause after a sweep that deleted all expired objects.
const SWEEP_PAUSE: Duration = Duration::from_millis(100);
/// The most concurrent deletions. They share the store's batches.
const IN_PROGRESS_MAX: usize = 64;
/// The pause before a watch is started again.
const WATCH_DELAY: Duration = Duration::from_secs(1);

/// Deletes expired objects until shutdown; `lifetime` overrides the lifetime of each kind.
pub async fn run(
    environment: Environment,
    lifetime: Option<Duration>,
    shutdown: impl Future<Output = ()>,
) {
    until(shutdown, work(&environment, lifetime)).await;
}

async fn work(environment: &Environment, lifetime: Option<Duration>) {
    let mut tasks = JoinSet::new();
    let mut collections = BTreeSet::new();
    let (_, all) = environment.registry.resources();
    for resource in all.iter() {
        let Some(ttl_seconds) = resource.strategy.ttl_seconds() else { continue };
        let Some(storage) = &resource.storage else { continue };
        if collections.insert(storage.collection.clone()) {
            let (environment, resource) = (environment.clone(), resource.clone());
            let ttl = lifetime.unwrap_or(Duration::from_secs(ttl_seconds));
            let ttl_micros = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX);
            tasks.spawn(async move { expire(&environment, &resource, ttl_micros).await });
        }
    }
    // The tasks end only when they are dropped.
    while tasks.join_next().await.is_some() {}
    std::future::pending().await
}

async fn expire(environment: &Environment, resource: &Arc<Resource>, ttl_micros: i64) {
    let all = target(resource, "", "", "");
    let mut schedule = Schedule::default();
    loop {
        match environment.registry.watch(&all, &ListOptions::default()).await {
            Ok(watch) => follow(environment, resource, ttl_micros, watch, &mut schedule).await,
            Err(status) => {
                tracing::warn!(%status, "cannot watch objects that expire; will try again")
            }
        }
        tokio::time::sleep(WATCH_DELAY).await;
    }
}

/// Updates the schedule from the watch and deletes expired objects, until the watch ends.
async fn follow(
    environment: &Environment,
    resource: &Arc<Resource>,
    ttl_micros: i64,
    mut watch: Watch,
    schedule: &mut Schedule,
) {
    let now = || (environment.clock)().unix_micros;
    let mut sweep_after = Instant::now();
    loop {
        let wait = schedule.first().map(|deadline| micros(deadline.saturating_sub(now())));
        let due = async {
            match wait {
                Some(wait) => {
                    tokio::time::sleep_until(sweep_after.max(Instant::now() + wait)).await
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            events = watch.next() => {
                let Some(events) = events else { return };
                for event in events {
                    match event {
                        Event::Added(object) => {
                            // An unreadable object gets the lifetime of a new one.
                            let newest = newest_time(&object).unwrap_or_else(|_| now());
                            let deadline = newest.min(now()).saturating_add(ttl_micros);
                            schedule.set(&object.item, object.revision.0, deadline);
                        }
                        Event::Modified(object) => {
                            let deadline = now().saturating_add(ttl_micros);
                            schedule.set(&object.item, object.revision.0, deadline);
                        }
                        Event::Deleted(object) => schedule.remove(&object.item),
                        Event::Bookmark { .. } => {}
                        Event::Error(status) => {
                            tracing::debug!(%status, "the watch of objects that expire is started again");
                            return;
                        }
                    }
                }
            }
            () = due => {
                let deleted = sweep(environment, resource, schedule).await;
                let is_done = deleted < SWEEP_COUNT_MAX;
                sweep_after = Instant::now() + if is_done { SWEEP_PAUSE } else { Duration::ZERO };
            }
        }
    }
}

/// Deletes some expired objects, and returns how many it took from the schedule. The revision is a
/// precondition, so an object that was written since stays; the watch reports that write, which sets
/// a new deadline.
async fn sweep(
    environment: &Environment,
    resource: &Arc<Resource>,
    schedule: &mut Schedule,
) -> usize {
    let now = (environment.clock)().unix_micros;
    let expired = schedule.take_due(now, SWEEP_COUNT_MAX);
    let count = expired.len();
    let deletions = expired.into_iter().map(|(item, revision)| async move {
        let (namespace, name) = split(&item);
        let options = DeleteOptions {
            resource_version: Some(revision.to_string().into()),
            ..DeleteOptions::default()
        };
        let one = target(resource, namespace, name, "");
        let context = environment.context(SERVER);
        if let Err(status) = environment.registry.delete(&one, &options, &context).await
            && !matches!(status.code, 404 | 409)
        {
            tracing::warn!(%item, %status, "cannot delete an expired object");
        }
    });
    stream::iter(deletions).buffer_unordered(IN_PROGRESS_MAX).collect::<()>().await;
    count
}

/// Returns the newest time stamp in an object: its creation, or when an event was last seen.
fn newest_time(object: &Object) -> Result<i64, Unreadable> {
    const TIMES: [&[&str]; 4] = [
        &["metadata", "creationTimestamp"],
        &["lastTimestamp"],
        &["eventTime"],
        &["series", "lastObservedTime"],
    ];
    let tree = object.tree()?;
    let times = TIMES.iter().filter_map(|path| tree.str_at(path));
    let newest =
        times.filter_map(|text| time::parse_micro(text).or_else(|_| time::parse(text)).ok()).max();
    Ok(newest.unwrap_or(0))
}

fn micros(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
