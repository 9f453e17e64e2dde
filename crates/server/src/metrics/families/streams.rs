//! Families of logs and relayed streams.

use super::Stability::Alpha;
use super::{Family, counter, families, seconds};
use crate::backends::DIAL_BOUNDS;

families! {
    WEBSOCKETS = counter("apiserver_websocket_streaming_requests_total", Alpha, &["proxy_type", "subresource"],
        "Streaming requests to pods, by whether the kubelet supports WebSockets itself.");
    TRANSLATED = counter("apiserver_stream_translator_requests_total", Alpha, &["code"],
        "Remote commands over WebSockets that were translated to SPDY, by status code.");
    TUNNELLED = counter("apiserver_stream_tunnel_requests_total", Alpha, &["code"],
        "Port-forwarding requests that were tunnelled through WebSockets to SPDY, by status code.");
    LOGS = counter("kube_apiserver_pod_logs_insecure_backend_total", Alpha, &["usage"],
        "Requests for pod logs, by whether the kubelet's certificate is verified.");
    LOGS_UNTRUSTED = counter("kube_apiserver_pod_logs_backend_tls_failure_total", Alpha, &[],
        "Requests for pod logs that failed because the kubelet's certificate is not trusted.");
    DIAL_STARTS = counter("apiserver_egress_dialer_dial_start_total", Alpha, &["protocol", "transport"],
        "Started connections through an egress proxy.");
    DIAL_DURATION = seconds("apiserver_egress_dialer_dial_duration_seconds", Alpha, &["protocol", "transport"], &DIAL_BOUNDS,
        "How long connections through an egress proxy took to establish.");
    DIAL_FAILURES = counter("apiserver_egress_dialer_dial_failure_count", Alpha, &["protocol", "stage", "transport"],
        "Failed connections through an egress proxy, by stage: to the proxy, or from it to the backend.");
}
