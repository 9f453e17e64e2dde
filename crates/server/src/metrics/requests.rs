//! Counts requests and responses by route.
//!
//! A request looks up its route once, through its resource; then it counts in cells of the current
//! thread. Requests for which upstream has no route are not counted: those that authentication,
//! authorization or the lookup of their target refuses, and those for unknown paths. So no text of
//! a client becomes a label.

mod text;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use pintle_measure::{Counter, Distribution, Gauge, Observed, Series, Shards};
use pintle_meta::GroupVersionResource;
use pintle_registry::Resource;

use super::families::{BODY_BOUNDS, DURATION_BOUNDS, EVENT_BOUNDS, RESPONSE_BOUNDS, SLI_BOUNDS};
use super::route::{Key, Labels, WriteVerb};

/// The number of routes with their own series. All other routes with the same verb, scope and
/// dry-run label share one series without a resource.
const ROUTES_MAX: usize = 16_384;
/// The codes of almost all responses.
const CODES: [u16; 20] = [
    0, 101, 200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 406, 409, 410, 415, 422, 429, 500,
    504,
];

/// The measures of all requests.
pub(crate) struct Requests {
    /// By name, so the counts survive the replacement of a definition.
    by_resource: Mutex<BTreeMap<GroupVersionResource, Arc<ResourceRequests>>>,
    routes: AtomicUsize,
    /// The routes of paths that name no resource, and the shared routes above the limit.
    pub(super) others: Arc<ResourceRequests>,
}

/// The measures of one resource's requests.
pub(crate) struct ResourceRequests {
    pub(super) name: GroupVersionResource,
    first: OnceLock<Box<Link>>,
    body_sizes: [OnceLock<Distribution>; WriteVerb::ALL.len()],
    watch: OnceLock<Shards<WatchCells>>,
}

/// A node in the list of a resource's routes, which is short and only grows.
struct Link {
    route: Arc<Route>,
    next: OnceLock<Box<Link>>,
}

/// The measures of one route.
pub(crate) struct Route {
    pub(super) labels: Labels,
    cells: Shards<Cells>,
    /// Responses with rare codes.
    rare: Series<1, Counter>,
    pub(super) long_running: Gauge,
    pub(super) was_long_running: AtomicBool,
    /// Requests that a limit rejected.
    pub(crate) rejected: Counter,
    /// Requests that took too long.
    pub(crate) timed_out: Counter,
    /// Aborted responses.
    pub(crate) aborted: Counter,
}

struct Cells {
    codes: [Counter; CODES.len()],
    duration: Distribution,
    /// `None` for watches and dry runs.
    sli: Option<Distribution>,
    /// The sizes of responses to reads.
    size: Option<Distribution>,
}

/// A response, for its counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) code: u16,
    pub(crate) took: Duration,
    /// The part of the time that webhooks took.
    pub(crate) waited: Duration,
    pub(crate) body_bytes: u64,
}

/// The measures of a resource's watch events.
pub(crate) struct WatchCells(Distribution);

impl WatchCells {
    /// Counts a sent event.
    pub(crate) fn sent(&self, bytes: usize) {
        self.0.observe(bytes as u64);
    }
}

impl Requests {
    /// Returns measures with all counts at zero.
    pub(super) fn new() -> Self {
        Self {
            by_resource: Mutex::default(),
            routes: AtomicUsize::new(0),
            others: Arc::new(ResourceRequests::new(GroupVersionResource::new("", "", ""))),
        }
    }

    /// The route of a request for a resource.
    pub(crate) fn route(&self, resource: &Resource, key: &Key<'_>) -> Arc<Route> {
        self.one_of(&self.of(resource), key)
    }

    /// The route of a path that names no resource, if it is counted.
    pub(crate) fn of_path(&self, path: &str) -> Option<Arc<Route>> {
        let key = match path {
            "/healthz" | "/livez" | "/readyz" => Key::path("", path),
            "/openapi/v3" => Key::path("", "openapi/v3"),
            _ if path.starts_with("/openapi/v3/") => Key::path("", "openapi/v3/"),
            "/statusz" | "/flagz" => {
                let name = GroupVersionResource::new("", "", path.trim_start_matches('/'));
                return Some(self.one_of(&self.named(&name), &Key::path("apiserver", "")));
            }
            _ => return None,
        };
        Some(self.one_of(&self.others, &key))
    }

    fn one_of(&self, resource: &ResourceRequests, key: &Key<'_>) -> Arc<Route> {
        let has_room = || self.routes.fetch_add(1, Ordering::Relaxed) < ROUTES_MAX;
        resource.route(key, has_room).unwrap_or_else(|| {
            let rest = self.others.route(&Key::overflow_key(key), || true);
            rest.expect("a route is always made where there is room")
        })
    }

    fn named(&self, name: &GroupVersionResource) -> Arc<ResourceRequests> {
        let mut by_resource = self.by_resource.lock();
        let found = by_resource.entry(name.clone());
        found.or_insert_with(|| Arc::new(ResourceRequests::new(name.clone()))).clone()
    }

    /// The measures of a resource, cached in it.
    pub(crate) fn of(&self, resource: &Resource) -> Arc<ResourceRequests> {
        resource.attached.get_or_make(|| self.named(&resource.resource))
    }

    /// The measures of all resources.
    pub(super) fn resources(&self) -> Vec<Arc<ResourceRequests>> {
        self.by_resource.lock().values().cloned().collect()
    }
}

impl ResourceRequests {
    fn new(name: GroupVersionResource) -> Self {
        Self {
            name,
            first: OnceLock::new(),
            body_sizes: Default::default(),
            watch: OnceLock::new(),
        }
    }

    /// Returns the route with this key and creates it if there is room; `None` if there is none.
    fn route(&self, key: &Key<'_>, has_room: impl Fn() -> bool) -> Option<Arc<Route>> {
        let mut slot = &self.first;
        loop {
            let link = match slot.get() {
                Some(link) => link,
                None if has_room() => slot.get_or_init(|| Box::new(Link::new(key))),
                None => return None,
            };
            // Another thread may have added a route meanwhile.
            if link.route.labels.are(key) {
                return Some(link.route.clone());
            }
            slot = &link.next;
        }
    }

    /// All routes that have had requests.
    pub(super) fn routes(&self) -> impl Iterator<Item = &Arc<Route>> {
        let mut slot = &self.first;
        std::iter::from_fn(move || {
            let link = slot.get()?;
            slot = &link.next;
            Some(&link.route)
        })
    }

    /// Observes the body size of a write.
    pub(crate) fn body(&self, verb: WriteVerb, bytes: usize) {
        let sizes = &self.body_sizes[verb as usize];
        sizes.get_or_init(|| Distribution::new(&BODY_BOUNDS)).observe(bytes as u64);
    }

    pub(super) fn body_sizes(&self) -> impl Iterator<Item = (&'static str, Observed)> {
        let sizes = WriteVerb::ALL.iter().zip(&self.body_sizes);
        sizes.filter_map(|(verb, sizes)| Some((verb.name(), sizes.get()?.observed())))
    }

    /// The copy of the cells of watch events that the current thread updates.
    pub(crate) fn watch(&self) -> &WatchCells {
        let new = || Shards::new(|| WatchCells(Distribution::new(&EVENT_BOUNDS)));
        self.watch.get_or_init(new).here()
    }

    /// The sizes of watch events, if there were any.
    pub(super) fn watch_events(&self) -> Option<Observed> {
        let cells = self.watch.get()?;
        Some(total(&EVENT_BOUNDS, cells.all().map(|cells| &cells.0)))
    }
}

impl Link {
    fn new(key: &Key<'_>) -> Self {
        Self { route: Arc::new(Route::new(key)), next: OnceLock::new() }
    }
}

impl Route {
    fn new(key: &Key<'_>) -> Self {
        Self {
            labels: Labels::of(key),
            cells: Shards::new(|| Cells {
                codes: Default::default(),
                duration: Distribution::new(&DURATION_BOUNDS),
                sli: key.has_sli().then(|| Distribution::new(&SLI_BOUNDS)),
                size: key.reads.then(|| Distribution::new(&RESPONSE_BOUNDS)),
            }),
            rare: Series::default(),
            long_running: Gauge::default(),
            was_long_running: AtomicBool::new(false),
            rejected: Counter::default(),
            timed_out: Counter::default(),
            aborted: Counter::default(),
        }
    }

    /// Counts a response.
    pub(crate) fn answered(&self, answer: &Served) {
        let cells = self.cells.here();
        match CODES.binary_search(&answer.code) {
            Ok(at) => cells.codes[at].add(1),
            Err(_) => self.rare.with([&answer.code.to_string()]).add(1),
        }
        cells.duration.took(answer.took);
        if let Some(sli) = &cells.sli {
            sli.took(answer.took.saturating_sub(answer.waited));
        }
        if let Some(size) = &cells.size {
            size.observe(answer.body_bytes);
        }
    }

    /// Changes the number of long-running requests.
    pub(crate) fn runs_long(&self, change: i64) {
        self.was_long_running.store(true, Ordering::Relaxed);
        self.long_running.add(change);
    }

    /// The number of responses by code.
    pub(super) fn codes(&self) -> Vec<(String, u64)> {
        let of_code = |at: usize| self.cells.all().map(|cells| cells.codes[at].get()).sum();
        let usual = CODES.iter().enumerate().map(|(at, code)| (code.to_string(), of_code(at)));
        let rare = self.rare.all();
        let rare = rare.iter().map(|([code], count)| (code.to_string(), count.get()));
        usual.chain(rare).filter(|(_, count)| *count > 0).collect()
    }

    pub(super) fn duration(&self) -> Observed {
        total(&DURATION_BOUNDS, self.cells.all().map(|cells| &cells.duration))
    }

    pub(super) fn sli(&self) -> Option<Observed> {
        let cells: Option<Vec<_>> = self.cells.all().map(|cells| cells.sli.as_ref()).collect();
        Some(total(&SLI_BOUNDS, cells?.into_iter()))
    }

    pub(super) fn size(&self) -> Option<Observed> {
        let cells: Option<Vec<_>> = self.cells.all().map(|cells| cells.size.as_ref()).collect();
        Some(total(&RESPONSE_BOUNDS, cells?.into_iter()))
    }
}

/// The sum of several distributions with the same buckets.
pub(super) fn total<'a>(
    bounds: &'static [u64],
    parts: impl Iterator<Item = &'a Distribution>,
) -> Observed {
    let mut total = Observed::none(bounds);
    parts.for_each(|part| total.add(&part.observed()));
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::route::{DryRun, Scope, VerbLabel};

    fn key(subresource: &str, verb: VerbLabel) -> Key<'_> {
        let (scope, dry_run) = (Scope::Resource, DryRun::No);
        Key {
            component: "apiserver",
            subresource,
            verb,
            scope,
            dry_run,
            reads: verb == VerbLabel::Get,
        }
    }

    #[test]
    fn a_route_is_found_again() {
        let requests = Requests::new();
        let first = requests.one_of(&requests.others, &key("", VerbLabel::Get));
        let other = requests.one_of(&requests.others, &key("status", VerbLabel::Get));
        assert!(!Arc::ptr_eq(&first, &other));
        assert!(Arc::ptr_eq(&first, &requests.one_of(&requests.others, &key("", VerbLabel::Get))));
        assert_eq!(requests.others.routes().count(), 2);
    }

    #[test]
    fn answers_are_counted_by_their_codes() {
        let route = Route::new(&key("", VerbLabel::Get));
        for code in [200, 200, 418] {
            let took = Duration::from_millis(30);
            let waited = Duration::from_millis(10);
            route.answered(&Served { code, took, waited, body_bytes: 2000 });
        }
        assert_eq!(route.codes(), [("200".to_owned(), 2), ("418".to_owned(), 1)]);
        assert_eq!((route.duration().count(), route.duration().sum), (3, 90_000_000));
        assert_eq!(route.sli().unwrap().sum, 60_000_000);
        assert_eq!(route.size().unwrap().buckets[1], 3);
        let writes = Route::new(&key("", VerbLabel::Post));
        assert_eq!(writes.size(), None);
    }

    #[test]
    fn the_number_of_routes_is_bounded() {
        let requests = Requests::new();
        requests.routes.store(ROUTES_MAX, Ordering::Relaxed);
        let resource = ResourceRequests::new(GroupVersionResource::new("g", "v1", "things"));
        let has_room = || requests.routes.fetch_add(1, Ordering::Relaxed) < ROUTES_MAX;
        assert!(resource.route(&key("", VerbLabel::Get), has_room).is_none());
    }
}
