//! Metrics in Prometheus' text format 0.0.4, with upstream's names.
//!
//! Each module measures its own work in a struct ([`pintle_measure`]). This module reads these
//! structs and writes them as the rows of [`families`] say; `docs/metrics.md` lists upstream's
//! metrics that are absent. Label values are served resources and configuration, never clients'
//! texts, so the number of series is bounded.

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
mod snapshots;
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
use pintle_registry::Registry;

use crate::Config;
use crate::EffectiveVersion;
use crate::audit;
use crate::authentication::{Tokens, impersonation};
use crate::authorization::{self, GraphMeasures};
use crate::encryption;
use crate::fairness::Fairness;
use crate::limits::Limits;
use crate::respond::Runs;
use crate::snapshots::Snapshots;
use crate::traces;
use crate::webhooks::Webhooks;
use access::Access;
use families as f;
use family::{Family, Page};
use requests::Requests;
pub(crate) use requests::{ResourceRequests, Route, Served};
pub(crate) use route::{Key, VerbLabel, WriteVerb};
use streams::Streams;

/// The measures of other crates, and the configuration that metrics show.
pub(crate) struct Sources {
    /// The garbage collector's progress.
    collector: Arc<Progress>,
    queues: Arc<Queues>,
    lapses: Arc<Lapses>,
    webhooks: Arc<Webhooks>,
    admission: Arc<Measures>,
    /// The measures of requests to etcd, if etcd is the store.
    etcd: Option<Arc<pintle_etcd::Measures>>,
    effects: Arc<pintle_effects::Measures>,
    node_ports: PortRange,
    /// Measures of authorizers.
    authorization: Arc<authorization::Measures>,
    /// Measures of the node graph, if it exists.
    node_graph: Option<Arc<GraphMeasures>>,
    /// The encryption configuration, if values are encrypted.
    pub(crate) encryption: Option<Arc<encryption::Current>>,
    audit: Arc<audit::Measures>,
    /// Each feature gate with its stage and setting.
    features: Vec<(&'static str, &'static str, bool)>,
    /// True to show families that upstream hides as deprecated ([`Config`]).
    show_hidden: bool,
}

/// The measures that `server.rs` collects at start.
pub(crate) struct Measured {
    pub(crate) admission: Arc<Measures>,
    pub(crate) effects: Arc<pintle_effects::Measures>,
    pub(crate) authorization: Arc<authorization::Measures>,
    pub(crate) node_graph: Option<Arc<GraphMeasures>>,
    /// The encryption configuration, if values are encrypted.
    pub(crate) encryption: Option<Arc<encryption::Current>>,
    pub(crate) audit: Arc<audit::Measures>,
}

impl Sources {
    /// Collects the sources of a server.
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
            features: config.feature_gates.all(),
            show_hidden: config.show_hidden_metrics,
        }
    }
}

/// The parts of a server whose state is read when `/metrics` is written.
pub(crate) struct Live<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) tokens: &'a Tokens,
    pub(crate) limits: &'a Limits,
    /// `None` where priority and fairness are off.
    pub(crate) fairness: Option<&'a Fairness>,
    pub(crate) snapshots: &'a Snapshots,
    /// Compressed parts of lists.
    pub(crate) runs: &'a Runs,
    /// `None` where no traces are exported.
    pub(crate) traces: Option<&'a traces::Measures>,
    /// The release that the server acts as.
    pub(crate) version: EffectiveVersion,
}

/// The server's own measures.
pub(crate) struct Metrics {
    pub(crate) requests: Requests,
    pub(crate) access: Access,
    pub(crate) impersonation: impersonation::Measures,
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

/// The values of the label `field_validation`. The last one stands for every invalid value.
const FIELD_VALIDATIONS: [&str; 4] = ["Ignore", "Strict", "Warn", "invalid"];

impl Metrics {
    /// Returns measures with all counts at zero.
    pub(crate) fn new(started_at_unix_seconds: i64, sources: Sources) -> Self {
        Self {
            requests: Requests::new(),
            access: Access::new(),
            impersonation: impersonation::Measures::default(),
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

    /// Observes the duration of a request with `fieldValidation`.
    pub(crate) fn field_validation(&self, value: &str, took: Duration) {
        let known = FIELD_VALIDATIONS.iter().position(|known| *known == value);
        self.field_validations[known.unwrap_or(FIELD_VALIDATIONS.len() - 1)].took(took);
    }

    /// Observes the time until a watch's initial events were sent.
    pub(crate) fn watch_list(&self, resource: &GroupVersionResource, scope: &str, took: Duration) {
        let labels = [&*resource.group, &*resource.resource, scope, &*resource.version];
        self.watch_lists.with(labels).took(took);
    }

    /// Records a request for a deprecated version (DEP-14).
    pub(crate) fn deprecated(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
        removed_release: &str,
    ) {
        let GroupVersionResource { group, version, resource } = resource;
        self.deprecated.with([group, removed_release, resource, subresource, version]).set(1);
    }

    /// Records the outcome of a health check of an endpoint.
    pub(crate) fn checked(&self, endpoint: &str, check: &str, passed: bool) {
        self.checks.with([check, endpoint]).set(i64::from(passed));
        let status = if passed { "success" } else { "error" };
        self.checks_total.with([check, status, endpoint]).add(1);
    }

    /// Writes `/metrics/slis`.
    pub(crate) fn slis(&self) -> String {
        let mut page = Page::default();
        gauges(&mut page, &f::HEALTH_CHECK, &self.checks);
        counters(&mut page, &f::HEALTH_CHECKS, &self.checks_total);
        page.into_text()
    }

    /// Writes `/metrics`.
    pub(crate) fn text(&self, live: &Live<'_>) -> String {
        let mut page = Page::new(self.sources.show_hidden);
        self.requests.write(&mut page);
        self.access.write(&mut page);
        access::write_impersonation(&self.impersonation, &mut page);
        self.streams.write(&mut page);
        audits::write(&self.sources.audit, &mut page);
        egress::write(&self.sources.webhooks.dialers.dials, &mut page);
        access::write_authorization(&self.sources.authorization, &mut page);
        let graph = self.sources.node_graph.iter();
        graph.for_each(|measures| access::write_node_graph(measures, &mut page));
        let encryption = self.sources.encryption.iter();
        encryption.for_each(|current| stored::write_encryption(current, &mut page));
        let tokens = live.tokens;
        access::write_tokens(tokens.accounts.measures(), &mut page);
        if let Some(external) = &tokens.external {
            access::write_external(&external.measures, &mut page);
        }
        distributions(&mut page, &f::WATCH_LIST_DURATION, &self.watch_lists);
        gauges(&mut page, &f::DEPRECATED, &self.deprecated);
        self.write_field_validations(&mut page);
        page.single(&f::TLS_ERRORS, self.tls_errors.get());
        server::write(live, &mut page);
        live.fairness.iter().for_each(|fairness| fairness::write(fairness, &mut page));
        snapshots::write(live.snapshots, &mut page);
        stored::write(live.registry, self.sources.etcd.is_some(), &mut page);
        page.single(&f::COMPRESSED_BYTES, live.runs.bytes());
        if let Some(measures) = &self.sources.etcd {
            etcd::write(measures, &mut page);
        }
        controllers::write(&self.sources, live.registry, &mut page);
        self.write_features(&mut page);
        admission::write(live.registry, &self.sources.admission, &mut page);
        let (effects, ports) = (&self.sources.effects, self.sources.node_ports);
        effects::write(live.registry, ports, effects, &mut page);
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
        for (value, durations) in FIELD_VALIDATIONS.iter().zip(&self.field_validations) {
            let observed = durations.observed();
            if observed.count() > 0 {
                samples.distribution(&[value], &observed);
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
