//! Features that are off by default and add kinds, fields of other kinds, and RBAC rules.

/// A feature, under the name of its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Bundles of certificate authorities.
    ClusterTrustBundle,
    /// Workloads and groups of pods that are scheduled together.
    GenericWorkload,
    /// Certificates for pods.
    PodCertificateRequest,
    /// Migrations of stored objects to another version.
    StorageVersionMigrator,
}

/// The features that are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    on: [bool; Feature::ALL.len()],
}

/// The resources that a feature adds (`pkg/registry/*/rest`); other resources need no feature.
const BROUGHT: &[(&str, &str, Feature)] = &[
    ("certificates.k8s.io", "clustertrustbundles", Feature::ClusterTrustBundle),
    ("certificates.k8s.io", "podcertificaterequests", Feature::PodCertificateRequest),
    ("scheduling.k8s.io", "podgroups", Feature::GenericWorkload),
    ("scheduling.k8s.io", "workloads", Feature::GenericWorkload),
    ("storagemigration.k8s.io", "storageversionmigrations", Feature::StorageVersionMigrator),
];

impl Feature {
    /// Every feature.
    pub const ALL: [Self; 4] = [
        Self::ClusterTrustBundle,
        Self::GenericWorkload,
        Self::PodCertificateRequest,
        Self::StorageVersionMigrator,
    ];

    /// The name of its gate.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClusterTrustBundle => "ClusterTrustBundle",
            Self::GenericWorkload => "GenericWorkload",
            Self::PodCertificateRequest => "PodCertificateRequest",
            Self::StorageVersionMigrator => "StorageVersionMigrator",
        }
    }
}

impl Features {
    /// No feature is on.
    pub(crate) const NONE: Self = Self { on: [false; Feature::ALL.len()] };

    /// Whether a feature is on.
    pub const fn has(self, feature: Feature) -> bool {
        self.on[feature as usize]
    }

    /// True if the gate of this name is one of these features and is on.
    pub(crate) fn has_named(self, name: &str) -> bool {
        Feature::ALL.into_iter().any(|feature| feature.name() == name && self.has(feature))
    }

    /// True if the resource needs no feature or its feature is on.
    pub(crate) fn bring(self, group: &str, resource: &str) -> bool {
        let row = BROUGHT.iter().find(|row| (row.0, row.1) == (group, resource));
        row.is_none_or(|row| self.has(row.2))
    }
}

impl FromIterator<Feature> for Features {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Self {
        let mut all = Self::default();
        features.into_iter().for_each(|feature| all.on[feature as usize] = true);
        all
    }
}
