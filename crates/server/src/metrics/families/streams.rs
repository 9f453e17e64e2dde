//! What the server relays between its clients and others.

use super::Stability::Alpha;
use super::{Family, counter, families};

families! {
    LOGS = counter("kube_apiserver_pod_logs_insecure_backend_total", Alpha, &["usage"],
        "Logs of pods that were asked for, by whether the kubelet has to show who it is.");
    LOGS_OF_STRANGERS = counter("kube_apiserver_pod_logs_backend_tls_failure_total", Alpha, &[],
        "Logs of pods that were not read because the kubelet could not show who it is.");
}
