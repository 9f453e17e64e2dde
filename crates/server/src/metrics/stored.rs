//! Writes the metrics of stored objects, commits, the cache, reads and encryption at rest.

use pintle_registry::Registry;
use pintle_registry::measures::{Reads, Stored};

use super::families as f;
use super::family::{Number, Page};
use super::{counters, distributions, gauges};
use crate::encryption;

/// The name of the embedded store in labels.
const STORE: &str = "pintle";
/// The name of etcd in labels: upstream's name of the first one.
const ETCD: &str = "etcd-0";

/// A collection with its group and resource labels.
struct Named {
    group: String,
    resource: String,
    stored: Stored,
}

impl Named {
    fn new(stored: Stored) -> Self {
        let [group, resource] = group_resource(&stored.name);
        Self { group: group.to_owned(), resource: resource.to_owned(), stored }
    }

    fn labels(&self) -> [&str; 2] {
        [&self.group, &self.resource]
    }
}

/// The group and resource of a collection.
pub(super) fn group_resource(collection: &str) -> [&str; 2] {
    collection.split_once('/').map_or(["", collection], |(group, resource)| [group, resource])
}

/// Writes the metrics of encryption at rest.
pub(super) fn write_encryption(current: &encryption::Current, page: &mut Page) {
    let (reloads, measures) = (&current.reloads, &current.measures);
    counters(page, &f::ENCRYPTION_RELOADS, &reloads.total);
    gauges(page, &f::ENCRYPTION_RELOADED, &reloads.last_unix_seconds);
    gauges(page, &f::ENCRYPTION_CONFIG, &reloads.config);
    counters(page, &f::TRANSFORMATIONS, &measures.values.operations);
    distributions(page, &f::TRANSFORMATION_DURATION, &measures.values.took);
    distributions(page, &f::PLUGIN_CALLS, &measures.calls);
    gauges(page, &f::PLUGIN_KEYS, &measures.key_ids);
    let uses = measures.key_uses.all();
    let mut counts = page.family(&f::PLUGIN_KEY_USES);
    uses.iter().for_each(|(labels, uses)| {
        counts.value(&labels.each_ref().map(|label| &**label), uses.count.get())
    });
    let mut times = page.family(&f::PLUGIN_KEY_USED);
    for (labels, uses) in &uses {
        times.value(&labels.each_ref().map(|label| &**label), uses.last_unix_seconds.get());
    }
    page.family(&f::SEEDS_MADE).distribution(&[], &measures.seeds_made.observed());
    page.single(&f::SEEDS_FAILED, measures.seeds_failed.get());
    counters(page, &f::PLUGIN_INVALID_KEYS, &measures.invalid_key_ids);
    let mut samples = page.family(&f::PLUGIN_SOURCES);
    for (name, sources) in current.sources() {
        samples.value(&[&name], sources as u64);
    }
}

/// Writes all metrics of stored objects, the cache and reads.
pub(super) fn write(registry: &Registry, is_etcd: bool, page: &mut Page) {
    let collections: Vec<_> = registry.stored().into_iter().map(Named::new).collect();
    let mut objects = page.family(&f::STORAGE_OBJECTS);
    for Named { group, resource, stored } in &collections {
        match group.as_str() {
            "" => objects.value(&[resource], stored.objects),
            _ => objects.value(&[&format!("{resource}.{group}")], stored.objects),
        }
    }
    write_state(&collections, registry, page);
    write_reads(&collections, page);
    if let Some(bytes) = registry.disk_bytes() {
        page.family(&f::STORAGE_SIZE).value(&[if is_etcd { ETCD } else { STORE }], bytes);
    }
    if let Some(measures) = registry.commits() {
        page.family(&f::STORE_COMMITS).distribution(&[], &measures.commits.observed());
        page.family(&f::STORE_BATCHES).distribution(&[], &measures.batches.observed());
    }
    page.single(&f::ENCODING_BYTES, registry.encoding_bytes() as u64);
    page.single(&f::STORE_WRITABLE, u8::from(registry.check().is_ok()));
}

fn write_state(collections: &[Named], registry: &Registry, page: &mut Page) {
    let of: [Number<Stored>; 6] = [
        (&f::RESOURCE_OBJECTS, |stored| stored.objects as u64),
        (&f::RESOURCE_SIZE, |stored| stored.bytes as u64),
        (&f::STORAGE_EVENTS, |stored| stored.changes),
        (&f::EVENTS_RECEIVED, |stored| stored.changes),
        (&f::EVENTS_DISPATCHED, |stored| stored.changes),
        (&f::INITIALIZATIONS, |_| 1),
    ];
    for (family, value) in of {
        let mut samples = page.family(family);
        for collection in collections {
            samples.value(&collection.labels(), value(&collection.stored));
        }
    }
    let head = registry.head().revision;
    let mut versions = page.family(&f::CACHE_VERSION);
    collections.iter().for_each(|collection| versions.value(&collection.labels(), head));
}

fn write_reads(collections: &[Named], page: &mut Page) {
    let some = |of: fn(&Reads) -> u64| {
        let counts = collections.iter().map(move |one| (one, of(&one.stored.reads)));
        counts.filter(|(_, count)| *count > 0)
    };
    let with_index: [Number<Reads>; 2] = [
        (&f::CACHE_LISTS, |reads| reads.lists.get()),
        (&f::CACHE_LOOKED_AT, |reads| reads.looked_at.get()),
    ];
    for (family, of) in with_index {
        let mut samples = page.family(family);
        some(of).for_each(|(one, count)| samples.value(&[&one.group, "", &one.resource], count));
    }
    let plain: [Number<Reads>; 4] = [
        (&f::CACHE_LISTED, |reads| reads.listed.get()),
        (&f::INITIAL_EVENTS, |reads| reads.initial_events.get()),
        (&f::TERMINATED_WATCHERS, |reads| reads.lagged.get()),
        (&f::DECODE_ERRORS, |reads| reads.unreadable.get()),
    ];
    for (family, of) in plain {
        let mut samples = page.family(family);
        some(of).for_each(|(one, count)| samples.value(&one.labels(), count));
    }
    let mut samples = page.family(&f::CONSISTENT_READS);
    for (one, count) in some(|reads| reads.consistent.get()) {
        samples.value(&["false", &one.group, &one.resource, "true"], count);
    }
    let mut samples = page.family(&f::READ_WAITS);
    for one in collections {
        let waits = one.stored.reads.waits.observed();
        if waits.count() > 0 {
            samples.distribution(&one.labels(), &waits);
        }
    }
}
