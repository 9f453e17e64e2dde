//! Families of requests and responses.

use pintle_measure::nanoseconds;

use super::Stability::{Alpha, Beta, Stable};
use super::{Family, counter, doubling, families, gauge, seconds, whole};

/// The labels of a route.
const ROUTE: &[&str] =
    &["component", "group", "resource", "scope", "subresource", "verb", "version"];
const ROUTE_AND_DRY_RUN: &[&str] =
    &["component", "dry_run", "group", "resource", "scope", "subresource", "verb", "version"];
const ROUTE_AND_CODE: &[&str] =
    &["code", "component", "group", "resource", "scope", "subresource", "verb", "version"];
const ALL_LABELS: &[&str] = &[
    "code",
    "component",
    "dry_run",
    "group",
    "resource",
    "scope",
    "subresource",
    "verb",
    "version",
];
const RESOURCE: &[&str] = &["group", "resource", "version"];

pub(crate) static DURATION_BOUNDS: [u64; 23] = nanoseconds([
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
]);
pub(crate) static SLI_BOUNDS: [u64; 21] = nanoseconds([
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0,
    30.0, 45.0, 60.0,
]);
pub(crate) static WATCH_LIST_BOUNDS: [u64; 17] = nanoseconds([
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
]);
pub(crate) static RESPONSE_BOUNDS: [u64; 7] =
    [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
pub(crate) static EVENT_BOUNDS: [u64; 8] = doubling(1024);
pub(crate) static BODY_BOUNDS: [u64; 31] = body_bounds();

/// From 50,000 bytes in steps of 100,000.
const fn body_bounds() -> [u64; 31] {
    let mut bounds = [50_000; 31];
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = bounds[at - 1] + 100_000;
        at += 1;
    }
    bounds
}

families! {
    REQUESTS = counter("apiserver_request_total", Stable, ALL_LABELS,
        "Requests by verb, resource and status code.");
    REQUEST_DURATION = seconds("apiserver_request_duration_seconds", Stable, ROUTE_AND_DRY_RUN, &DURATION_BOUNDS,
        "How long requests took.");
    REQUEST_SLI_DURATION = seconds("apiserver_request_sli_duration_seconds", Alpha, ROUTE, &SLI_BOUNDS,
        "How long requests took, without the time of webhooks. Watches and dry runs are excluded.");
    REQUEST_SLO_DURATION = seconds("apiserver_request_slo_duration_seconds", Alpha, ROUTE, &SLI_BOUNDS,
        "(Deprecated since 1.27.0) The same as apiserver_request_sli_duration_seconds.");
    RESPONSE_SIZES = whole("apiserver_response_sizes", Stable, ROUTE, &RESPONSE_BOUNDS,
        "Bytes of the response bodies of read requests.");
    LONG_RUNNING = gauge("apiserver_longrunning_requests", Stable, ROUTE,
        "Open watches, logs, streams and proxied requests.");
    TERMINATIONS = counter("apiserver_request_terminations_total", Alpha, ROUTE_AND_CODE,
        "Requests that the server ended to protect itself: 429 when overloaded, 504 after the timeout.");
    ABORTS = counter("apiserver_request_aborts_total", Alpha, &["group", "resource", "scope", "subresource", "verb", "version"],
        "Requests whose response was aborted because the client did not read it in time.");
    BODY_SIZES = whole("apiserver_request_body_size_bytes", Alpha, &["group", "resource", "verb"], &BODY_BOUNDS,
        "Bytes of the bodies of requests.");
    FIELD_VALIDATION = seconds("field_validation_request_duration_seconds", Alpha, &["field_validation"], &SLI_BOUNDS,
        "How long requests took, by fieldValidation.");
    IN_FLIGHT = gauge("apiserver_current_inflight_requests", Stable, &["request_kind"],
        "Requests in flight, without long-running ones.");
    WATCH_EVENTS = counter("apiserver_watch_events_total", Alpha, RESOURCE,
        "Events sent to watches.");
    WATCH_EVENT_SIZES = whole("apiserver_watch_events_sizes", Alpha, RESOURCE, &EVENT_BOUNDS,
        "Bytes of the events sent to watches.");
    WATCH_LIST_DURATION = seconds("apiserver_watch_list_duration_seconds", Beta, &["group", "resource", "scope", "version"], &WATCH_LIST_BOUNDS,
        "How long the initial events of streaming lists took.");
    DEPRECATED = gauge("apiserver_requested_deprecated_apis", Stable, &["group", "removed_release", "resource", "subresource", "version"],
        "Deprecated APIs that were requested.");
    TLS_ERRORS = counter("apiserver_tls_handshake_errors_total", Alpha, &[],
        "Failed TLS handshakes.");
    HEALTH_CHECK = gauge("kubernetes_healthcheck", Stable, &["name", "type"],
        "1 if a health check passed the last time.");
    HEALTH_CHECKS = counter("kubernetes_healthchecks_total", Stable, &["name", "status", "type"],
        "Health checks, by status.");
}
