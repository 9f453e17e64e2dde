//! The discovery of an extension API server, in either form.

use serde::Deserialize;

use super::group_version::{
    Kind, ResourceDiscovery, SubresourceDiscovery, VersionDiscovery, or_none,
};

/// The response of a server that supports aggregated discovery.
#[derive(Deserialize)]
pub(crate) struct GroupList {
    #[serde(default, deserialize_with = "or_none")]
    pub(crate) items: Vec<Group>,
}

#[derive(Deserialize)]
pub(crate) struct Group {
    #[serde(default, deserialize_with = "or_none")]
    pub(crate) metadata: Metadata,
    #[serde(default, deserialize_with = "or_none")]
    pub(crate) versions: Vec<VersionDiscovery>,
}

#[derive(Default, Deserialize)]
pub(crate) struct Metadata {
    #[serde(default, deserialize_with = "or_none")]
    pub(crate) name: String,
}

/// The response of a server without aggregated discovery: the resources of one version.
#[derive(Deserialize)]
pub(crate) struct ResourceList {
    #[serde(default, deserialize_with = "or_none")]
    resources: Vec<ApiResource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ApiResource {
    #[serde(deserialize_with = "or_none")]
    name: String,
    #[serde(deserialize_with = "or_none")]
    singular_name: String,
    #[serde(deserialize_with = "or_none")]
    namespaced: bool,
    #[serde(deserialize_with = "or_none")]
    group: String,
    #[serde(deserialize_with = "or_none")]
    version: String,
    #[serde(deserialize_with = "or_none")]
    kind: String,
    #[serde(deserialize_with = "or_none")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "or_none")]
    short_names: Vec<String>,
    #[serde(deserialize_with = "or_none")]
    categories: Vec<String>,
}

impl ResourceList {
    /// Converts the list to aggregated discovery: subresources move below their resources.
    pub(crate) fn discovery(self, version: &str) -> VersionDiscovery {
        let mut resources: Vec<ResourceDiscovery> = Vec::new();
        for listed in self.resources {
            let response_kind =
                Kind { group: listed.group, version: listed.version, kind: listed.kind };
            let scope = if listed.namespaced { "Namespaced" } else { "Cluster" }.to_owned();
            let (name, part) = listed.name.split_once('/').unwrap_or((&listed.name, ""));
            let index = resources.iter().position(|known| known.resource == name);
            let index = index.unwrap_or_else(|| {
                let resource = name.to_owned();
                resources.push(ResourceDiscovery { resource, scope, ..Default::default() });
                resources.len() - 1
            });
            let resource = &mut resources[index];
            if part.is_empty() {
                resource.response_kind = response_kind;
                resource.singular_resource = listed.singular_name;
                resource.verbs = listed.verbs;
                resource.short_names = listed.short_names;
                resource.categories = listed.categories;
            } else {
                resource.subresources.push(SubresourceDiscovery {
                    subresource: part.to_owned(),
                    response_kind,
                    verbs: listed.verbs,
                });
            }
        }
        VersionDiscovery { version: version.to_owned(), resources, freshness: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_discovery_are_equal() {
        let legacy = r#"{"kind":"APIResourceList","groupVersion":"a.io/v1","resources":[
            {"name":"things","singularName":"thing","namespaced":true,"kind":"Thing",
             "verbs":["get","list"],"shortNames":["th"],"storageVersionHash":"x"},
            {"name":"things/status","singularName":"","namespaced":true,"kind":"Thing","verbs":["get"]},
            {"name":"places","singularName":"place","namespaced":false,"kind":"Place","verbs":null}]}"#;
        let aggregated = r#"{"items":[{"metadata":{"name":"a.io","creationTimestamp":null},"versions":[
            {"version":"v1","resources":[
             {"resource":"things","responseKind":{"group":"","version":"","kind":"Thing"},
              "scope":"Namespaced","singularResource":"thing","verbs":["get","list"],"shortNames":["th"],
              "subresources":[{"subresource":"status","responseKind":{"kind":"Thing"},"verbs":["get"]}]},
             {"resource":"places","responseKind":{"kind":"Place"},"scope":"Cluster",
              "singularResource":"place","verbs":[]}]}]}]}"#;
        let list: ResourceList = serde_json::from_str(legacy).unwrap();
        let mut groups: GroupList = serde_json::from_str(aggregated).unwrap();
        assert_eq!(groups.items[0].metadata.name, "a.io");
        assert_eq!(groups.items[0].versions.remove(0), list.discovery("v1"));
    }
}
