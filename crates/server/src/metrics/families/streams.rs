//! What the server relays between its clients and others.

use super::Stability::Alpha;
use super::{Family, counter, families};

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
}
