//! Writes the metrics of snapshots.

use super::families as f;
use super::family::Page;
use crate::snapshots::Snapshots;

/// Writes the metrics of each trigger. Those of complete snapshots are absent until the trigger has
/// had one.
pub(super) fn write(snapshots: &Snapshots, page: &mut Page) {
    let all: Vec<_> =
        snapshots.measures().map(|(label, m)| (label, m, m.took.observed())).collect();
    let mut took = page.family(&f::SNAPSHOT_DURATION);
    for (label, _, observed) in all.iter().filter(|(_, _, observed)| observed.count() > 0) {
        took.distribution(&[label], observed);
    }
    let mut times = page.family(&f::SNAPSHOT_TIME);
    for (label, measures, _) in all.iter().filter(|(_, _, observed)| observed.count() > 0) {
        times.value(&[label], measures.last_unix_seconds.get());
    }
    let mut sizes = page.family(&f::SNAPSHOT_SIZE);
    for (label, measures, _) in all.iter().filter(|(_, _, observed)| observed.count() > 0) {
        sizes.value(&[label], measures.last_bytes.get());
    }
    let mut failures = page.family(&f::SNAPSHOT_FAILURES);
    for (label, measures, _) in &all {
        failures.value(&[label], measures.failures.get());
    }
}
