//! The documents of version 3 and the hashes of all documents, and the served resources as the
//! writer of documents wants them.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_registry::Resource;
use pintle_schema::openapi::{self, GroupVersion, Page};

use super::{OpenApi, V3};
use crate::document_hash::document_hash;
use crate::handlers::Call;
use crate::version;

/// A document of version 3.
pub(super) enum V3Page<'a> {
    Resources(&'a GroupVersion),
    Page(Page<'a>),
}

impl V3Page<'_> {
    /// The document's path in the index.
    pub(super) fn path(&self) -> String {
        match self {
            Self::Resources(version) => openapi::v3_path(&version.group, &version.version),
            Self::Page(page) => page.path(),
        }
    }

    /// A hash of the document's inputs. The index needs every hash before any document is written.
    fn hash(&self, (release, cbor): (&str, bool)) -> String {
        let program = version::GIT_VERSION;
        let source = match self {
            Self::Resources(version) => format!("{program} {release} {cbor} {version:?}"),
            Self::Page(page) => format!("{program} {release} {page:?}"),
        };
        document_hash(source.as_bytes())
    }
}

pub(super) fn pages(versions: &[GroupVersion], open_id: bool) -> impl Iterator<Item = V3Page<'_>> {
    let pages = openapi::pages(versions, open_id).map(V3Page::Page);
    pages.chain(versions.iter().map(V3Page::Resources))
}

/// Whether the OpenID documents are served; then OpenAPI describes them, too.
pub(super) fn open_id(call: &Call<'_>) -> bool {
    call.api.open_id_configuration().is_some()
}

/// The hashes of all documents, by their paths.
pub(super) fn hashes(
    resources: &[Arc<Resource>],
    extensions: &BTreeMap<String, String>,
    settings: (&str, bool),
    open_id: bool,
) -> BTreeMap<String, String> {
    let versions = group_versions(resources);
    let pages = pages(&versions, open_id)
        .map(|page| (format!("{V3}/{}", page.path()), page.hash(settings)));
    let mut hashes: BTreeMap<String, String> = pages.collect();
    let all = hashes.iter().chain(extensions);
    let all: String = all.flat_map(|(path, hash)| [path.as_str(), hash]).collect();
    for path in OpenApi::paths() {
        hashes.insert(path.to_owned(), document_hash(all.as_bytes()));
    }
    hashes
}

/// The served resources as the OpenAPI writer wants them, sorted by group and version.
pub(super) fn group_versions(resources: &[Arc<Resource>]) -> Vec<GroupVersion> {
    let mut sorted: Vec<&Arc<Resource>> = resources.iter().collect();
    sorted.sort_by(|a, b| a.resource.cmp(&b.resource));
    let same = |a: &&Arc<Resource>, b: &&Arc<Resource>| {
        a.resource.group == b.resource.group && a.resource.version == b.resource.version
    };
    let versions = sorted.chunk_by(same).map(|resources| GroupVersion {
        group: resources[0].resource.group.to_string(),
        version: resources[0].resource.version.to_string(),
        resources: resources.iter().map(|resource| described(resource)).collect(),
    });
    versions.collect()
}

fn described(resource: &Resource) -> openapi::Resource {
    let subresources = resource.subresources.iter().map(|sub| openapi::Subresource {
        name: sub.name.to_string(),
        group: sub.kind.group.to_string(),
        version: sub.kind.version.to_string(),
        kind: sub.kind.kind.to_string(),
        verbs: sub.verbs.iter().map(|verb| verb.as_str()).collect(),
    });
    openapi::Resource {
        plural: resource.resource.resource.to_string(),
        kind: resource.kind.to_string(),
        type_name: match &resource.described {
            Some(described) => described.type_name.clone(),
            None => resource.schema.get(resource.ty).name.to_string(),
        },
        namespaced: resource.namespaced(),
        verbs: resource.verbs.iter().map(|verb| verb.as_str()).collect(),
        delete_returns_object: resource.strategy.delete_returns_object(),
        subresources: subresources.collect(),
        described: resource.described.clone(),
    }
}
