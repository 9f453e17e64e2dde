//! Priority and fairness: decides which requests run now and which wait (APF-04 … APF-07).
//!
//! The stored flow schemas and priority levels configure it. A change of them takes effect for the
//! next request after the change was acknowledged. [`pintle_fairness`] decides; requests wait here
//! and give back their seats.

mod configuration;
mod dump;
mod level;
mod measures;
mod state;
mod watched;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::{Mutex, RwLock};
use pintle_auth::{Attributes, User};
use pintle_fairness::{CATCH_ALL, Demand, FlowSchema, Level, Limits, Watches};
use pintle_fairness::{WorkEstimate, estimate};
use pintle_measure::{Gauge, Series};
use pintle_registry::{Feed, Registry, Resource, Verb};

pub(crate) use configuration::resources;
use level::ServedLevel;
pub(crate) use level::{InitialSeat, Rejected, Seat};
pub(crate) use measures::{
    FLOW_DURATION_BOUNDS, FlowMeasures, QUEUE_LENGTH_BOUNDS, REJECTIONS, SEATS_BOUNDS,
    WATCH_COUNT_BOUNDS,
};
pub(crate) use state::{FlowState, LevelState};
pub(crate) use watched::WatchGuard;

use crate::query::Query;
use crate::request_info::{RequestInfo, flag};

/// The interval at which limits are adjusted to the demand (upstream: `borrowingAdjustmentPeriod`).
const ADJUSTMENT_PERIOD: Duration = Duration::from_secs(10);
/// The longest wait of a request, whatever its timeout.
const WAIT_MAX: Duration = Duration::from_secs(60);

const FLOW_SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// The flow schemas and priority levels, with the requests of each level.
pub(crate) struct Fairness {
    registry: Arc<Registry>,
    /// The total number of seats.
    total: usize,
    /// The origin of times.
    origin: Instant,
    /// Built when the first request arrives.
    state: RwLock<State>,
    watches: Arc<Mutex<Watches>>,
    flows: Series<2, FlowMeasures>,
    /// The fraction of its target that each level without a binding limit got, in millionths.
    fair_fraction: Gauge,
}

/// The configuration that is in force.
#[derive(Default)]
struct State {
    feeds: Vec<Feed>,
    /// In order of precedence.
    classes: Vec<Arc<Class>>,
    levels: BTreeMap<String, Entry>,
}

/// A priority level that is in force.
struct Entry {
    spec: Level,
    limits: Limits,
    demand: Demand,
    /// The target of the last adjustment, before limits.
    target: f64,
    current: usize,
    /// True if it has been deleted; it ends when its requests do.
    is_quiescing: bool,
    level: Arc<ServedLevel>,
}

/// The classification of requests that match a flow schema.
pub(crate) struct Class {
    schema: FlowSchema,
    level: Arc<ServedLevel>,
    /// True if requests are queued by flow.
    has_queues: bool,
    /// The most seats of one request; 0 if the level does not queue.
    max_seats: usize,
    uids: [HeaderValue; 2],
    measures: Arc<FlowMeasures>,
}

/// A request that needs seats.
pub(crate) struct SeatRequest<'a> {
    pub(crate) class: &'a Arc<Class>,
    pub(crate) user: &'a Arc<User>,
    pub(crate) info: &'a Arc<RequestInfo>,
    pub(crate) query: &'a Query,
    /// The resource, if it is served.
    pub(crate) resource: Option<&'a Resource>,
    /// When the request was received.
    pub(crate) began: Instant,
    /// The request's timeout.
    pub(crate) timeout: Duration,
}

impl Fairness {
    /// Divides `total` seats among the levels that the registry holds.
    pub(crate) fn new(registry: Arc<Registry>, total: usize) -> Self {
        Self {
            registry,
            total,
            origin: Instant::now(),
            state: RwLock::default(),
            watches: Arc::default(),
            flows: Series::new(FlowMeasures::new),
            fair_fraction: Gauge::default(),
        }
    }

    /// Classifies a request by the flow schemas; `None` if no schema matches and there is no
    /// catch-all.
    pub(crate) fn classify(&self, asked: &Attributes<'_>) -> Option<Arc<Class>> {
        let state = self.state.read();
        if !state.feeds.is_empty() && state.feeds.iter().all(Feed::is_current) {
            return state.class_of(asked);
        }
        drop(state);
        let mut state = self.state.write();
        if state.feeds.is_empty() || !state.feeds.iter().all(Feed::is_current) {
            self.configure(&mut state);
        }
        state.class_of(asked)
    }

    /// Waits for seats until a quarter of the request's timeout, but at most [`WAIT_MAX`], has
    /// passed since the request was received.
    pub(crate) async fn admit(&self, seat_request: SeatRequest<'_>) -> Result<Seat, Rejected> {
        let SeatRequest { class, user, info, began, timeout, .. } = seat_request;
        let estimate = self.estimate(&seat_request);
        class.measures.estimated_seats.observe(estimate.max_seats() as u64);
        let until = began + (timeout / 4).min(WAIT_MAX);
        level::admit(class, user, info, estimate, until).await
    }

    /// Counts a watch for the cost of writes, until the guard is dropped.
    pub(crate) fn begin_watch(&self, info: &RequestInfo) -> Option<WatchGuard> {
        WatchGuard::begin(&self.watches, info)
    }

    /// Adjusts the limits to the demand until the server stops.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            tokio::time::sleep(ADJUSTMENT_PERIOD).await;
            let mut state = self.state.write();
            if state.feeds.is_empty() {
                continue;
            }
            if state.levels.values().any(|entry| entry.is_quiescing && entry.level.is_idle()) {
                self.configure(&mut state);
            } else {
                self.adjust(&mut state);
            }
        }
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Applies the stored configuration.
    fn configure(&self, state: &mut State) {
        if state.feeds.is_empty() {
            let names = resources().into_iter();
            let resources = names.filter_map(|name| self.registry.resource(&name));
            state.feeds = resources.map(|resource| self.registry.feed(&resource)).collect();
        }
        for feed in &mut state.feeds {
            if let Err(status) = feed.take() {
                tracing::warn!(%status, "cannot follow flow schemas and priority levels");
            }
        }
        let configured = configuration::read(&self.registry);
        let now = self.now();
        let mut old = std::mem::take(&mut state.levels);
        for spec in configured.levels {
            let entry = match old.remove(&spec.name) {
                Some(entry) => Entry { spec, is_quiescing: false, ..entry },
                None => Entry::new(spec, self.origin),
            };
            state.levels.insert(entry.spec.name.clone(), entry);
        }
        // Requests of deleted levels keep their seats, and waiting ones still get seats.
        for (name, entry) in old.into_iter().filter(|(_, entry)| !entry.level.is_idle()) {
            state.levels.insert(name, Entry { is_quiescing: true, ..entry });
        }
        let shares: Vec<_> = state.levels.values().map(|entry| entry.spec.shares).collect();
        let limits = pintle_fairness::limits(self.total, &shares);
        for (entry, limits) in state.levels.values_mut().zip(limits) {
            if entry.level.is_new() {
                entry.current = limits.initial();
            }
            entry.limits = limits;
            entry.level.configure(entry.spec.discipline, entry.current, now);
        }
        self.adjust(state);
        let class = |schema| self.class(&state.levels, schema);
        state.classes = configured.schemas.into_iter().filter_map(class).collect();
    }

    /// The class of a schema; `None` if its level does not exist.
    fn class(&self, levels: &BTreeMap<String, Entry>, schema: FlowSchema) -> Option<Arc<Class>> {
        use pintle_fairness::Discipline::Queue;
        let entry = levels.get(&schema.priority_level).filter(|entry| !entry.is_quiescing)?;
        let (has_queues, max_seats) = match entry.spec.discipline {
            Queue { queues, hand_size, .. } => {
                (queues > 1, pintle_fairness::max_seats(entry.limits.nominal, hand_size))
            }
            _ => (false, 0),
        };
        let uid = |uid: &str| HeaderValue::from_str(uid).unwrap_or(HeaderValue::from_static(""));
        Some(Arc::new(Class {
            uids: [uid(&schema.uid), uid(&entry.spec.uid)],
            measures: self.flows.with([&schema.name, &entry.spec.name]),
            level: entry.level.clone(),
            has_queues,
            max_seats,
            schema,
        }))
    }

    /// Lends unused seats of levels to levels with demand.
    fn adjust(&self, state: &mut State) {
        let now = self.now();
        for entry in state.levels.values_mut() {
            entry.demand.take(&entry.level.take_demand(now));
        }
        let levels = state.levels.values();
        let of = |e: &Entry| (e.limits, e.demand, e.current, e.level.is_exempt());
        let (adjusted, fraction) = pintle_fairness::borrow(&levels.map(of).collect::<Vec<_>>());
        #[expect(clippy::cast_possible_truncation, reason = "a small fraction")]
        self.fair_fraction.set((fraction * 1e6) as i64);
        for (entry, adjusted) in state.levels.values_mut().zip(adjusted) {
            entry.current = adjusted.current;
            entry.target = adjusted.target.unwrap_or_default();
            entry.level.configure(entry.spec.discipline, entry.current, now);
        }
    }

    /// Estimates the seats of a request.
    fn estimate(&self, seat_request: &SeatRequest<'_>) -> WorkEstimate {
        let SeatRequest { class, info, query, resource, .. } = seat_request;
        let Some(named) = &info.resource else { return WorkEstimate::seats(1) };
        let Some(verb) = info.verb.on_resource() else { return WorkEstimate::seats(1) };
        match verb {
            Verb::Watch if !begins_with_state(query) => WorkEstimate::seats(1),
            Verb::List | Verb::Watch => {
                let extent = resource.map(|resource| resource.extent()).unwrap_or_default();
                let limit = query.get("limit").and_then(|limit| limit.parse().ok());
                let listed = estimate::Listed {
                    objects: extent.objects as u64,
                    bytes: extent.bytes as u64,
                    limit: limit.unwrap_or(0),
                    is_single: !named.name.is_empty(),
                };
                estimate::list(&listed, class.max_seats)
            }
            // A token request is sent to no watch.
            Verb::Create if named.resource == "serviceaccounts" && named.subresource == "token" => {
                WorkEstimate::seats(1)
            }
            Verb::Create | Verb::Update | Verb::Patch | Verb::Delete => {
                let watches = watched::interested(&self.watches, named);
                class.measures.watch_count.observe(watches as u64);
                estimate::write(watches, class.max_seats)
            }
            Verb::Get | Verb::DeleteCollection => WorkEstimate::seats(1),
        }
    }
}

impl State {
    fn class_of(&self, asked: &Attributes<'_>) -> Option<Arc<Class>> {
        let matching = self.classes.iter().find(|class| class.schema.matches(asked));
        let catch_all = || self.classes.iter().find(|class| class.schema.name == CATCH_ALL);
        matching.or_else(catch_all).cloned()
    }
}

impl Entry {
    fn new(spec: Level, origin: Instant) -> Self {
        let level = Arc::new(ServedLevel::new(spec.discipline, origin));
        Self {
            spec,
            limits: Limits::default(),
            demand: Demand::default(),
            target: 0.0,
            current: 0,
            is_quiescing: false,
            level,
        }
    }
}

impl Class {
    /// Adds the headers with the uids of flow schema and level; names are not disclosed.
    pub(crate) fn write_headers(&self, headers: &mut HeaderMap) {
        let [schema, level] = &self.uids;
        headers.insert(FLOW_SCHEMA_UID, schema.clone());
        headers.insert(PRIORITY_LEVEL_UID, level.clone());
    }

    /// True if its requests never wait.
    pub(crate) fn is_exempt(&self) -> bool {
        self.level.is_exempt()
    }
}

/// True if a watch sends initial events, so that it costs as much as a list.
pub(crate) fn begins_with_state(query: &Query) -> bool {
    matches!(query.text("resourceVersion"), "" | "0")
        || query.get("sendInitialEvents").is_some_and(|value| flag(Some(value)))
}
