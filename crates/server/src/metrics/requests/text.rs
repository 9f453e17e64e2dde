//! Writes the metrics of requests.
//!
//! Not every family has all labels of a route, so routes that differ only in the other labels are
//! summed.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pintle_measure::Observed;
use pintle_meta::GroupVersionResource;

use super::{Requests, ResourceRequests, Route};
use crate::metrics::families as f;
use crate::metrics::family::{Family, Page};

/// A route with its resource.
struct Named<'a>(&'a GroupVersionResource, &'a Route);

impl<'a> Named<'a> {
    /// The labels of a route.
    fn labels(&self) -> [&'a str; 7] {
        let Self(GroupVersionResource { group, version, resource }, route) = self;
        let route = &route.labels;
        let (scope, verb) = (route.scope.name(), route.verb.name());
        [route.component, group, resource, scope, &route.subresource, verb, version]
    }

    fn with_dry_run(&self) -> [&'a str; 8] {
        let [component, group, resource, scope, subresource, verb, version] = self.labels();
        let dry_run = self.1.labels.dry_run.name();
        [component, dry_run, group, resource, scope, subresource, verb, version]
    }
}

impl Requests {
    pub(in crate::metrics) fn write(&self, page: &mut Page) {
        let mut resources = self.resources();
        resources.insert(0, self.others.clone());
        let routes: Vec<_> = resources
            .iter()
            .flat_map(|resource| resource.routes().map(|route| Named(&resource.name, route)))
            .collect();
        write_answers(&routes, page);
        write_protection(&routes, page);
        let bodies = resources.iter().flat_map(|resource| {
            let GroupVersionResource { group, resource: name, .. } = &resource.name;
            resource.body_sizes().map(|(verb, sizes)| ([&**group, &**name, verb], sizes))
        });
        distributions(page, &f::BODY_SIZES, bodies);
        write_watches(&resources, page);
    }
}

fn write_answers(routes: &[Named<'_>], page: &mut Page) {
    let mut counts: Vec<_> = routes.iter().map(|route| (route, route.1.codes())).collect();
    counts.retain(|(_, codes)| !codes.is_empty());
    let answers = counts.iter().flat_map(|(route, codes)| {
        let [component, dry_run, group, resource, scope, subresource, verb, version] =
            route.with_dry_run();
        codes.iter().map(move |(code, count)| {
            let labels =
                [code, component, dry_run, group, resource, scope, subresource, verb, version];
            (labels, *count)
        })
    });
    numbers(page, &f::REQUESTS, answers);
    let open = routes.iter().filter(|route| route.1.was_long_running.load(Ordering::Relaxed));
    numbers(page, &f::LONG_RUNNING, open.map(|r| (r.labels(), r.1.long_running.get())));
    let durations = routes.iter().map(|route| (route.with_dry_run(), route.1.duration()));
    distributions(page, &f::REQUEST_DURATION, durations);
    let slis = || routes.iter().filter_map(|route| Some((route.labels(), route.1.sli()?)));
    distributions(page, &f::REQUEST_SLI_DURATION, slis());
    if page.shows_hidden() {
        distributions(page, &f::REQUEST_SLO_DURATION, slis());
    }
    let sizes = routes.iter().filter_map(|route| Some((route.labels(), route.1.size()?)));
    distributions(page, &f::RESPONSE_SIZES, sizes);
}

/// Writes rejected, timed out and aborted requests.
fn write_protection(routes: &[Named<'_>], page: &mut Page) {
    let terminations = routes.iter().flat_map(|route| {
        let [component, group, resource, scope, subresource, verb, version] = route.labels();
        [("429", &route.1.rejected), ("504", &route.1.timed_out)].map(|(code, count)| {
            ([code, component, group, resource, scope, subresource, verb, version], count.get())
        })
    });
    numbers(page, &f::TERMINATIONS, terminations.filter(|(_, count)| *count > 0));
    let aborts = routes.iter().map(|route| {
        let [_, group, resource, scope, subresource, verb, version] = route.labels();
        ([group, resource, scope, subresource, verb, version], route.1.aborted.get())
    });
    numbers(page, &f::ABORTS, aborts.filter(|(_, count)| *count > 0));
}

fn write_watches(resources: &[Arc<ResourceRequests>], page: &mut Page) {
    let events = || {
        resources.iter().filter_map(|resource| {
            let GroupVersionResource { group, version, resource: name } = &resource.name;
            Some(([&**group, &**name, &**version], resource.watch_events()?))
        })
    };
    numbers(page, &f::WATCH_EVENTS, events().map(|(labels, sizes)| (labels, sizes.count())));
    distributions(page, &f::WATCH_EVENT_SIZES, events());
}

fn numbers<'a, const N: usize, V: AddAssign + Default + Display>(
    page: &mut Page,
    family: &'static Family,
    parts: impl Iterator<Item = ([&'a str; N], V)>,
) {
    let mut by_labels = BTreeMap::<_, V>::new();
    for (labels, value) in parts {
        *by_labels.entry(labels).or_default() += value;
    }
    let mut samples = page.family(family);
    by_labels.iter().for_each(|(labels, value)| samples.value(labels, value));
}

/// Writes distributions that are not empty.
fn distributions<'a, const N: usize>(
    page: &mut Page,
    family: &'static Family,
    parts: impl Iterator<Item = ([&'a str; N], Observed)>,
) {
    let mut by_labels = BTreeMap::<_, Observed>::new();
    for (labels, observed) in parts.filter(|(_, observed)| observed.count() > 0) {
        match by_labels.get_mut(&labels) {
            Some(all) => all.add(&observed),
            None => _ = by_labels.insert(labels, observed),
        }
    }
    let mut samples = page.family(family);
    by_labels.iter().for_each(|(labels, observed)| samples.distribution(labels, observed));
}
