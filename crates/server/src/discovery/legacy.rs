//! Legacy discovery: APIGroupList, APIGroup, APIResourceList (DISC-01).

use bytes::Bytes;
use pintle_registry::{Resource, Subresource, Verb};
use serde::Serialize;

use super::{Group, foreign, storage_version_hash};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiVersions<'a> {
    kind: &'static str,
    versions: &'a [&'a str],
    #[serde(rename = "serverAddressByClientCIDRs")]
    server_addresses: [ServerAddress<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerAddress<'a> {
    #[serde(rename = "clientCIDR")]
    client_cidr: &'static str,
    server_address: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiGroupList<'a> {
    kind: &'static str,
    api_version: &'static str,
    groups: Vec<ApiGroup<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiGroup<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    name: &'a str,
    versions: Vec<GroupVersion<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preferred_version: Option<GroupVersion<'a>>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion<'a> {
    group_version: String,
    version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResourceList<'a> {
    kind: &'static str,
    /// Upstream leaves it out for the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<ApiResource<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResource<'a> {
    name: String,
    singular_name: &'a str,
    namespaced: bool,
    /// Set only if they are not the list's.
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    kind: &'a str,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<&'a str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    storage_version_hash: String,
}

/// `/api`. `address` is the server's address for clients.
pub(crate) fn api_versions(address: &str) -> Bytes {
    let server_addresses = [ServerAddress { client_cidr: "0.0.0.0/0", server_address: address }];
    json(&ApiVersions { kind: "APIVersions", versions: &["v1"], server_addresses })
}

/// `/apis`
pub(super) fn group_list(groups: &[Group<'_>]) -> Bytes {
    let groups = groups.iter().map(|group| api_group(group, false)).collect();
    json(&ApiGroupList { kind: "APIGroupList", api_version: "v1", groups })
}

/// `/apis/G`
pub(super) fn group(group: &Group<'_>) -> Bytes {
    json(&api_group(group, true))
}

/// `/api/v1` and `/apis/G/V`
pub(super) fn resource_list(group: &str, version: &str, resources: &[&Resource]) -> Bytes {
    let mut by_name: Vec<_> = resources.iter().collect();
    by_name.sort_by_key(|resource| resource.resource.resource.as_str());
    let mut resources = Vec::new();
    for resource in by_name {
        resources.push(api_resource(resource));
        let parts = resource.subresources.iter().map(|sub| api_subresource(resource, sub));
        let mut parts: Vec<_> = parts.collect();
        // Subresources of custom resources keep the definition's order: status, then scale.
        if !resource.typed_items {
            parts.sort_by(|a, b| a.name.cmp(&b.name));
        }
        resources.append(&mut parts);
    }
    json(&ApiResourceList {
        kind: "APIResourceList",
        api_version: (!group.is_empty()).then_some("v1"),
        group_version: group_version(group, version),
        resources,
    })
}

fn api_group<'a>(group: &Group<'a>, alone: bool) -> ApiGroup<'a> {
    let versions: Vec<_> = group
        .versions
        .iter()
        .map(|version| GroupVersion {
            group_version: group_version(group.name, version.name),
            version: version.name,
        })
        .collect();
    ApiGroup {
        kind: alone.then_some("APIGroup"),
        api_version: alone.then_some("v1"),
        name: group.name,
        preferred_version: versions.first().cloned(),
        versions,
    }
}

fn api_resource(resource: &Resource) -> ApiResource<'_> {
    let hash = resource.storage.as_ref().map(|_| storage_version_hash(&resource.storage_kind));
    ApiResource {
        name: resource.resource.resource.to_string(),
        singular_name: &resource.singular,
        namespaced: resource.namespaced(),
        group: "",
        version: "",
        kind: &resource.kind,
        verbs: resource.shown_verbs().map(Verb::as_str).collect(),
        short_names: resource.short_names.iter().map(|name| name.as_str()).collect(),
        categories: resource.categories.iter().map(|name| name.as_str()).collect(),
        storage_version_hash: hash.unwrap_or_default(),
    }
}

fn api_subresource<'a>(resource: &'a Resource, sub: &'a Subresource) -> ApiResource<'a> {
    let (group, version) = foreign(resource, &sub.kind);
    ApiResource {
        name: format!("{}/{}", resource.resource.resource, sub.name),
        singular_name: "",
        namespaced: resource.namespaced(),
        group,
        version,
        kind: &sub.kind.kind,
        verbs: sub.verbs.iter().map(|verb| verb.as_str()).collect(),
        short_names: Vec::new(),
        categories: Vec::new(),
        storage_version_hash: String::new(),
    }
}

fn group_version(group: &str, version: &str) -> String {
    pintle_meta::GroupVersion::new(group, version).to_string()
}

fn json(document: &impl Serialize) -> Bytes {
    serde_json::to_vec(document).expect("a struct of texts and lists has a JSON form").into()
}
