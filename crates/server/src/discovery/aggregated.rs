//! Aggregated discovery, `apidiscovery.k8s.io/v2`: all groups in one document (DISC-02, DISC-05).

use bytes::Bytes;
use pintle_registry::{Resource, Subresource, Verb};
use serde::Serialize;

use super::group_version::{Kind, ResourceDiscovery, SubresourceDiscovery, VersionDiscovery};
use super::{Group, Source, Version, foreign};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupDiscoveryList<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata<'a>,
    items: Vec<GroupDiscovery<'a>>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

#[derive(Serialize)]
struct GroupDiscovery<'a> {
    metadata: Metadata<'a>,
    versions: Vec<AnyVersion<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum AnyVersion<'a> {
    Own(VersionDiscovery<&'a str>),
    Extension(&'a VersionDiscovery),
}

/// The groups of `/api` or of `/apis`.
pub(super) fn group_list(groups: &[Group<'_>]) -> Bytes {
    let items = groups.iter().map(|group| GroupDiscovery {
        metadata: Metadata { name: group.name },
        versions: group.versions.iter().filter_map(version).collect(),
    });
    let items = items.filter(|group| !group.versions.is_empty());
    let list = GroupDiscoveryList {
        kind: "APIGroupDiscoveryList",
        api_version: "apidiscovery.k8s.io/v2",
        metadata: Metadata { name: "" },
        items: items.collect(),
    };
    serde_json::to_vec(&list).expect("a struct of texts and lists has a JSON form").into()
}

/// The discovery of a version; `None` if an extension API server has not answered yet.
fn version<'a>(version: &'a Version<'a>) -> Option<AnyVersion<'a>> {
    match &version.source {
        Source::Own(resources) => Some(AnyVersion::Own(VersionDiscovery {
            version: version.name,
            resources: resources.iter().map(|resource| discovery(resource)).collect(),
            freshness: "Current",
        })),
        Source::Extension(extension) => extension.discovery.as_deref().map(AnyVersion::Extension),
    }
}

fn discovery(resource: &Resource) -> ResourceDiscovery<&str> {
    let name = &resource.resource;
    let mut subresources: Vec<_> =
        resource.subresources.iter().map(|sub| subresource(resource, sub)).collect();
    let (group, version) = if resource.is_custom() {
        (name.group.as_str(), name.version.as_str())
    } else {
        subresources.sort_by_key(|subresource| subresource.subresource);
        ("", "")
    };
    ResourceDiscovery {
        resource: &name.resource,
        response_kind: Kind { group, version, kind: &resource.kind },
        scope: if resource.namespaced() { "Namespaced" } else { "Cluster" },
        singular_resource: &resource.singular,
        verbs: resource.shown_verbs().map(Verb::as_str).collect(),
        short_names: resource.short_names.iter().map(|name| name.as_str()).collect(),
        categories: resource.categories.iter().map(|name| name.as_str()).collect(),
        subresources,
    }
}

fn subresource<'a>(
    resource: &'a Resource,
    subresource: &'a Subresource,
) -> SubresourceDiscovery<&'a str> {
    let kind = &subresource.kind;
    let (group, version) = if resource.is_custom() {
        (kind.group.as_str(), kind.version.as_str())
    } else {
        foreign(resource, kind)
    };
    SubresourceDiscovery {
        subresource: &subresource.name,
        response_kind: Kind { group, version, kind: &kind.kind },
        verbs: subresource.verbs.iter().map(|verb| verb.as_str()).collect(),
    }
}
