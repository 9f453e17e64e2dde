//! Writes the metrics of requests to etcd.

use pintle_etcd::{Calls, Measures};

use super::families as f;
use super::family::{Number, Page};
use super::stored::group_resource;

/// Writes all metrics of requests to etcd.
pub(super) fn write(measures: &Measures, page: &mut Page) {
    write_requests(measures, page);
    let lists = measures.lists.all();
    for (family, of) in [
        (&f::STORAGE_LISTS, (|lists| lists.count.get()) as fn(&pintle_etcd::Lists) -> u64),
        (&f::STORAGE_FETCHED, |lists| lists.fetched.get()),
    ] {
        let mut samples = page.family(family);
        for ([collection], lists) in &lists {
            samples.value(&group_resource(collection), of(lists));
        }
    }
    // One watch of etcd covers all resources, so the labels are empty.
    page.family(&f::ETCD_BOOKMARKS).value(&["", ""], measures.progress.get());
    page.family(&f::LEASE_OBJECTS).distribution(&[], &measures.lease_objects.observed());
    write_calls(measures, page);
}

fn write_requests(measures: &Measures, page: &mut Page) {
    let requests = measures.requests.all();
    let mut durations = page.family(&f::ETCD_DURATION);
    for ([operation, collection], of) in &requests {
        let [group, resource] = group_resource(collection);
        durations.distribution(&[group, operation, resource], &of.took.observed());
    }
    let mut counts = page.family(&f::ETCD_REQUESTS);
    for ([operation, collection], of) in &requests {
        let [group, resource] = group_resource(collection);
        counts.value(&[group, operation, resource], of.took.observed().count());
    }
    let mut errors = page.family(&f::ETCD_ERRORS);
    for ([operation, collection], of) in &requests {
        let [group, resource] = group_resource(collection);
        if of.failed.get() > 0 {
            errors.value(&[group, operation, resource], of.failed.get());
        }
    }
}

fn write_calls(measures: &Measures, page: &mut Page) {
    let calls: Vec<_> = measures.calls().filter(|(_, calls)| calls.started.get() > 0).collect();
    let kind = |is_stream| if is_stream { "bidi_stream" } else { "unary" };
    let numbers: [Number<Calls>; 3] = [
        (&f::CALLS_STARTED, |calls| calls.started.get()),
        (&f::CALLS_SENT, |calls| calls.sent.get()),
        (&f::CALLS_RECEIVED, |calls| calls.received.get()),
    ];
    for (family, of) in numbers {
        let mut samples = page.family(family);
        for (method, calls) in &calls {
            let labels = [method.name(), method.service(), kind(method.is_stream())];
            samples.value(&labels, of(calls));
        }
    }
    let mut handled = page.family(&f::CALLS_HANDLED);
    for (method, calls) in &calls {
        for (code, count) in calls.handled() {
            let code = code.to_string();
            let labels = [&code, method.name(), method.service(), kind(method.is_stream())];
            handled.value(&labels, count);
        }
    }
}
