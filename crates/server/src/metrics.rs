//! Metrics in Prometheus' text format 0.0.4, under upstream's names.
//!
//! Series are made for what is served, never for what clients make up, so their number is bounded by the
//! resources that there are.

mod family;
mod process;

use std::sync::Arc;
use std::time::Duration;

use pintle_controllers::garbage::Progress;
use pintle_meta::GroupVersionResource;
use pintle_registry::Registry;
use pintle_store::Revision;

pub(crate) use family::{Counter, Gauge};
use family::{Family, Histogram, label};

use crate::api::Api;
use crate::limits::Limits;
use crate::request_info::RequestInfo;
use crate::version;

/// Everything that is counted.
pub(crate) struct Metrics {
    requests: Family<Counter>,
    durations: Family<Histogram>,
    long_running: Family<Gauge>,
    watch_events: Family<Counter>,
    deprecated: Family<Gauge>,
    checks: Family<Gauge>,
    checks_total: Family<Counter>,
    pub(crate) tls_errors: Counter,
    pub(crate) started_at_unix_seconds: i64,
}

/// What the series of a request are labelled with.
#[derive(Clone)]
pub(crate) struct RequestLabels {
    /// All labels but the code, as they stand between the braces.
    text: String,
    /// The labels of long-running requests.
    long_running: Option<String>,
}

impl Metrics {
    /// Nothing has been counted yet.
    pub(crate) fn new(started_at_unix_seconds: i64) -> Self {
        Self {
            requests: Family::new(
                "apiserver_request_total",
                "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, \
                 group, version, resource, scope, component, and HTTP response code.",
            ),
            durations: Family::new(
                "apiserver_request_duration_seconds",
                "[STABLE] Response latency distribution in seconds for each verb, dry run value, \
                 group, version, resource, subresource, scope and component.",
            ),
            long_running: Family::new(
                "apiserver_longrunning_requests",
                "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, \
                 group, version, resource, scope and component.",
            ),
            watch_events: Family::new(
                "apiserver_watch_events_total",
                "[ALPHA] Number of events sent in watch clients",
            ),
            deprecated: Family::new(
                "apiserver_requested_deprecated_apis",
                "[STABLE] Gauge of deprecated APIs that have been requested, broken out by API \
                 group, version, resource, subresource, and removed_release.",
            ),
            checks: Family::new(
                "kubernetes_healthcheck",
                "[STABLE] This metric records the result of a single healthcheck.",
            ),
            checks_total: Family::new(
                "kubernetes_healthchecks_total",
                "[STABLE] This metric records the results of all healthcheck.",
            ),
            tls_errors: Counter::default(),
            started_at_unix_seconds,
        }
    }

    /// Counts a request that has been answered.
    pub(crate) fn answered(&self, labels: &RequestLabels, code: u16, took: Duration) {
        let mut text = labels.text.clone();
        label(&mut text, "code", &code.to_string());
        self.requests.with(&text).add(1);
        self.durations.with(&labels.text).observe(took);
    }

    /// The gauge of a long-running request, while it runs.
    pub(crate) fn long_running(&self, labels: &RequestLabels) -> Option<Arc<Gauge>> {
        labels.long_running.as_deref().map(|text| self.long_running.with(text))
    }

    /// The counter of a resource's watch events.
    pub(crate) fn watch_events(&self, resource: &GroupVersionResource) -> Arc<Counter> {
        let mut text = String::new();
        label(&mut text, "group", &resource.group);
        label(&mut text, "version", &resource.version);
        label(&mut text, "resource", &resource.resource);
        self.watch_events.with(&text)
    }

    /// Remembers that something deprecated was asked for (DEP-14).
    pub(crate) fn deprecated(&self, resource: &GroupVersionResource, subresource: &str) {
        let mut text = String::new();
        label(&mut text, "group", &resource.group);
        label(&mut text, "removed_release", "");
        label(&mut text, "resource", &resource.resource);
        label(&mut text, "subresource", subresource);
        label(&mut text, "version", &resource.version);
        self.deprecated.with(&text).set(1);
    }

    /// Remembers how a health check went, as one of all that an endpoint makes.
    pub(crate) fn checked(&self, endpoint: &str, check: &str, passed: bool) {
        let mut text = String::with_capacity(96);
        label(&mut text, "name", check);
        let named = text.len();
        label(&mut text, "type", endpoint);
        self.checks.with(&text).set(i64::from(passed));
        text.truncate(named);
        label(&mut text, "status", if passed { "success" } else { "error" });
        label(&mut text, "type", endpoint);
        self.checks_total.with(&text).add(1);
    }

    /// What service levels are measured by, as text.
    pub(crate) fn slis(&self) -> String {
        let mut out = String::with_capacity(8 * 1024);
        self.checks.write(&mut out);
        self.checks_total.write(&mut out);
        out
    }

    /// Everything else, as text.
    pub(crate) fn text(&self, api: &Api) -> String {
        let mut out = String::with_capacity(64 * 1024);
        self.requests.write(&mut out);
        self.durations.write(&mut out);
        self.durations.write_as(SLI_NAME, SLI_HELP, without_dry_run, &mut out);
        self.long_running.write(&mut out);
        self.watch_events.write(&mut out);
        self.deprecated.write(&mut out);
        in_flight(&api.limits).write(&mut out);
        stored_objects(&api.registry).write(&mut out);
        writable(&api.registry).write(&mut out);
        for family in collector(&api.collector, api.registry.head()) {
            family.write(&mut out);
        }
        let errors = Family::<Counter>::new(
            "apiserver_tls_handshake_errors_total",
            "[ALPHA] Number of requests dropped with 'TLS handshake error from' error",
        );
        errors.with("").add(self.tls_errors.get());
        errors.write(&mut out);
        build_info().write(&mut out);
        process::write(self.started_at_unix_seconds, &mut out);
        out
    }
}

/// The durations again, under the name that service level rules read. Upstream takes the time from them
/// that webhooks took, which is theirs as well here.
const SLI_NAME: &str = "apiserver_request_sli_duration_seconds";
const SLI_HELP: &str = "[ALPHA] Response latency distribution (not counting webhook duration and \
                        priority & fairness queue wait times) in seconds for each verb, group, \
                        version, resource, subresource, scope and component.";

/// The labels of what was no dry run, without saying so: it is what they end with.
fn without_dry_run(labels: &str) -> Option<&str> {
    labels.strip_suffix(",dry_run=\"\"")
}

/// The parts that connect a client to something (upstream: `validConnectRequests`).
const CONNECTIONS: &[&str] = &["log", "exec", "portforward", "attach", "proxy"];

impl RequestLabels {
    /// Labels of a request. `served` tells whether the registry knows its resource: names that clients
    /// make up are no labels. A patch may be one that `applies`.
    pub(crate) fn new(info: &RequestInfo, served: bool, applies: bool, dry_run: bool) -> Self {
        let blank = crate::request_info::ResourceInfo::default();
        let resource = info.resource.as_ref().filter(|_| served).unwrap_or(&blank);
        let verb = match info.verb {
            _ if CONNECTIONS.contains(&resource.subresource.as_str()) => "CONNECT",
            "patch" if applies => "APPLY",
            "create" | "post" => "POST",
            "update" | "put" => "PUT",
            "get" | "head" => "GET",
            "list" => "LIST",
            "watch" => "WATCH",
            "patch" => "PATCH",
            "delete" => "DELETE",
            "deletecollection" => "DELETECOLLECTION",
            _ => "other",
        };
        let scope = if info.resource.is_none() {
            ""
        } else if resource.named || info.verb == "create" {
            "resource"
        } else if !resource.namespace.is_empty() {
            "namespace"
        } else {
            "cluster"
        };
        let common = |text: &mut String| {
            label(text, "component", "apiserver");
            label(text, "group", &resource.group);
            label(text, "resource", &resource.resource);
            label(text, "scope", scope);
            label(text, "subresource", &resource.subresource);
            label(text, "verb", verb);
            label(text, "version", &resource.version);
        };
        let mut text = String::with_capacity(192);
        common(&mut text);
        label(&mut text, "dry_run", if dry_run { "All" } else { "" });
        let long_running = info.long_running().then(|| {
            let mut text = String::with_capacity(160);
            common(&mut text);
            text
        });
        Self { text, long_running }
    }
}

fn in_flight(limits: &Limits) -> Family<Gauge> {
    let family = Family::<Gauge>::new(
        "apiserver_current_inflight_requests",
        "[STABLE] Maximal number of currently used inflight request limit of this apiserver per \
         request kind in last second.",
    );
    for (kind, count) in [("mutating", limits.mutating()), ("readOnly", limits.read_only())] {
        family.with(&format!("request_kind=\"{kind}\"")).set(i64::try_from(count).unwrap_or(0));
    }
    family
}

fn stored_objects(registry: &Registry) -> Family<Gauge> {
    let family = Family::<Gauge>::new(
        "apiserver_storage_objects",
        "[STABLE] Number of stored objects at the time of last check split by kind.",
    );
    for (collection, count) in registry.object_counts() {
        // `apps/deployments` is `deployments.apps` here.
        let name = match collection.split_once('/') {
            Some((group, resource)) => format!("{resource}.{group}"),
            None => collection.to_string(),
        };
        let mut text = String::new();
        label(&mut text, "resource", &name);
        family.with(&text).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    family
}

/// Upstream has no such metric: etcd tells of itself.
fn writable(registry: &Registry) -> Family<Gauge> {
    let family = Family::<Gauge>::new(
        "pintle_store_writable",
        "[ALPHA] Whether the store takes writes: 1, or 0 from a failure of its disk until the disk is \
         well again.",
    );
    family.with("").set(i64::from(registry.check().is_ok()));
    family
}

/// How far the garbage collector is behind, as upstream's controllers tell it of their queues: the changes
/// that it has not taken in, and the objects that it is still to look at. Nothing where it is not at work.
fn collector(progress: &Progress, head: Revision) -> Vec<Family<Gauge>> {
    let Some(unheard) = progress.unheard(head) else { return Vec::new() };
    let depth = Family::<Gauge>::new("workqueue_depth", "[ALPHA] Current depth of workqueue");
    let to_look_at = u64::try_from(progress.to_look_at()).unwrap_or(u64::MAX);
    for (name, waiting) in [
        ("garbage_collector_graph_changes", unheard),
        ("garbage_collector_attempt_to_delete", to_look_at),
    ] {
        let waiting = i64::try_from(waiting).unwrap_or(i64::MAX);
        depth.with(&format!("name=\"{name}\"")).set(waiting);
    }
    vec![depth]
}

fn build_info() -> Family<Gauge> {
    let family = Family::<Gauge>::new(
        "kubernetes_build_info",
        "[ALPHA] A metric with a constant '1' value labeled by major, minor, git version, git \
         commit, git tree state, build date, Go version, and compiler from which Kubernetes was \
         built, and platform on which it is running.",
    );
    let mut text = String::new();
    label(&mut text, "major", version::MAJOR);
    label(&mut text, "minor", version::MINOR);
    label(&mut text, "git_version", version::GIT_VERSION);
    family.with(&text).set(1);
    family
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Query;

    fn labels(method: &str, url: &str, served: bool) -> String {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let method = http::Method::from_bytes(method.as_bytes()).unwrap();
        let info = RequestInfo::parse(&method, path, &Query::parse(query)).unwrap();
        RequestLabels::new(&info, served, url.contains("fieldManager"), false).text
    }

    #[test]
    fn requests_are_labelled_like_upstream() {
        // MET-02
        assert_eq!(
            labels("GET", "/apis/apps/v1/namespaces/t/deployments?limit=5", true),
            "component=\"apiserver\",group=\"apps\",resource=\"deployments\",scope=\"namespace\",\
             subresource=\"\",verb=\"LIST\",version=\"v1\",dry_run=\"\""
        );
        assert!(
            labels("PUT", "/api/v1/namespaces/t/pods/p/status", true)
                .contains("subresource=\"status\"")
        );
        for (method, url, verb) in [
            ("PATCH", "/api/v1/namespaces/t/pods/p", "PATCH"),
            ("PATCH", "/api/v1/namespaces/t/pods/p?fieldManager=m", "APPLY"),
            ("GET", "/api/v1/namespaces/t/pods/p/log", "CONNECT"),
            ("POST", "/api/v1/namespaces/t/services/s/proxy/x", "CONNECT"),
        ] {
            assert!(labels(method, url, true).contains(&format!("verb=\"{verb}\"")), "{url}");
        }
        assert!(
            labels("POST", "/api/v1/namespaces/t/pods", true)
                .contains("scope=\"resource\",subresource=\"\",verb=\"POST\"")
        );
    }

    #[test]
    fn names_that_clients_make_up_are_no_labels() {
        let text = labels("GET", "/apis/made.up/v9/namespaces/t/things/x", false);
        assert!(!text.contains("made.up") && !text.contains("things"), "{text}");
    }

    #[test]
    fn what_is_counted_is_written() {
        let metrics = Metrics::new(0);
        let info = RequestInfo::parse(&http::Method::GET, "/healthz", &Query::default()).unwrap();
        let labels = RequestLabels::new(&info, false, false, false);
        metrics.answered(&labels, 200, Duration::from_millis(30));
        metrics.answered(&labels, 200, Duration::from_millis(1));
        let mut out = String::new();
        metrics.requests.write(&mut out);
        metrics.durations.write(&mut out);
        metrics.durations.write_as(SLI_NAME, SLI_HELP, without_dry_run, &mut out);
        for line in [
            "# TYPE apiserver_request_total counter",
            "verb=\"GET\",version=\"\",dry_run=\"\",code=\"200\"} 2",
            "# TYPE apiserver_request_duration_seconds histogram",
            ",le=\"0.005\"} 1",
            ",le=\"0.05\"} 2",
            ",le=\"+Inf\"} 2",
            "# TYPE apiserver_request_sli_duration_seconds histogram",
            "apiserver_request_sli_duration_seconds_bucket{component=\"apiserver\",group=\"\",resource=\"\",\
             scope=\"\",subresource=\"\",verb=\"GET\",version=\"\",le=\"1\"} 2",
        ] {
            assert!(out.contains(line), "{line} in {out}");
        }
    }
}
