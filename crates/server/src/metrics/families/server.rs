//! Families of the build, caches, and the process.

use super::Stability::{Alpha, Beta, Unsaid};
use super::{Family, counter, families, gauge};

families! {
    BUILD_INFO = gauge("kubernetes_build_info", Beta, &["build_date", "compiler", "git_commit", "git_tree_state", "git_version", "go_version", "major", "minor", "platform"],
        "1, with what the server was built from as labels.");
    VERSION_INFO = gauge("version_info", Alpha, &["binary", "component", "emulation", "min_compat"],
        "1, with the versions of Kubernetes that the server behaves as as labels.");
    FEATURES = gauge("kubernetes_feature_enabled", Beta, &["name", "stage"],
        "Whether a feature gate is on.");
    REGISTERED = counter("registered_metrics_total", Beta, &["deprecated_version", "stability_level"],
        "Families of metrics that the server has.");
    CPU_SECONDS = counter("process_cpu_seconds_total", Unsaid, &[],
        "Processor time that the process took.");
    START_TIME = gauge("process_start_time_seconds", Unsaid, &[],
        "When the process started, since 1970.");
    VIRTUAL_MEMORY = gauge("process_virtual_memory_bytes", Unsaid, &[],
        "Virtual memory of the process.");
    VIRTUAL_MEMORY_MAX = gauge("process_virtual_memory_max_bytes", Unsaid, &[],
        "How much virtual memory the process may have.");
    RESIDENT_MEMORY = gauge("process_resident_memory_bytes", Unsaid, &[],
        "Memory of the process that is in RAM.");
    OPEN_FILES = gauge("process_open_fds", Unsaid, &[],
        "File descriptors that are open.");
    OPEN_FILES_MAX = gauge("process_max_fds", Unsaid, &[],
        "How many file descriptors may be open.");
    NETWORK_RECEIVED = counter("process_network_receive_bytes_total", Unsaid, &[],
        "Bytes that came over the network, to all processes of this network namespace.");
    NETWORK_SENT = counter("process_network_transmit_bytes_total", Unsaid, &[],
        "Bytes that went over the network, from all processes of this network namespace.");
}
