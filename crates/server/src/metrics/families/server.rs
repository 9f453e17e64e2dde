//! Families of the build, the features, traces and the process.

use super::Stability::{Alpha, Beta, Unstated};
use super::{Family, counter, families, gauge};

families! {
    BUILD_INFO = gauge("kubernetes_build_info", Beta, &["build_date", "compiler", "git_commit", "git_tree_state", "git_version", "go_version", "major", "minor", "platform"],
        "Always 1, with the build of the server as labels.");
    VERSION_INFO = gauge("version_info", Alpha, &["binary", "component", "emulation", "min_compat"],
        "Always 1, with the binary, emulated and minimum compatibility version as labels.");
    FEATURES = gauge("kubernetes_feature_enabled", Beta, &["name", "stage"],
        "1 if a feature gate is on.");
    REGISTERED = counter("registered_metrics_total", Beta, &["deprecated_version", "stability_level"],
        "Metric families of the server.");
    TRACE_SPANS = counter("pintle_trace_spans_total", Alpha, &["outcome"],
        "Spans of traced requests by outcome: exported, dropped because the queue was full, or failed at the collector.");
    CPU_SECONDS = counter("process_cpu_seconds_total", Unstated, &[],
        "Processor time of the process, in seconds.");
    START_TIME = gauge("process_start_time_seconds", Unstated, &[],
        "Start time of the process, in seconds since 1970.");
    VIRTUAL_MEMORY = gauge("process_virtual_memory_bytes", Unstated, &[],
        "Virtual memory of the process.");
    VIRTUAL_MEMORY_MAX = gauge("process_virtual_memory_max_bytes", Unstated, &[],
        "Limit of the virtual memory of the process, in bytes.");
    RESIDENT_MEMORY = gauge("process_resident_memory_bytes", Unstated, &[],
        "Resident memory of the process, in bytes.");
    OPEN_FILES = gauge("process_open_fds", Unstated, &[],
        "Open file descriptors.");
    OPEN_FILES_MAX = gauge("process_max_fds", Unstated, &[],
        "Limit of open file descriptors.");
    NETWORK_RECEIVED = counter("process_network_receive_bytes_total", Unstated, &[],
        "Bytes received over the network by all processes of this network namespace.");
    NETWORK_SENT = counter("process_network_transmit_bytes_total", Unstated, &[],
        "Bytes sent over the network by all processes of this network namespace.");
}
