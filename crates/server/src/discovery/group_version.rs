//! The discovery of one group version, as `apidiscovery.k8s.io/v2` has it. Texts are `String` where
//! the document of an extension API server was read, and borrowed from definitions where one is
//! written. Unknown members are ignored, and a `null` is read as the default, as Go does.

use serde::{Deserialize, Deserializer, Serialize};

/// A version of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[serde(bound(deserialize = "T: Default + Deserialize<'de>"))]
pub(crate) struct VersionDiscovery<T = String> {
    #[serde(deserialize_with = "or_none")]
    pub(crate) version: T,
    #[serde(deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<ResourceDiscovery<T>>,
    #[serde(deserialize_with = "or_none")]
    pub(crate) freshness: T,
}

/// A resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[serde(bound(deserialize = "T: Default + Deserialize<'de>"))]
pub(crate) struct ResourceDiscovery<T = String> {
    #[serde(deserialize_with = "or_none")]
    pub(crate) resource: T,
    #[serde(deserialize_with = "or_none")]
    pub(crate) response_kind: Kind<T>,
    #[serde(deserialize_with = "or_none")]
    pub(crate) scope: T,
    #[serde(deserialize_with = "or_none")]
    pub(super) singular_resource: T,
    #[serde(deserialize_with = "or_none")]
    pub(crate) verbs: Vec<T>,
    #[serde(deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub(super) short_names: Vec<T>,
    #[serde(deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub(super) categories: Vec<T>,
    #[serde(deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub(super) subresources: Vec<SubresourceDiscovery<T>>,
}

/// A subresource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[serde(bound(deserialize = "T: Default + Deserialize<'de>"))]
pub(crate) struct SubresourceDiscovery<T = String> {
    #[serde(deserialize_with = "or_none")]
    pub(super) subresource: T,
    #[serde(deserialize_with = "or_none")]
    pub(super) response_kind: Kind<T>,
    #[serde(deserialize_with = "or_none")]
    pub(super) verbs: Vec<T>,
}

/// A kind. As in upstream, group and version are empty if they are the list's, except for kinds of
/// definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[serde(bound(deserialize = "T: Default + Deserialize<'de>"))]
pub(crate) struct Kind<T = String> {
    #[serde(deserialize_with = "or_none")]
    pub(super) group: T,
    #[serde(deserialize_with = "or_none")]
    pub(super) version: T,
    #[serde(deserialize_with = "or_none")]
    pub(crate) kind: T,
}

/// Reads `null` as the default, as Go does.
pub(super) fn or_none<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
