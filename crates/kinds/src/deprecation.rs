//! Which resources are deprecated in v1.36, and what is said of them (DEP-12).

use crate::generated::Resource;

/// A deprecated version of resources; releases are minor numbers of Kubernetes 1.
struct Deprecated {
    group: &'static str,
    version: &'static str,
    /// `""` for every resource of the version.
    resource: &'static str,
    since: u32,
    /// The release that no longer has it.
    removed: Option<u32>,
    replacement: &'static str,
}

/// A beta or alpha version, which goes when its time is up.
const fn passing(group: &'static str, version: &'static str, since: u32) -> Deprecated {
    Deprecated { group, version, resource: "", since, removed: Some(since + 3), replacement: "" }
}

const DEPRECATED: &[Deprecated] = &[
    Deprecated {
        group: "",
        version: "v1",
        resource: "componentstatuses",
        since: 19,
        removed: None,
        replacement: "",
    },
    Deprecated {
        group: "",
        version: "v1",
        resource: "endpoints",
        since: 33,
        removed: None,
        replacement: "discovery.k8s.io/v1 EndpointSlice",
    },
    passing("admissionregistration.k8s.io", "v1alpha1", 35),
    passing("certificates.k8s.io", "v1alpha1", 34),
    passing("coordination.k8s.io", "v1beta1", 36),
    passing("coordination.k8s.io", "v1alpha2", 35),
    passing("networking.k8s.io", "v1beta1", 34),
    Deprecated { resource: "devicetaintrules", ..passing("resource.k8s.io", "v1alpha3", 36) },
    passing("resource.k8s.io", "v1beta1", 35),
    Deprecated { resource: "deviceclasses", ..passing("resource.k8s.io", "v1beta2", 36) },
    Deprecated { resource: "resourceclaims", ..passing("resource.k8s.io", "v1beta2", 36) },
    Deprecated { resource: "resourceclaimtemplates", ..passing("resource.k8s.io", "v1beta2", 36) },
    Deprecated { resource: "resourceslices", ..passing("resource.k8s.io", "v1beta2", 36) },
    Deprecated {
        replacement: "storage.k8s.io/v1 VolumeAttributesClass",
        ..passing("storage.k8s.io", "v1beta1", 34)
    },
];

/// What a client that uses the resource should hear.
pub(crate) fn warning(row: &Resource) -> Option<String> {
    let found = DEPRECATED.iter().find(|deprecated| {
        (deprecated.group, deprecated.version) == (row.group, row.version)
            && (deprecated.resource.is_empty() || deprecated.resource == row.plural)
    })?;
    let slash = if row.group.is_empty() { "" } else { "/" };
    let mut text = format!(
        "{}{slash}{} {} is deprecated in v1.{}+",
        row.group, row.version, row.kind, found.since
    );
    if let Some(removed) = found.removed {
        text.push_str(&format!(", unavailable in v1.{removed}+"));
    }
    if !found.replacement.is_empty() {
        text.push_str("; use ");
        text.push_str(found.replacement);
    }
    Some(text)
}
