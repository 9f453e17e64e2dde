//! The objects of the node graph, and the kinds from which it is built.

/// The kinds of objects that the graph is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Attachment,
    CertificateRequest,
    Pod,
    Slice,
    Volume,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Attachment, Self::CertificateRequest, Self::Pod, Self::Slice, Self::Volume];

    /// Group, version and resource.
    pub const fn resource(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Attachment => ("storage.k8s.io", "v1", "volumeattachments"),
            Self::CertificateRequest => {
                ("certificates.k8s.io", "v1beta1", "podcertificaterequests")
            }
            Self::Pod => ("", "v1", "pods"),
            Self::Slice => ("resource.k8s.io", "v1", "resourceslices"),
            Self::Volume => ("", "v1", "persistentvolumes"),
        }
    }

    /// The members that the graph reads.
    pub const fn members(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Attachment | Self::CertificateRequest | Self::Slice => &[&["spec", "nodeName"]],
            Self::Pod => &[
                &["metadata", "annotations"],
                &["spec", "containers"],
                &["spec", "ephemeralContainers"],
                &["spec", "imagePullSecrets"],
                &["spec", "initContainers"],
                &["spec", "nodeName"],
                &["spec", "resourceClaims"],
                &["spec", "serviceAccountName"],
                &["spec", "volumes"],
                &["status", "extendedResourceClaimStatus"],
                &["status", "resourceClaimStatuses"],
            ],
            Self::Volume => &[&["spec"]],
        }
    }

    pub(super) const fn sort(self) -> Sort {
        match self {
            Self::Attachment => Sort::Attachment,
            Self::CertificateRequest => Sort::CertificateRequest,
            Self::Pod => Sort::Pod,
            Self::Slice => Sort::Slice,
            Self::Volume => Sort::Volume,
        }
    }
}

/// The kind of an object in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sort {
    Attachment,
    CertificateRequest,
    Claim,
    ConfigMap,
    Node,
    Pod,
    ResourceClaim,
    Secret,
    ServiceAccount,
    Slice,
    Volume,
}

/// An object of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    pub(super) sort: Sort,
    /// `namespace/name`; of objects of the cluster `/name`.
    item: Box<str>,
}

impl Object {
    pub(super) fn new(sort: Sort, namespace: &str, name: &str) -> Self {
        Self { sort, item: [namespace, "/", name].concat().into() }
    }

    pub(super) fn of(kind: Kind, namespace: &str, name: &str) -> Self {
        Self::new(kind.sort(), namespace, name)
    }
}
