//! Discovery documents, legacy and aggregated.
//!
//! The documents are built from the registry's definitions and from the discovery of extension API
//! servers, cached as bytes, and rebuilt when either changes. If a group version has an extension
//! API server, this server's own definitions of it are not listed.

mod aggregated;
mod extension;
mod group_version;
mod legacy;
mod order;

pub(crate) use extension::{GroupList, ResourceList};
pub(crate) use group_version::{ResourceDiscovery, VersionDiscovery};
pub(crate) use legacy::api_versions;

use std::cmp::Reverse;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use pintle_meta::{GroupVersionKind, version};
use pintle_registry::{Registry, Resource};
use pintle_value::Str;
use sha2::{Digest, Sha256, Sha512};

/// The schema's names of the documents' types.
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

/// The documents of one generation of definitions and extensions.
pub(crate) struct Documents {
    /// The numbers of these generations.
    numbers: (u64, u64),
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
    /// The quoted value of the header `ETag`.
    pub(crate) etag: String,
}

/// A group with its versions, in discovery's order.
struct Group<'a> {
    name: &'a str,
    versions: Vec<Version<'a>>,
}

/// A group version that an extension API server serves.
pub(crate) struct Extension {
    pub(crate) group: Str,
    pub(crate) version: Str,
    pub(crate) group_priority: i64,
    pub(crate) version_priority: i64,
    /// Its discovery; `None` until it has been fetched.
    pub(crate) discovery: Option<Arc<VersionDiscovery>>,
}

/// All group versions of extension API servers; the number grows with each change.
pub(crate) struct ExtensionSet {
    pub(crate) number: u64,
    pub(crate) all: Vec<Extension>,
}

impl Group<'_> {
    /// The group's sort key: the highest priority of its versions.
    fn priority(&self) -> i64 {
        let of = |version: &Version<'_>| match &version.source {
            Source::Own(_) => order::group_priority(self.name, version.name),
            Source::Extension(extension) => extension.group_priority,
        };
        self.versions.iter().map(of).max().unwrap_or_default()
    }
}

/// A group's version.
struct Version<'a> {
    name: &'a str,
    source: Source<'a>,
}

/// The server of a version.
enum Source<'a> {
    /// This server, with these resources sorted by name.
    Own(Vec<&'a Resource>),
    /// An extension API server.
    Extension(&'a Extension),
}

impl Discovery {
    /// Whether the documents of the current definitions are built.
    pub(crate) fn is_current(&self, registry: &Registry, extensions: u64) -> bool {
        let numbers = (registry.resources().0, extensions);
        self.current.load().as_ref().is_some_and(|documents| documents.numbers == numbers)
    }

    /// The documents of the current definitions, built if need be.
    pub(crate) fn documents(
        &self,
        registry: &Registry,
        extensions: impl FnOnce() -> ExtensionSet,
        number: u64,
    ) -> Arc<Documents> {
        let (definitions, resources) = registry.resources();
        let numbers = (definitions, number);
        if let Some(documents) = self.current.load_full().filter(|d| d.numbers == numbers) {
            return documents;
        }
        let extensions = extensions();
        let numbers = (definitions, extensions.number);
        let documents = Arc::new(Documents::build(numbers, &resources, &extensions.all));
        self.current.store(Some(documents.clone()));
        documents
    }
}

impl Documents {
    fn build(numbers: (u64, u64), resources: &[Arc<Resource>], extensions: &[Extension]) -> Self {
        let groups = groups(resources, extensions);
        let (core, named): (Vec<_>, Vec<_>) = groups.into_iter().partition(|g| g.name.is_empty());
        let all = || core.iter().chain(&named);
        let version = all().flat_map(|group| {
            group.versions.iter().filter_map(|version| {
                let Source::Own(resources) = &version.source else { return None };
                let key = (group.name.to_owned(), version.name.to_owned());
                Some((key, legacy::resource_list(group.name, version.name, resources)))
            })
        });
        Self {
            numbers,
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

    /// The paths of this server's own discovery documents, for `/`.
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

/// Groups the resources and the extensions, in discovery's order.
fn groups<'a>(resources: &'a [Arc<Resource>], extensions: &'a [Extension]) -> Vec<Group<'a>> {
    let mut sorted: Vec<&Resource> = resources.iter().map(|resource| &**resource).collect();
    sorted.sort_by(|a, b| a.resource.cmp(&b.resource));
    let same_group = |a: &&Resource, b: &&Resource| a.resource.group == b.resource.group;
    let same_version = |a: &&Resource, b: &&Resource| a.resource.version == b.resource.version;
    let groups = sorted.chunk_by(same_group).map(|of_group| {
        let versions = of_group.chunk_by(same_version).map(|resources| Version {
            name: &resources[0].resource.version,
            source: Source::Own(resources.to_vec()),
        });
        let mut versions: Vec<_> = versions.collect();
        versions.sort_by(|a, b| version::cmp(a.name, b.name));
        Group { name: &of_group[0].resource.group, versions }
    });
    let mut groups: Vec<_> = groups.collect();
    extensions.iter().for_each(|extension| add(&mut groups, extension));
    groups.sort_by_cached_key(|group| (Reverse(group.priority()), group.name));
    groups
}

/// Adds an extension's version; it replaces a version of this server.
fn add<'a>(groups: &mut Vec<Group<'a>>, extension: &'a Extension) {
    let name = extension.group.as_str();
    let index = groups.iter().position(|group| group.name == name);
    let index = index.unwrap_or_else(|| {
        groups.push(Group { name, versions: Vec::new() });
        groups.len() - 1
    });
    let versions = &mut groups[index].versions;
    versions.retain(|version| version.name != extension.version.as_str());
    versions.push(Version { name: &extension.version, source: Source::Extension(extension) });
    let priority = |version: &Version<'_>| match &version.source {
        Source::Own(_) => order::version_priority(name, version.name),
        Source::Extension(extension) => extension.version_priority,
    };
    versions
        .sort_by(|a, b| priority(b).cmp(&priority(a)).then_with(|| version::cmp(a.name, b.name)));
}

/// The group and version of a subresource's kind, empty if they are the resource's. Those of a
/// Scale are always shown.
fn foreign<'a>(resource: &Resource, kind: &'a GroupVersionKind) -> (&'a str, &'a str) {
    let own = &resource.resource;
    if own.group == kind.group && own.version == kind.version && kind.kind != "Scale" {
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
    fn an_extension_replaces_a_built_in_version() {
        let extension = |group: &str, version: &str, priorities: (i64, i64)| Extension {
            group: group.into(),
            version: version.into(),
            group_priority: priorities.0,
            version_priority: priorities.1,
            discovery: None,
        };
        let extensions = [
            extension("b.io", "v1alpha1", (2_000, 15)),
            extension("b.io", "v1", (1_000, 10)),
            extension("a.io", "v2", (500, 1)),
            extension("c.io", "v1", (2_000, 1)),
        ];
        let groups = groups(&[], &extensions);
        let shown: Vec<_> = groups
            .iter()
            .map(|group| {
                let versions: Vec<_> = group.versions.iter().map(|version| version.name).collect();
                format!("{}: {}", group.name, versions.join(" "))
            })
            .collect();
        assert_eq!(shown, ["b.io: v1alpha1 v1", "c.io: v1", "a.io: v2"]);
    }

    #[test]
    fn tags_are_quoted_hashes_in_upper_case() {
        let tag = Tagged::new(Bytes::from_static(b"{}")).etag;
        assert_eq!(tag.len(), 128 + 2);
        assert!(tag.starts_with("\"27C74670ADB75075"), "{tag}");
    }
}
