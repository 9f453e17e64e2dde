//! The deprecated resources of v1.36 and their warnings (DEP-12).

use pintle_registry::Deprecation;

use crate::generated::Resource;

/// A deprecated version of resources; releases are minor numbers of Kubernetes 1.
pub(crate) struct Deprecated {
    pub group: &'static str,
    pub version: &'static str,
    /// `""` for every resource of the version.
    pub resource: &'static str,
    pub since: u32,
    /// The release that removed it.
    pub removed: Option<u32>,
    /// Empty if there is no replacement.
    pub replacement: &'static str,
}

/// A beta or alpha version, which is removed after its support period.
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

/// The deprecation of a resource.
pub(crate) fn of(row: &Resource) -> Option<Deprecation> {
    find(row).map(|found| found.deprecation(row.kind))
}

/// The row of a resource that is deprecated.
pub(crate) fn find(row: &Resource) -> Option<&'static Deprecated> {
    DEPRECATED.iter().find(|deprecated| {
        (deprecated.group, deprecated.version) == (row.group, row.version)
            && (deprecated.resource.is_empty() || deprecated.resource == row.plural)
    })
}

impl Deprecated {
    /// The warning for clients that use the kind, and the release that removes it.
    pub(crate) fn deprecation(&self, kind: &str) -> Deprecation {
        let Self { group, version, since, .. } = self;
        let slash = if group.is_empty() { "" } else { "/" };
        let mut warning = format!("{group}{slash}{version} {kind} is deprecated in v1.{since}+");
        if let Some(removed) = self.removed {
            warning.push_str(&format!(", unavailable in v1.{removed}+"));
        }
        if !self.replacement.is_empty() {
            warning.push_str("; use ");
            warning.push_str(self.replacement);
        }
        let removed_release = self.removed.map(|removed| format!("1.{removed}").into());
        Deprecation { warning: warning.into(), removed_release }
    }
}
