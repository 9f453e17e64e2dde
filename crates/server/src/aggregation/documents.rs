//! What extension API servers say of their versions in OpenAPI: hashes of the documents that are asked of
//! them, and what becomes part of this server's one document of version 2.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use pintle_schema::openapi::{self, Excerpt};
use pintle_value::json;
use serde::Deserialize;
use sha2::{Digest, Sha512};

use super::discovery::read;
use super::{Aggregation, ApiService};

/// What a server has of a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Documents {
    /// The hash in the address of the version's document, if it has one.
    pub(super) version_hash: Option<String>,
    /// The same of the group's.
    pub(super) group_hash: Option<String>,
    pub(super) v2: Option<Arc<V2>>,
}

/// What a server says of a version in OpenAPI 2.0.
#[derive(Debug, PartialEq)]
pub(crate) struct V2 {
    pub(crate) excerpt: Excerpt,
    pub(crate) hash: String,
}

/// The documents that a server has.
#[derive(Deserialize)]
struct Index {
    paths: BTreeMap<String, Path>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Path {
    #[serde(rename = "serverRelativeURL")]
    url: String,
}

impl Aggregation {
    /// Asks a server for its documents; nothing where it does not answer.
    pub(super) async fn documents(&self, service: &ApiService) -> Option<Documents> {
        let (head, body) = self.get(service, "/openapi/v3", "application/json").await.ok()?;
        let index: Option<Index> = read(&body).ok().filter(|_| head.status == StatusCode::OK);
        let hash = |path: &str| hash(&index.as_ref()?.paths.get(path)?.url);
        let group = format!("apis/{}", service.group);
        Some(Documents {
            version_hash: hash(&format!("{group}/{}", service.version)),
            group_hash: hash(&group),
            v2: self.v2(service).await.map(Arc::new),
        })
    }

    /// What its document of version 2 says of the version's paths.
    async fn v2(&self, service: &ApiService) -> Option<V2> {
        let (head, body) = self.get(service, "/openapi/v2", "application/json").await.ok()?;
        let document = json::parse(&body).ok().filter(|_| head.status == StatusCode::OK)?;
        let prefix = format!("/apis/{}/{}/", service.group, service.version);
        let excerpt = Excerpt::of(&document, &prefix)?;
        let alone = excerpt.document();
        // One that could not be written in every form would take the whole document with it.
        openapi::v2_message(&alone)
            .inspect_err(
                |why| tracing::warn!(name = %service.name, %why, "its OpenAPI v2 is left out"),
            )
            .ok()?;
        let hash = Sha512::digest(&alone).iter().map(|byte| format!("{byte:02X}")).collect();
        Some(V2 { excerpt, hash })
    }
}

/// The hash in a document's address.
fn hash(url: &str) -> Option<String> {
    let (_, hash) = url.split_once("hash=")?;
    let is_hash = hash.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_hash.then(|| hash.to_owned())
}
