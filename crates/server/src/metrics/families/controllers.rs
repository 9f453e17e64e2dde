//! Families of controllers, their queues, and calls to other servers.

use pintle_controllers::measures::QUEUE_BOUNDS;

use super::Stability::{Alpha, Beta};
use super::{Family, counter, families, gauge, seconds, whole};
use crate::webhooks::measures::{
    CALL_BOUNDS, CALL_SIZE_BOUNDS, CONVERSION_BOUNDS, DEFINITION_BOUNDS,
};

families! {
    QUEUE_ADDS = counter("workqueue_adds_total", Beta, &["name"],
        "How often something came up in a queue that did not wait there already.");
    QUEUE_DEPTH = gauge("workqueue_depth", Beta, &["name"],
        "Work that waits in a queue, also what is to be tried again later.");
    QUEUE_LONGEST = gauge("workqueue_longest_running_processor_seconds", Beta, &["name"],
        "How long the oldest work of a queue that is under way has taken so far.");
    QUEUE_WAITED = seconds("workqueue_queue_duration_seconds", Beta, &["name"], &QUEUE_BOUNDS,
        "How long what was due waited in a queue.");
    QUEUE_RETRIES = counter("workqueue_retries_total", Beta, &["name"],
        "How often something was to be tried again.");
    QUEUE_UNFINISHED = gauge("workqueue_unfinished_work_seconds", Beta, &["name"],
        "How long all work of a queue that is under way has taken so far.");
    QUEUE_WORKED = seconds("workqueue_work_duration_seconds", Beta, &["name"], &QUEUE_BOUNDS,
        "How long the work of a queue took.");
    CALLS = counter("rest_client_requests_total", Alpha, &["code", "host", "method"],
        "Requests to other servers: to webhooks.");
    CALL_RETRIES = counter("rest_client_request_retries_total", Alpha, &["code", "host", "verb"],
        "Requests to other servers that repeat one, because its answer said when.");
    CALL_DURATION = seconds("rest_client_request_duration_seconds", Alpha, &["host", "verb"], &CALL_BOUNDS,
        "How long other servers took to begin an answer.");
    CALL_SIZE = whole("rest_client_request_size_bytes", Alpha, &["host", "verb"], &CALL_SIZE_BOUNDS,
        "Bytes of the bodies of requests to other servers.");
    ANSWER_SIZE = whole("rest_client_response_size_bytes", Alpha, &["host", "verb"], &CALL_SIZE_BOUNDS,
        "Bytes of the bodies of other servers' answers.");
    CONVERSIONS = counter("apiserver_conversion_webhook_request_total", Alpha, &["failure_type", "result"],
        "Conversions that webhooks were asked for, by what came of them.");
    CONVERSION_DURATION = seconds("apiserver_conversion_webhook_duration_seconds", Alpha, &["failure_type", "result"], &CONVERSION_BOUNDS,
        "How long conversions by webhooks took, by what came of them.");
    DEFINITION_CONVERSIONS = seconds("apiserver_crd_conversion_webhook_duration_seconds", Alpha, &["crd_name", "from_version", "succeeded", "to_version"], &DEFINITION_BOUNDS,
        "How long conversions by webhooks took, by definition.");
    UNAVAILABLE = gauge("aggregator_unavailable_apiservice", Alpha, &["name"],
        "Whether an APIService is unavailable.");
    LAPSES = counter("aggregator_unavailable_apiservice_total", Alpha, &["name", "reason"],
        "How often an APIService became unavailable, by its name and the reason.");
}
