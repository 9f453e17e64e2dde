//! OpenAPI of extension API servers: the hashes of v3 documents, which are forwarded, and the
//! excerpts of v2 that become part of this server's document.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use pintle_schema::openapi::{self, Excerpt};
use pintle_value::{Value, json};
use serde::Deserialize;

use super::exchange::read;
use super::{Aggregation, ApiService};
use crate::document_hash::document_hash;

/// The documents of a group version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Documents {
    /// The hash in the URL of the version's document, if it exists.
    pub(super) version_hash: Option<String>,
    /// The hash in the URL of the group's document, if it exists.
    pub(super) group_hash: Option<String>,
    pub(super) v2: Option<Arc<V2>>,
    /// The v2 document converted to v3, if the server has no v3.
    pub(super) converted: Option<Arc<Converted>>,
}

/// A v3 document that was converted from v2.
#[derive(Debug, PartialEq)]
pub(crate) struct Converted {
    pub(crate) json: Vec<u8>,
    pub(crate) hash: String,
}

/// The v2 excerpt of a group version.
#[derive(Debug, PartialEq)]
pub(crate) struct V2 {
    pub(crate) excerpt: Excerpt,
    pub(crate) hash: String,
}

/// The server's index of v3 documents.
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
    /// Requests a server's documents; `None` if it does not answer.
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

    /// Requests the v2 document.
    async fn v2(&self, service: &ApiService) -> Option<Value> {
        let (head, body) = self.get(service, "/openapi/v2", "application/json").await.ok()?;
        json::parse(&body).ok().filter(|_| head.status == StatusCode::OK)
    }
}

impl Converted {
    /// `None` if the result cannot be encoded in every format.
    fn of(document: &Value) -> Option<Self> {
        let json = openapi::v3_from_v2(document);
        openapi::v3_message(&json).ok()?;
        Some(Self { hash: document_hash(&json), json })
    }
}

impl V2 {
    /// The excerpt of the version's paths.
    fn of(service: &ApiService, document: &Value) -> Option<Self> {
        let prefix = format!("/apis/{}/{}/", service.group, service.version);
        let excerpt = Excerpt::of(document, &prefix)?;
        let alone = excerpt.document();
        // An excerpt that cannot be encoded in every format would break the whole document.
        openapi::v2_message(&alone)
            .inspect_err(
                |why| tracing::warn!(name = %service.name, %why, "cannot encode the OpenAPI v2 document of an APIService; it is left out of /openapi/v2"),
            )
            .ok()?;
        Some(Self { excerpt, hash: document_hash(&alone) })
    }
}

/// The hash in a document's URL.
fn hash(url: &str) -> Option<String> {
    let (_, hash) = url.split_once("hash=")?;
    let is_hash = hash.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_hash.then(|| hash.to_owned())
}
