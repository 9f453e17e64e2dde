//! What extension API servers say of their versions in OpenAPI: hashes of the documents that are asked of
//! them, and what becomes part of this server's one document of version 2.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use pintle_schema::openapi::{self, Excerpt};
use pintle_value::{Value, json};
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
    /// Where a server has no documents of version 3, what its document of version 2 says as one of them.
    pub(super) converted: Option<Arc<Converted>>,
}

/// A document of version 3 that was made of one of version 2.
#[derive(Debug, PartialEq)]
pub(crate) struct Converted {
    pub(crate) json: Vec<u8>,
    pub(crate) hash: String,
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
        let document = self.v2(service).await;
        let has_v2_only = head.status == StatusCode::NOT_FOUND;
        let converted = document.as_ref().filter(|_| has_v2_only).and_then(Converted::of);
        Some(Documents {
            version_hash: hash(&format!("{group}/{}", service.version)),
            group_hash: hash(&group),
            v2: document.and_then(|document| V2::of(service, &document)).map(Arc::new),
            converted: converted.map(Arc::new),
        })
    }

    /// Its document of version 2.
    async fn v2(&self, service: &ApiService) -> Option<Value> {
        let (head, body) = self.get(service, "/openapi/v2", "application/json").await.ok()?;
        json::parse(&body).ok().filter(|_| head.status == StatusCode::OK)
    }
}

impl Converted {
    /// Nothing where the result could not be written in every form.
    fn of(document: &Value) -> Option<Self> {
        let json = openapi::v3_from_v2(document);
        openapi::v3_message(&json).ok()?;
        Some(Self { hash: hex(&json), json })
    }
}

impl V2 {
    /// What a document says of the version's paths.
    fn of(service: &ApiService, document: &Value) -> Option<Self> {
        let prefix = format!("/apis/{}/{}/", service.group, service.version);
        let excerpt = Excerpt::of(document, &prefix)?;
        let alone = excerpt.document();
        // One that could not be written in every form would take the whole document with it.
        openapi::v2_message(&alone)
            .inspect_err(
                |why| tracing::warn!(name = %service.name, %why, "its OpenAPI v2 is left out"),
            )
            .ok()?;
        Some(Self { excerpt, hash: hex(&alone) })
    }
}

fn hex(bytes: &[u8]) -> String {
    Sha512::digest(bytes).iter().map(|byte| format!("{byte:02X}")).collect()
}

/// The hash in a document's address.
fn hash(url: &str) -> Option<String> {
    let (_, hash) = url.split_once("hash=")?;
    let is_hash = hash.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_hash.then(|| hash.to_owned())
}
