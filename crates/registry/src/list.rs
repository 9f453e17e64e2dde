//! Lists: a snapshot of a collection, filtered and divided into pages.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pintle_meta::Status;
use pintle_meta::status::Cause;
use pintle_store::{At, Error, Revision};

use crate::cache::{Collection, Objects, Snapshot};
use crate::request::{ListOptions, Target};
use crate::results::List;
use crate::revision::{self, Wanted};
use crate::select::Selection;
use crate::{Object, Registry, Resource, work};

/// How long a read waits for a future revision: upstream's `blockTimeout`.
pub(crate) const FRESH_TIMEOUT: Duration = Duration::from_secs(3);

/// Lists a collection, in one namespace or in all.
pub(crate) async fn list(
    registry: &Registry,
    target: &Target,
    options: &ListOptions,
) -> Result<List, Status> {
    revision::check_list(options)?;
    let selection = Selection::of(target, options)?;
    let wanted = Wanted::of(options)?;
    let (snapshot, from) = state(registry, target, &selection, wanted).await?;
    let (revision, all) = (snapshot.revision, selection.candidates(&snapshot.objects, &from));
    let reads = &target.resource.collection()?.reads;
    if selection.is_of_view() {
        let mut scanned = 0;
        let all = all.inspect(|_| scanned += 1);
        let named = all.filter(|object| selection.is_named(object)).cloned().collect();
        let seen = target.resource.in_own_version(named).await?;
        let selected = seen.iter().filter(|object| selection.matches(object));
        let list = page(target, revision, selected, options, false);
        reads.count(scanned, list.objects.len());
        return checked(target, options, list).await;
    }
    work::ahead(estimate_scan(all.clone(), &selection, options.limit)).await;
    if selection.is_by_content() {
        index(all.clone(), &target.resource).await;
    }
    let (list, looked_at) = if selection.is_everything() {
        let list = page(target, revision, all, options, true);
        let looked_at = list.objects.len() as u64;
        (list, looked_at)
    } else if selection.work() == 0 {
        let looked_at = Cell::new(0);
        let all = all.inspect(|_| looked_at.set(looked_at.get() + 1));
        let selected = all.filter(|object| selection.matches(object));
        (page(target, revision, selected, options, false), looked_at.get())
    } else {
        // One more than the page shows that there is another page.
        let limit = usize::try_from(options.limit).unwrap_or(usize::MAX);
        let limit = if limit == 0 { 0 } else { limit.saturating_add(1) };
        let (selected, looked_at) = selection.of_many(all, limit).await;
        (page(target, revision, selected.into_iter(), options, false), looked_at)
    };
    reads.count(looked_at, list.objects.len());
    checked(target, options, list).await
}

/// Returns a list whose objects can all be read, or the error of those that cannot.
async fn checked(target: &Target, options: &ListOptions, list: List) -> Result<List, Status> {
    check(list.objects.iter()).await;
    let checked = target.resource.check(&list.objects);
    let named = |why| {
        if options.names_unreadable { unreadable(target, &list.objects) } else { why }
    };
    checked.map_err(named)?;
    Ok(list)
}

/// Estimates the work of scanning `objects` in bytes, for [`work::ahead`]. The count stops once it
/// exceeds [`work::SHARED_BYTES_MAX`].
pub(crate) fn estimate_scan<'a>(
    objects: impl Iterator<Item = &'a Arc<Object>>,
    selection: &Selection,
    limit: u64,
) -> usize {
    /// The cost of an object that is not decoded: decoding so many bytes takes as long.
    const COUNTED_BYTES: usize = 64;
    let (is_by_content, counted) = (selection.is_by_content(), COUNTED_BYTES + selection.work());
    let of_one = |object: &Arc<Object>| {
        let is_read = !object.is_checked() || is_by_content && !object.is_indexed();
        if is_read { object.size().max(counted) } else { counted }
    };
    let is_cut = limit > 0 && selection.is_everything();
    let count = if is_cut { usize::try_from(limit).unwrap_or(usize::MAX) } else { usize::MAX };
    let mut bytes = 0_usize;
    for object in objects.take(count) {
        bytes += of_one(object);
        if bytes > work::SHARED_BYTES_MAX {
            break;
        }
    }
    bytes
}

/// Indexes objects that have no index yet: those that were read from disk.
pub(crate) async fn index<'a>(objects: impl Iterator<Item = &'a Arc<Object>>, resource: &Resource) {
    let mut bytes = 0;
    for object in objects.filter(|object| !object.is_indexed()) {
        // An unreadable object becomes an error when it is returned.
        let _ = object.index(resource);
        bytes += object.size();
        if bytes > work::YIELD_BYTES {
            bytes = 0;
            work::pause().await;
        }
    }
}

/// Checks objects that were not checked yet, before they are handed out: those that were read from
/// disk. An unreadable one is found again when it is returned.
pub(crate) async fn check<'a>(objects: impl Iterator<Item = &'a Arc<Object>>) {
    let mut bytes = 0;
    for object in objects.filter(|object| !object.is_checked()) {
        let _ = object.check();
        bytes += object.size();
        if bytes > work::YIELD_BYTES {
            bytes = 0;
            work::pause().await;
        }
    }
}

/// Returns the requested state, perhaps without objects that are not selected, and the key at which
/// the page begins.
async fn state(
    registry: &Registry,
    target: &Target,
    selection: &Selection,
    wanted: Wanted,
) -> Result<(Snapshot, String), Status> {
    let (cache, collection) = (&*registry.cache, target.resource.collection()?);
    let newest = || selection.snapshot(collection, cache.visible());
    match wanted {
        Wanted::Newest => {
            collection.reads.consistent.add(1);
            registry.catch_up().await?;
            Ok((newest().await, String::new()))
        }
        Wanted::Any => Ok((newest().await, String::new())),
        Wanted::NotOlderThan(revision) => {
            reach(registry, collection, revision).await?;
            Ok((newest().await, String::new()))
        }
        Wanted::Exact(revision) => {
            reach(registry, collection, revision).await?;
            let objects = recall(registry, target, revision).await?;
            let objects = objects.ok_or_else(|| Status::expired(EXPIRED))?;
            Ok((Snapshot { objects, revision, next: 0 }, String::new()))
        }
        Wanted::Continue { revision, from } => {
            reach(registry, collection, revision).await?;
            let Some(objects) = recall(registry, target, revision).await? else {
                let mut status = Status::expired(CONTINUE_EXPIRED);
                status.continue_token = Some(revision::encode_token(None, &from));
                return Err(status);
            };
            let from = item_at(&from, &target.namespace);
            Ok((Snapshot { objects, revision, next: 0 }, from))
        }
        Wanted::ContinueInconsistent { from } => {
            registry.catch_up().await?;
            Ok((newest().await, item_at(&from, &target.namespace)))
        }
    }
}

/// Returns the start key in a continue token for the page after an item, relative to the listed
/// namespace or to all of them. No key contains a NUL.
fn start_after(item: &str, namespace: &str) -> String {
    let relative = item.strip_prefix(namespace).unwrap_or(item);
    format!("/{}\0", relative.strip_prefix('/').unwrap_or(relative))
}

/// Returns the item at which a page begins, from the start key of a continue token.
fn item_at(start: &str, namespace: &str) -> String {
    let relative = start.strip_prefix('/').unwrap_or(start);
    if namespace.is_empty() { relative.to_owned() } else { format!("{namespace}/{relative}") }
}

/// Returns a collection's state just after a revision, from the cache's log or else from the store:
/// the previous page of a list may have come from another server. `None` if neither has it.
async fn recall(
    registry: &Registry,
    target: &Target,
    revision: Revision,
) -> Result<Option<Objects>, Status> {
    let collection = target.resource.collection()?;
    if let Some(objects) = collection.snapshot_at(revision).await {
        return Ok(Some(objects));
    }
    let Some(storage) = &target.resource.storage else { return Ok(None) };
    // One read at a time, because each holds a second copy of a collection in memory.
    let _permit = registry.recalls.lock().await;
    if let Some(objects) = collection.snapshot_at(revision).await {
        return Ok(Some(objects)); // the previous permit holder read the same state
    }
    let end = collection.end();
    match registry.store.list(&storage.collection, "", At::Revision(revision)).await {
        Ok(records) => {
            work::ahead(records.iter().map(|record| record.body.len()).sum()).await;
            Ok(Some(collection.recall(end, revision, &records)))
        }
        Err(Error::Compacted { .. }) => Ok(None),
        Err(error) => Err(Status::internal(error)),
    }
}

/// Waits until a revision is visible (RV-29).
pub(crate) async fn reach(
    registry: &Registry,
    collection: &Collection,
    revision: Revision,
) -> Result<(), Status> {
    let (cache, began) = (&registry.cache, Instant::now());
    // A shared store does not report revisions without changes of its objects, unless it is asked.
    if registry.is_shared() && cache.visible() < revision {
        let _ = registry.store.fresh().await; // after a failure the wait ends with a timeout
    }
    let reached = cache.wait_for(revision, FRESH_TIMEOUT).await;
    collection.reads.waits.took(began.elapsed());
    if reached {
        return Ok(());
    }
    Err(Status::too_large_resource_version(revision.0, cache.visible().0))
}

/// Takes one page of the selected objects. If `counts` is true, which is so for a list without
/// selectors, the objects after the page are counted (CHK-08).
fn page<'a>(
    target: &Target,
    revision: Revision,
    mut rest: impl Iterator<Item = &'a Arc<Object>>,
    options: &ListOptions,
    counts: bool,
) -> List {
    let limit = usize::try_from(options.limit).unwrap_or(usize::MAX);
    let mut objects = Vec::new();
    objects.extend(rest.by_ref().take(if limit == 0 { usize::MAX } else { limit }).map(Arc::clone));
    let mut continue_token = String::new();
    let mut remaining = None;
    if limit > 0
        && rest.next().is_some()
        && let Some(last) = objects.last()
    {
        let start = start_after(&last.item, &target.namespace);
        continue_token = revision::encode_token(Some(revision), &start);
        remaining = counts.then(|| rest.count() as u64 + 1);
    }
    let resource = target.resource.clone();
    List { resource, revision, objects, continue_token, remaining }
}

/// Names the objects that cannot be read, up to a bound (upstream: `corruptObjErrAggregator`).
fn unreadable(target: &Target, objects: &[Arc<Object>]) -> Status {
    const NAMED_MAX: usize = 100;
    let name = |object: &Arc<Object>| {
        let why = object.check().err()?;
        let collection = target.resource.storage.as_ref().map_or("", |s| &*s.collection);
        let field = format!("{collection}/{}", object.item);
        Some(Cause {
            reason: "UnexpectedServerResponse".to_owned(),
            message: why.to_string(),
            field,
        })
    };
    let mut causes: Vec<Cause> = objects.iter().filter_map(name).take(NAMED_MAX + 1).collect();
    if causes.len() > NAMED_MAX {
        causes.truncate(NAMED_MAX);
        let (reason, message) = ("FieldValueTooMany", "too many errors, the list is truncated");
        causes.push(Cause { reason: reason.into(), message: message.into(), field: String::new() });
    }
    Status::unreadable_objects(&target.resource.group_resource(), causes)
}

const EXPIRED: &str = "The resourceVersion for the provided list is too old.";

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent \
    list result. You can start a new list without the continue parameter, or use the continue token \
    in this response to retrieve the remainder of the results. Continuing with the provided token \
    results in an inconsistent list - objects that were created, modified, or deleted between the \
    time the first chunk was returned and now may show up in the list.";

#[cfg(test)]
mod tests {
    use super::{item_at, start_after};

    #[test]
    fn a_continue_token_starts_where_a_kube_apiserver_starts() {
        // The last item of a page, the listed namespace, and the start key (kube-apiserver
        // v1.36.3).
        for (item, namespace, start) in [
            ("default/kubernetes", "default", "/kubernetes\0"),
            ("default/kubernetes", "", "/default/kubernetes\0"),
            ("node-1", "", "/node-1\0"),
        ] {
            assert_eq!(start_after(item, namespace), start);
            assert_eq!(item_at(start, namespace), format!("{item}\0"));
        }
    }
}
