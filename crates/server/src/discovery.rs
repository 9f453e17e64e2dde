//! Discovery: what is served, in upstream's legacy documents and in the aggregated one.
//!
//! Built from the registry's definitions alone, kept as bytes, and built anew when the set of
//! definitions changes.

mod aggregated;
mod legacy;
mod order;

pub(crate) use legacy::api_versions;

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use pintle_meta::{GroupVersionKind, version};
use pintle_registry::{Registry, Resource};
use sha2::{Digest, Sha256, Sha512};

/// The names of its documents' types in the schema.
pub(crate) mod type_name {
    pub(crate) const VERSIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions";
    pub(crate) const GROUPS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList";
    pub(crate) const GROUP: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup";
    pub(crate) const RESOURCES: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";
    pub(crate) const AGGREGATED: &str = "io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList";
}

/// Discovery's documents, as compact JSON.
#[derive(Default)]
pub(crate) struct Discovery {
    current: ArcSwapOption<Documents>,
}

/// The documents of one set of definitions.
pub(crate) struct Documents {
    /// Which set it is.
    number: u64,
    /// `/apis`
    pub(crate) groups: Bytes,
    /// `/apis/G`, by group.
    group: Vec<(String, Bytes)>,
    /// `/api/v1` and `/apis/G/V`, by group and version.
    version: Vec<((String, String), Bytes)>,
    /// Aggregated discovery of `/api`.
    pub(crate) aggregated_core: Tagged,
    /// Aggregated discovery of `/apis`.
    pub(crate) aggregated_groups: Tagged,
}

/// A document with its entity tag.
pub(crate) struct Tagged {
    pub(crate) json: Bytes,
    /// In quotes, as the header has it.
    pub(crate) etag: String,
}

/// A group with its versions, in the order in which they are shown.
struct Group<'a> {
    name: &'a str,
    versions: Vec<Version<'a>>,
}

/// The document of a group of which nothing is served here, given its versions.
pub(crate) fn group_elsewhere(name: &str, versions: &[&str]) -> Bytes {
    let versions = versions.iter().map(|name| Version { name, resources: Vec::new() }).collect();
    legacy::group(&Group { name, versions })
}

impl<'a> Group<'a> {
    /// What upstream's priorities go by.
    fn priority_key(&self) -> (&'a str, &'a str) {
        (self.name, self.versions.first().map_or("", |version| version.name))
    }
}

/// The resources of a group in one version, by name.
struct Version<'a> {
    name: &'a str,
    resources: Vec<&'a Resource>,
}

impl Discovery {
    /// Whether the documents of what is served now are built.
    pub(crate) fn is_current(&self, registry: &Registry) -> bool {
        let number = registry.resources().0;
        self.current.load().as_ref().is_some_and(|documents| documents.number == number)
    }

    /// The documents of what is served now.
    pub(crate) fn documents(&self, registry: &Registry) -> Arc<Documents> {
        let (number, resources) = registry.resources();
        if let Some(documents) = self.current.load_full().filter(|d| d.number == number) {
            return documents;
        }
        let documents = Arc::new(Documents::build(number, &resources));
        self.current.store(Some(documents.clone()));
        documents
    }
}

impl Documents {
    fn build(number: u64, resources: &[Arc<Resource>]) -> Self {
        let groups = groups(resources);
        let (core, named): (Vec<_>, Vec<_>) = groups.into_iter().partition(|g| g.name.is_empty());
        let all = || core.iter().chain(&named);
        let version = all().flat_map(|group| {
            group.versions.iter().map(|version| {
                let key = (group.name.to_owned(), version.name.to_owned());
                (key, legacy::resource_list(group, version))
            })
        });
        Self {
            number,
            groups: legacy::group_list(&named),
            group: named.iter().map(|g| (g.name.to_owned(), legacy::group(g))).collect(),
            version: version.collect(),
            aggregated_core: Tagged::new(aggregated::group_list(&core)),
            aggregated_groups: Tagged::new(aggregated::group_list(&named)),
        }
    }

    /// `/apis/G`
    pub(crate) fn group(&self, name: &str) -> Option<Bytes> {
        self.group.iter().find(|(known, _)| known == name).map(|(_, bytes)| bytes.clone())
    }

    /// `/api/v1` or `/apis/G/V`
    pub(crate) fn version(&self, group: &str, version: &str) -> Option<Bytes> {
        let known = self.version.iter().find(|((g, v), _)| g == group && v == version);
        known.map(|(_, bytes)| bytes.clone())
    }

    /// Every path of discovery, for `/`.
    pub(crate) fn paths(&self) -> impl Iterator<Item = String> + '_ {
        let versions = self.version.iter().map(|((group, version), _)| match group.as_str() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        });
        let groups = self.group.iter().map(|(group, _)| format!("/apis/{group}"));
        ["/api".to_owned(), "/apis".to_owned()].into_iter().chain(groups).chain(versions)
    }
}

impl Tagged {
    /// Tags a document with the hash that upstream uses (DISC-03).
    fn new(json: Bytes) -> Self {
        let hash: String = Sha512::digest(&json).iter().map(|byte| format!("{byte:02X}")).collect();
        Self { json, etag: format!("\"{hash}\"") }
    }
}

/// Resources by group and version, in the order in which discovery shows them.
fn groups(resources: &[Arc<Resource>]) -> Vec<Group<'_>> {
    let mut sorted: Vec<&Resource> = resources.iter().map(|resource| &**resource).collect();
    sorted.sort_by(|a, b| a.resource.cmp(&b.resource));
    let same_group = |a: &&Resource, b: &&Resource| a.resource.group == b.resource.group;
    let same_version = |a: &&Resource, b: &&Resource| a.resource.version == b.resource.version;
    let groups = sorted.chunk_by(same_group).map(|of_group| {
        let versions = of_group.chunk_by(same_version).map(|resources| Version {
            name: &resources[0].resource.version,
            resources: resources.to_vec(),
        });
        let mut versions: Vec<_> = versions.collect();
        versions.sort_by(|a, b| version::cmp(a.name, b.name));
        Group { name: &of_group[0].resource.group, versions }
    });
    let mut groups: Vec<_> = groups.collect();
    groups.sort_by(|a, b| order::groups(a.priority_key(), b.priority_key()));
    groups
}

/// Group and version of a subresource's kind, where they are not those of the resource.
fn foreign<'a>(resource: &Resource, kind: &'a GroupVersionKind) -> (&'a str, &'a str) {
    let own = &resource.resource;
    if own.group == kind.group && own.version == kind.version {
        ("", "")
    } else {
        (&kind.group, &kind.version)
    }
}

/// `storageVersionHash` of a kind (DISC-07).
fn storage_version_hash(kind: &GroupVersionKind) -> String {
    let text = format!("{}/{}/{}", kind.group, kind.version, kind.kind);
    STANDARD.encode(&Sha256::digest(text)[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_versions_are_hashed_like_upstream() {
        // DISC-07
        assert_eq!(storage_version_hash(&GroupVersionKind::new("", "v1", "Pod")), "xPOwRZ+Yhw8=");
    }

    #[test]
    fn tags_are_quoted_hashes_in_upper_case() {
        let tag = Tagged::new(Bytes::from_static(b"{}")).etag;
        assert_eq!(tag.len(), 128 + 2);
        assert!(tag.starts_with("\"27C74670ADB75075"), "{tag}");
    }
}
