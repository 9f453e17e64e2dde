//! Writes the metrics of controllers, their queues, and calls to other servers.

use pintle_controllers::garbage::Progress;
use pintle_controllers::measures::{QueueMeasures, Queues};
use pintle_meta::GroupVersionResource;
use pintle_registry::Registry;
use pintle_store::Revision;

use super::Sources;
use super::families as f;
use super::family::{Number, Page};
use crate::webhooks::measures::{Calls, Conversions, VERB};

/// Writes all metrics of this module.
pub(super) fn write(sources: &Sources, registry: &Registry, page: &mut Page) {
    write_queues(&sources.queues, &sources.collector, registry.head().revision, page);
    write_unavailable(registry, page);
    let mut lapses = page.family(&f::LAPSES);
    sources.lapses.all().iter().for_each(|([name, reason], count)| {
        lapses.value(&[name, reason], count.get());
    });
    write_calls(&sources.webhooks.calls, page);
    write_conversions(&sources.webhooks.conversions, page);
    let deprecated = &sources.webhooks.dialers.deprecated;
    for (without_san, with_sha1, counts) in [
        (&f::WEBHOOKS_WITHOUT_SAN, &f::WEBHOOKS_WITH_SHA1, &deprecated.webhooks),
        (&f::EXTENSIONS_WITHOUT_SAN, &f::EXTENSIONS_WITH_SHA1, &deprecated.extensions),
    ] {
        page.single(without_san, counts.missing_san.get());
        page.single(with_sha1, counts.insecure_sha1.get());
    }
}

fn write_queues(queues: &Queues, collector: &Progress, head: Revision, page: &mut Page) {
    let queues = queues.all();
    let counts: [Number<QueueMeasures>; 2] = [
        (&f::QUEUE_ADDS, |queue| queue.adds.get()),
        (&f::QUEUE_RETRIES, |queue| queue.retries.get()),
    ];
    for (family, count) in counts {
        let mut samples = page.family(family);
        queues.iter().for_each(|([name], queue)| samples.value(&[name], count(queue)));
    }
    let mut depth = page.family(&f::QUEUE_DEPTH);
    queues.iter().for_each(|([name], queue)| depth.value(&[name], queue.depth.get()));
    // The garbage collector has no queue. The numbers of changes and of objects that it has not
    // processed stand for the depths of upstream's two queues. They are absent while it does not
    // run.
    if let Some(unobserved_writes) = collector.unobserved_writes(head) {
        depth.value(&["garbage_collector_graph_changes"], unobserved_writes);
        depth.value(&["garbage_collector_attempt_to_delete"], collector.queued());
    }
    let mut waited = page.family(&f::QUEUE_WAITED);
    queues.iter().for_each(|([name], q)| waited.distribution(&[name], &q.waited.observed()));
    let mut worked = page.family(&f::QUEUE_WORKED);
    queues.iter().for_each(|([name], q)| worked.distribution(&[name], &q.worked.observed()));
    let unfinished: Vec<_> =
        queues.iter().map(|([name], queue)| (name, queue.unfinished())).collect();
    let mut samples = page.family(&f::QUEUE_UNFINISHED);
    unfinished.iter().for_each(|(name, (all, _))| samples.value(&[name], all.as_secs_f64()));
    let mut samples = page.family(&f::QUEUE_LONGEST);
    unfinished.iter().for_each(|(name, (_, one))| samples.value(&[name], one.as_secs_f64()));
}

fn write_calls(calls: &Calls, page: &mut Page) {
    for (family, series) in [(&f::CALLS, &calls.answers), (&f::CALL_RETRIES, &calls.retries)] {
        let mut samples = page.family(family);
        for ([code, host], count) in series.all() {
            samples.value(&[&code, &host, VERB], count.get());
        }
    }
    for (family, series) in [
        (&f::CALL_DURATION, &calls.durations),
        (&f::CALL_SIZE, &calls.request_sizes),
        (&f::ANSWER_SIZE, &calls.response_sizes),
    ] {
        let mut samples = page.family(family);
        for ([host], distribution) in series.all() {
            samples.distribution(&[&host, VERB], &distribution.observed());
        }
    }
}

fn write_conversions(conversions: &Conversions, page: &mut Page) {
    let outcomes = conversions.outcomes.all();
    let mut counts = page.family(&f::CONVERSIONS);
    for ([why, result], took) in &outcomes {
        counts.value(&[why, result], took.observed().buckets.iter().sum::<u64>());
    }
    let mut durations = page.family(&f::CONVERSION_DURATION);
    for ([why, result], took) in &outcomes {
        durations.distribution(&[why, result], &took.observed());
    }
    let mut durations = page.family(&f::DEFINITION_CONVERSIONS);
    for ([definition, from, succeeded, to], took) in conversions.definitions.all() {
        durations.distribution(&[&definition, &from, &succeeded, &to], &took.observed());
    }
}

/// Writes for each APIService whether its condition `Available` is not true. An undecodable
/// APIService counts as unavailable.
fn write_unavailable(registry: &Registry, page: &mut Page) {
    let name = GroupVersionResource::new("apiregistration.k8s.io", "v1", "apiservices");
    let Some(services) = registry.resource(&name) else { return };
    let mut samples = page.family(&f::UNAVAILABLE);
    for service in registry.objects(&services) {
        let is_available = service.tree().is_ok_and(|tree| {
            let conditions = tree.at(&["status", "conditions"]).and_then(|all| all.as_array());
            let conditions = conditions.into_iter().flatten();
            let mut available = conditions.filter(|one| one.str_at(&["type"]) == Some("Available"));
            available.any(|one| one.str_at(&["status"]) == Some("True"))
        });
        samples.value(&[service.name()], u8::from(!is_available));
    }
}
