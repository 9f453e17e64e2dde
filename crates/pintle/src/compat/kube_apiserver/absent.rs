//! The flags of kube-apiserver v1.36 that `pintle serve` lacks: those that are ignored with a
//! warning, and those that are errors.
//!
//! Invariant: a flag that protects data or access is never ignored, because its user would believe
//! that it works. A flag that is in no list is an error, too: it is a mistake, or newer than the
//! lists.

use super::super::arguments::Flag;

/// The effect of a flag that `pintle serve` lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// The flag can be ignored: it protects nothing.
    Harmless,
    /// The flag protects data or access, so ignoring it is unsafe.
    Protects,
    /// kube-apiserver has no such flag.
    Unknown,
}

/// The effect of a flag.
pub(super) fn absence(Flag { name, value }: &Flag) -> Absence {
    let value = value.as_deref().unwrap_or("true");
    let is_harmless_so =
        |(flag, harmless): &(&str, &[&str])| flag == name && harmless.contains(&value);
    if HARMLESS.contains(&name.as_str()) {
        Absence::Harmless
    } else if PROTECTING.contains(&name.as_str()) {
        Absence::Protects
    } else if BY_VALUE.iter().any(is_harmless_so) {
        Absence::Harmless
    } else if BY_VALUE.iter().any(|(flag, _)| flag == name) {
        Absence::Protects
    } else {
        Absence::Unknown
    }
}

/// Flags that protect data or access, whatever their value.
const PROTECTING: &[&str] = &[
    // The signing key stays in another process.
    "service-account-signing-endpoint",
    "strict-transport-security-directives",
];

const TRUE: &[&str] = &["true", "True", "TRUE", "t", "T", "1"];
const FALSE: &[&str] = &["false", "False", "FALSE", "f", "F", "0"];

/// Flags that protect unless they have one of these values.
const BY_VALUE: &[(&str, &[&str])] = &[
    ("admission-control", &[""]),
    ("allow-privileged", TRUE),
    ("disable-http2-serving", FALSE),
    // Without garbage collection, objects outlive their owners. Pintle always collects them.
    ("enable-garbage-collector", TRUE),
    ("max-connection-bytes-per-sec", &["0"]),
];

/// Flags that protect nothing.
const HARMLESS: &[&str] = &[
    // The service account of a token is always looked up.
    "service-account-lookup",
    // A redirect of an extension API server is never forwarded, which is the flag's default.
    "aggregator-reject-forwarding-redirect",
    // The server connects to no peers.
    "peer-advertise-ip",
    "peer-advertise-port",
    "peer-ca-file",
    // Objects are counted without polling.
    "etcd-count-metric-poll-period",
    // An error if the objects are in etcd (`translate`).
    "etcd-servers-overrides",
    "storage-backend",
    "storage-initialization-timeout",
    "watch-cache",
    "watch-cache-sizes",
    // The server's own limit is kube-apiserver's default.
    "http2-max-streams-per-connection",
    // Deployment, logs, metrics and shutdown.
    "apiserver-count",
    "default-watch-cache-size",
    "kubelet-port",
    "kubelet-read-only-port",
    "allow-metric-labels",
    "allow-metric-labels-manifest",
    "contention-profiling",
    "coordinated-leadership-lease-duration",
    "coordinated-leadership-renew-deadline",
    "coordinated-leadership-retry-period",
    "debug-socket-path",
    "default-not-ready-toleration-seconds",
    "default-unreachable-toleration-seconds",
    "delete-collection-workers",
    "disabled-metrics",
    "enable-logs-handler",
    "endpoint-reconciler-type",
    "external-hostname",
    "goaway-chance",
    "kubernetes-service-node-port",
    "log-flush-frequency",
    "log-json-info-buffer-size",
    "log-text-info-buffer-size",
    "log-text-split-stream",
    "permit-address-sharing",
    "permit-port-sharing",
    "profiling",
    "shutdown-send-retry-after",
    "shutdown-watch-termination-grace-period",
    "vmodule",
];

#[cfg(test)]
mod tests {
    use super::super::super::arguments::flags;
    use super::super::serve;
    use super::*;

    #[test]
    fn flags_that_protect_are_recognised() {
        for (flag, expected) in [
            ("--profiling=false", Absence::Harmless),
            ("--service-account-signing-endpoint=p", Absence::Protects),
            ("--allow-privileged", Absence::Harmless),
            ("--allow-privileged=1", Absence::Harmless),
            ("--allow-privileged=false", Absence::Protects),
            ("--disable-http2-serving", Absence::Protects),
            ("--disable-http2-serving=false", Absence::Harmless),
            ("--admission-control=", Absence::Harmless),
            ("--admission-control=DenyEscalatingExec", Absence::Protects),
            ("--max-connection-bytes-per-sec=1000", Absence::Protects),
            ("--insecure-port=8080", Absence::Unknown),
            ("--service_account_signing_endpoint=p", Absence::Unknown),
        ] {
            let read = flags([flag.to_owned()]);
            assert_eq!(absence(&read[0]), expected, "{flag}");
        }
    }

    #[test]
    fn each_absent_flag_is_listed_once_and_serve_lacks_it() {
        let mut all = [HARMLESS, PROTECTING].concat();
        all.extend(BY_VALUE.iter().map(|(name, _)| *name));
        let serve = serve();
        let has = |name: &str| serve.get_arguments().any(|flag| flag.get_long() == Some(name));
        assert_eq!(all.iter().find(|name| has(name)), None);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
