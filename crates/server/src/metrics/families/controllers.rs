//! Families of controllers, their queues, and calls to other servers.

use pintle_controllers::measures::QUEUE_BOUNDS;

use super::Stability::{Alpha, Beta};
use super::{Family, counter, families, gauge, seconds, whole};
use crate::webhooks::measures::{
    CALL_BOUNDS, CALL_SIZE_BOUNDS, CONVERSION_BOUNDS, DEFINITION_BOUNDS,
};

families! {
    QUEUE_ADDS = counter("workqueue_adds_total", Beta, &["name"],
        "Items added to a queue that were not in it.");
    QUEUE_DEPTH = gauge("workqueue_depth", Beta, &["name"],
        "Items in a queue, those that wait for a retry included.");
    QUEUE_LONGEST = gauge("workqueue_longest_running_processor_seconds", Beta, &["name"],
        "How long the longest running work on an item has taken so far.");
    QUEUE_WAITED = seconds("workqueue_queue_duration_seconds", Beta, &["name"], &QUEUE_BOUNDS,
        "How long items waited in a queue after they were due.");
    QUEUE_RETRIES = counter("workqueue_retries_total", Beta, &["name"],
        "Retries of items.");
    QUEUE_UNFINISHED = gauge("workqueue_unfinished_work_seconds", Beta, &["name"],
        "How long all work in progress has taken so far, in total.");
    QUEUE_WORKED = seconds("workqueue_work_duration_seconds", Beta, &["name"], &QUEUE_BOUNDS,
        "How long work on an item took.");
    CALLS = counter("rest_client_requests_total", Alpha, &["code", "host", "method"],
        "Requests to webhooks.");
    CALL_RETRIES = counter("rest_client_request_retries_total", Alpha, &["code", "host", "verb"],
        "Requests to webhooks that were repeated because the response had Retry-After.");
    CALL_DURATION = seconds("rest_client_request_duration_seconds", Alpha, &["host", "verb"], &CALL_BOUNDS,
        "How long webhooks took until the head of the response.");
    CALL_SIZE = whole("rest_client_request_size_bytes", Alpha, &["host", "verb"], &CALL_SIZE_BOUNDS,
        "Bytes of the bodies of requests to webhooks.");
    ANSWER_SIZE = whole("rest_client_response_size_bytes", Alpha, &["host", "verb"], &CALL_SIZE_BOUNDS,
        "Bytes of the bodies of responses of webhooks.");
    CONVERSIONS = counter("apiserver_conversion_webhook_request_total", Alpha, &["failure_type", "result"],
        "Conversions by webhooks, by outcome.");
    CONVERSION_DURATION = seconds("apiserver_conversion_webhook_duration_seconds", Alpha, &["failure_type", "result"], &CONVERSION_BOUNDS,
        "How long conversions by webhooks took, by outcome.");
    DEFINITION_CONVERSIONS = seconds("apiserver_crd_conversion_webhook_duration_seconds", Alpha, &["crd_name", "from_version", "succeeded", "to_version"], &DEFINITION_BOUNDS,
        "How long conversions by webhooks took, by custom resource definition.");
    WEBHOOKS_WITHOUT_SAN = counter("apiserver_webhooks_x509_missing_san_total", Alpha, &[],
        "Requests to webhooks whose certificate has no subject alternative name.");
    WEBHOOKS_WITH_SHA1 = counter("apiserver_webhooks_x509_insecure_sha1_total", Alpha, &[],
        "Requests to webhooks whose certificate has a SHA-1 signature.");
    EXTENSIONS_WITHOUT_SAN = counter("apiserver_kube_aggregator_x509_missing_san_total", Alpha, &[],
        "Requests to extension API servers whose certificate has no subject alternative name.");
    EXTENSIONS_WITH_SHA1 = counter("apiserver_kube_aggregator_x509_insecure_sha1_total", Alpha, &[],
        "Requests to extension API servers whose certificate has a SHA-1 signature.");
    UNAVAILABLE = gauge("aggregator_unavailable_apiservice", Alpha, &["name"],
        "1 if an APIService is unavailable.");
    LAPSES = counter("aggregator_unavailable_apiservice_total", Alpha, &["name", "reason"],
        "How often an APIService became unavailable, by name and reason.");
}
