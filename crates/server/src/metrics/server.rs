//! Writes the metrics of requests in flight and in queues, of trace spans, and of the build.

use super::Live;
use super::families as f;
use super::family::{Page, Stability};
use crate::traces::OUTCOMES;
use crate::version::Version;

/// Writes all metrics of this module.
pub(super) fn write(live: &Live<'_>, page: &mut Page) {
    let [executing, waiting] = live.fairness.map(|fairness| fairness.kinds()).unwrap_or_default();
    let mut in_flight = page.family(&f::IN_FLIGHT);
    in_flight.value(&["mutating"], live.limits.mutating() + executing.mutating);
    in_flight.value(&["readOnly"], live.limits.read_only() + executing.read_only);
    let mut in_queue = page.family(&f::IN_QUEUE);
    in_queue.value(&["mutating"], waiting.mutating);
    in_queue.value(&["readOnly"], waiting.read_only);
    if let Some(measures) = live.traces {
        let mut spans = page.family(&f::TRACE_SPANS);
        let counts = OUTCOMES.iter().zip(&measures.spans);
        counts.for_each(|(outcome, count)| spans.value(&[outcome], count.get()));
    }
    write_build(&Version::of(live.version), page);
}

fn write_build(v: &Version, page: &mut Page) {
    let labels = [
        v.build_date,
        v.compiler,
        v.git_commit,
        v.git_tree_state,
        v.git_version,
        v.go_version,
        v.major,
        v.minor,
        v.platform,
    ];
    page.family(&f::BUILD_INFO).value(&labels, 1);
    let binary = format!("{}.{}", v.major, v.minor);
    let emulation = format!("{}.{}", v.emulation_major, v.emulation_minor);
    let oldest = format!("{}.{}", v.min_compatibility_major, v.min_compatibility_minor);
    page.family(&f::VERSION_INFO).value(&[&binary, "kube", &emulation, &oldest], 1);
    let mut registered = page.family(&f::REGISTERED);
    for stability in [Stability::Alpha, Stability::Beta, Stability::Stable] {
        let level = stability.name();
        let of_level = f::all().filter(|family| family.stability.name() == level);
        registered.value(&["", level], of_level.count());
    }
}
