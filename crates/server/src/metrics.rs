//! Metrics in Prometheus' text format 0.0.4, under upstream's names.
//!
//! Whoever does something measures it, in a struct of its own ([`pintle_measure`]). Here they are read, and
//! told as the rows of [`families`] say. What nobody here can know is not told; `docs/metrics.md` has the
//! list. Labels are what is served and what is configured, never what clients make up, so the number of
//! series is bounded.

mod access;
mod admission;
mod audits;
mod controllers;
mod effects;
mod egress;
mod etcd;
mod fairness;
mod families;
mod family;
mod process;
mod requests;
mod route;
mod server;
mod stored;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use pintle_admission::Measures;
use pintle_controllers::Environment;
use pintle_controllers::garbage::Progress;
use pintle_controllers::measures::{Lapses, Queues};
use pintle_effects::PortRange;
use pintle_measure::{Counter, Distribution, Gauge, Series};
use pintle_meta::GroupVersionResource;

use crate::Config;
use crate::api::Api;
use crate::audit;
use crate::authorization::{self, GraphMeasures};
use crate::encryption;
use crate::webhooks::Webhooks;
use access::Access;
pub(crate) use egress::{DialStage, Dials};
use families as f;
pub(crate) use families::{CONDITION_BOUNDS, JWT_BOUNDS, NODE_GRAPH_BOUNDS, WEBHOOK_BOUNDS};
use family::{Family, Page};
use requests::Requests;
pub(crate) use requests::{Answered, ResourceRequests, Route};
pub(crate) use route::{Key, VerbLabel, WriteVerb};
use streams::Streams;

/// What others measure, and what is told of the configuration.
pub(crate) struct Sources {
    /// How far the garbage collector is.
    collector: Arc<Progress>,
    queues: Arc<Queues>,
    lapses: Arc<Lapses>,
    webhooks: Arc<Webhooks>,
    admission: Arc<Measures>,
    /// What is asked of etcd, where that keeps the objects.
    etcd: Option<Arc<pintle_etcd::Measures>>,
    effects: Arc<pintle_effects::Measures>,
    node_ports: PortRange,
    /// What authorizers have decided, and how they do.
    authorization: Arc<authorization::Measures>,
    /// How long changes of the graph of nodes took, where there is one.
    node_graph: Option<Arc<GraphMeasures>>,
    /// How values are encrypted, where they are.
    pub(crate) encryption: Option<Arc<encryption::Current>>,
    audit: Arc<audit::Measures>,
    /// Each feature gate with its stage, and whether it is on.
    features: Vec<(&'static str, &'static str, bool)>,
    /// See [`Config`].
    show_hidden: bool,
}

/// What is measured where a server is put together.
pub(crate) struct Measured {
    pub(crate) admission: Arc<Measures>,
    pub(crate) effects: Arc<pintle_effects::Measures>,
    pub(crate) authorization: Arc<authorization::Measures>,
    pub(crate) node_graph: Option<Arc<GraphMeasures>>,
    /// How values are encrypted, where they are.
    pub(crate) encryption: Option<Arc<encryption::Current>>,
    pub(crate) audit: Arc<audit::Measures>,
}

impl Sources {
    /// Those of a server.
    pub(crate) fn of(
        environment: &Environment,
        config: &Config,
        webhooks: Arc<Webhooks>,
        measures: Measured,
    ) -> Self {
        let Measured { admission, effects, authorization, node_graph, encryption, audit } =
            measures;
        Self {
            webhooks,
            admission,
            etcd: config.etcd.as_ref().map(|etcd| etcd.measures.clone()),
            effects,
            authorization,
            node_graph,
            encryption,
            audit,
            node_ports: config.service_node_port_range,
            collector: environment.collector.clone(),
            queues: environment.queues.clone(),
            lapses: environment.lapses.clone(),
            features: config.feature_gates.all().collect(),
            show_hidden: config.show_hidden_metrics,
        }
    }
}

/// Everything that the server itself measures.
pub(crate) struct Metrics {
    pub(crate) requests: Requests,
    pub(crate) access: Access,
    pub(crate) streams: Streams,
    field_validations: [Distribution; 4],
    watch_lists: Series<4, Distribution>,
    deprecated: Series<5, Gauge>,
    checks: Series<2, Gauge>,
    checks_total: Series<3, Counter>,
    pub(crate) tls_errors: Counter,
    pub(crate) started_at_unix_seconds: i64,
    sources: Sources,
}

/// How unknown fields may be treated, as requests say it; last, what they cannot say.
const FIELD_VALIDATIONS: [&str; 4] = ["Ignore", "Strict", "Warn", "invalid"];

impl Metrics {
    /// Nothing has been counted yet.
    pub(crate) fn new(started_at_unix_seconds: i64, sources: Sources) -> Self {
        Self {
            requests: Requests::new(),
            access: Access::new(),
            streams: Streams::default(),
            field_validations: std::array::from_fn(|_| Distribution::new(&f::SLI_BOUNDS)),
            watch_lists: Series::new(|| Distribution::new(&f::WATCH_LIST_BOUNDS)),
            deprecated: Series::default(),
            checks: Series::default(),
            checks_total: Series::default(),
            tls_errors: Counter::default(),
            started_at_unix_seconds,
            sources,
        }
    }

    /// Counts how long a request took that says how unknown fields are to be treated.
    pub(crate) fn field_validation(&self, said: &str, took: Duration) {
        let known = FIELD_VALIDATIONS.iter().position(|known| *known == said);
        self.field_validations[known.unwrap_or(FIELD_VALIDATIONS.len() - 1)].took(took);
    }

    /// Counts how long it took until the initial events of a watch were sent.
    pub(crate) fn watch_list(&self, resource: &GroupVersionResource, scope: &str, took: Duration) {
        let labels = [&*resource.group, &*resource.resource, scope, &*resource.version];
        self.watch_lists.with(labels).took(took);
    }

    /// Remembers that something deprecated was asked for (DEP-14).
    pub(crate) fn deprecated(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
        removed_release: &str,
    ) {
        let GroupVersionResource { group, version, resource } = resource;
        self.deprecated.with([group, removed_release, resource, subresource, version]).set(1);
    }

    /// Remembers how a health check went, as one of all that an endpoint makes.
    pub(crate) fn checked(&self, endpoint: &str, check: &str, passed: bool) {
        self.checks.with([check, endpoint]).set(i64::from(passed));
        let status = if passed { "success" } else { "error" };
        self.checks_total.with([check, status, endpoint]).add(1);
    }

    /// What service levels are measured by, as text.
    pub(crate) fn slis(&self) -> String {
        let mut page = Page::default();
        gauges(&mut page, &f::HEALTH_CHECK, &self.checks);
        counters(&mut page, &f::HEALTH_CHECKS, &self.checks_total);
        page.into_text()
    }

    /// Everything else, as text.
    pub(crate) fn text(&self, api: &Api) -> String {
        let mut page = Page::new(self.sources.show_hidden);
        self.requests.write(&mut page);
        self.access.write(&mut page);
        self.streams.write(&mut page);
        audits::write(&self.sources.audit, &mut page);
        self.sources.webhooks.ways.dials.write(&mut page);
        access::write_authorization(&self.sources.authorization, &mut page);
        let graph = self.sources.node_graph.iter();
        graph.for_each(|measures| access::write_node_graph(measures, &mut page));
        let encryption = self.sources.encryption.iter();
        encryption.for_each(|current| stored::write_encryption(current, &mut page));
        let tokens = &api.authentication.tokens;
        access::write_tokens(tokens.accounts.measures(), &mut page);
        if let Some(external) = &tokens.external {
            access::write_external(&external.measures, &mut page);
        }
        distributions(&mut page, &f::WATCH_LIST_DURATION, &self.watch_lists);
        gauges(&mut page, &f::DEPRECATED, &self.deprecated);
        self.write_field_validations(&mut page);
        page.single(&f::TLS_ERRORS, self.tls_errors.get());
        server::write(api, &mut page);
        api.fairness.iter().for_each(|fairness| fairness::write(fairness, &mut page));
        stored::write(&api.registry, self.sources.etcd.is_some(), &mut page);
        if let Some(measures) = &self.sources.etcd {
            etcd::write(measures, &mut page);
        }
        controllers::write(&self.sources, &api.registry, &mut page);
        self.write_features(&mut page);
        admission::write(&api.registry, &self.sources.admission, &mut page);
        let (effects, ports) = (&self.sources.effects, self.sources.node_ports);
        effects::write(&api.registry, ports, effects, &mut page);
        process::write(self.started_at_unix_seconds, &mut page);
        page.into_text()
    }

    fn write_features(&self, page: &mut Page) {
        let mut samples = page.family(&f::FEATURES);
        for (name, stage, on) in &self.sources.features {
            samples.value(&[name, stage], u8::from(*on));
        }
    }

    fn write_field_validations(&self, page: &mut Page) {
        let mut samples = page.family(&f::FIELD_VALIDATION);
        for (said, durations) in FIELD_VALIDATIONS.iter().zip(&self.field_validations) {
            let observed = durations.observed();
            if observed.count() > 0 {
                samples.distribution(&[said], &observed);
            }
        }
    }
}

fn counters<const N: usize>(page: &mut Page, family: &'static Family, series: &Series<N, Counter>) {
    let mut samples = page.family(family);
    for (labels, counter) in series.all() {
        samples.value(&labels.each_ref().map(|label| &**label), counter.get());
    }
}

fn gauges<const N: usize>(page: &mut Page, family: &'static Family, series: &Series<N, Gauge>) {
    let mut samples = page.family(family);
    for (labels, gauge) in series.all() {
        samples.value(&labels.each_ref().map(|label| &**label), gauge.get());
    }
}

fn distributions<const N: usize>(
    page: &mut Page,
    family: &'static Family,
    series: &Series<N, Distribution>,
) {
    let mut samples = page.family(family);
    for (labels, distribution) in series.all() {
        let labels = labels.each_ref().map(|label| &**label);
        samples.distribution(&labels, &distribution.observed());
    }
}
