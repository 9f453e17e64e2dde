//! The flags of kube-apiserver v1.36 that `pintle serve` lacks: which may be left out with a warning, and
//! which must not.
//!
//! A flag that protects somebody is never left out: who sets it must not believe that it works. Neither
//! is one that is in neither list: it is a mistake, or newer than the lists.

use super::super::arguments::Flag;

/// What becomes of a flag that `pintle serve` lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// Without it the server does nothing that the flag was to prevent.
    Harmless,
    /// It is to keep somebody from something, or something from being lost.
    Protects,
    /// kube-apiserver has no such flag, either.
    Unknown,
}

/// What becomes of a flag.
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

/// Who is let in, what they may do, what is recorded of it, and how secrets are kept.
const PROTECTING: &[&str] = &[
    // A key that never leaves another process.
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
    // Without a collector, objects outlive their owners; here one runs.
    ("enable-garbage-collector", TRUE),
    ("max-connection-bytes-per-sec", &["0"]),
];

/// Flags without which nobody can do more.
const HARMLESS: &[&str] = &[
    // Accounts of tokens are always looked up.
    "service-account-lookup",
    // The server connects to no aggregated servers and no peers.
    "aggregator-reject-forwarding-redirect",
    "peer-advertise-ip",
    "peer-advertise-port",
    "peer-ca-file",
    // How many objects there are is always known.
    "etcd-count-metric-poll-period",
    // Where etcd keeps the objects, it is refused before (`translate`).
    "etcd-servers-overrides",
    "storage-backend",
    "storage-initialization-timeout",
    "watch-cache",
    "watch-cache-sizes",
    // The server has a smaller limit of its own than kube-apiserver.
    "http2-max-streams-per-connection",
    // How it is made, logged, measured and ended.
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
    fn what_protects_is_told_from_what_does_not() {
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
    fn no_flag_is_absent_that_serve_has_and_none_stands_twice() {
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
