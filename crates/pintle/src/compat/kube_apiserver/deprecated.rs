//! The deprecated flags of kube-apiserver v1.36, and upstream's texts for them (DEP-20).

use super::super::arguments::Flag;

const DEPRECATED: &[(&str, &str)] = &[
    (
        "admission-control",
        "Use --enable-admission-plugins or --disable-admission-plugins instead. Will be removed in a \
         future version.",
    ),
    ("apiserver-count", "apiserver-count is deprecated and will be removed in a future version."),
    (
        "audit-webhook-batch-initial-backoff",
        "Deprecated, use --audit-webhook-initial-backoff instead.",
    ),
    (
        "default-watch-cache-size",
        "watch caches are sized automatically and this flag will be removed in a future version",
    ),
    ("enable-logs-handler", "Log handler functionality is deprecated"),
    ("kubelet-port", "kubelet-port is deprecated and will be removed."),
    ("kubelet-read-only-port", "kubelet-read-only-port is deprecated and will be removed."),
];

/// Returns the warning for a flag that is deprecated.
pub(super) fn warning(flag: &Flag) -> Option<String> {
    let (name, words) = DEPRECATED.iter().find(|(name, _)| *name == flag.name)?;
    Some(format!("Flag --{name} has been deprecated, {words}"))
}

#[cfg(test)]
mod tests {
    use super::super::super::arguments::flags;
    use super::*;

    #[test]
    fn a_deprecated_flag_warns() {
        let warned = |flag: &str| warning(&flags([flag.to_owned()])[0]);
        assert_eq!(
            warned("--kubelet-port=10250").as_deref(),
            Some(
                "Flag --kubelet-port has been deprecated, kubelet-port is deprecated and will be removed."
            )
        );
        assert_eq!(warned("--profiling"), None);
    }
}
