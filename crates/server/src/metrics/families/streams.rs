//! Families of logs and relayed streams.

use super::Stability::Alpha;
use super::{Family, counter, families, seconds};
use crate::backends::DIAL_BOUNDS;

families! {
    WEBSOCKETS = counter("apiserver_websocket_streaming_requests_total", Alpha, &["proxy_type", "subresource"],
        "Streams to pods that were asked for, by whether the kubelet speaks every kind of WebSocket itself.");
    TRANSLATED = counter("apiserver_stream_translator_requests_total", Alpha, &["code"],
        "Remote commands over WebSockets that were translated to SPDY, by what became of them.");
    TUNNELLED = counter("apiserver_stream_tunnel_requests_total", Alpha, &["code"],
        "Port-forwardings through WebSockets to kubelets that speak SPDY, by what became of them.");
    LOGS = counter("kube_apiserver_pod_logs_insecure_backend_total", Alpha, &["usage"],
        "Logs of pods that were asked for, by whether the kubelet has to show who it is.");
    LOGS_OF_STRANGERS = counter("kube_apiserver_pod_logs_backend_tls_failure_total", Alpha, &[],
        "Logs of pods that were not read because the kubelet could not show who it is.");
    DIAL_STARTS = counter("apiserver_egress_dialer_dial_start_total", Alpha, &["protocol", "transport"],
        "Connections through a proxy that were begun.");
    DIAL_DURATION = seconds("apiserver_egress_dialer_dial_duration_seconds", Alpha, &["protocol", "transport"], &DIAL_BOUNDS,
        "How long it took until connections through a proxy were there.");
    DIAL_FAILURES = counter("apiserver_egress_dialer_dial_failure_count", Alpha, &["protocol", "stage", "transport"],
        "Connections through a proxy that failed, by whether the proxy was not reached or did not reach the backend.");
}
