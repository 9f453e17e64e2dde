//! `/openapi/v2` and `/openapi/v3`. Documents are built on the first request and cached compressed:
//! they are megabytes long, and most clients accept gzip.
//!
//! [`pages`] has the documents that exist and their hashes, [`writing`] writes a document, and
//! [`document`] makes the response with it.

mod document;
mod pages;
mod writing;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use http::StatusCode;
use parking_lot::Mutex;
use pintle_meta::Status;
use pintle_registry::{Resource, work};

use crate::aggregation::{Converted, V2};
use crate::document_hash::document_hash;
use crate::handlers::Call;
use crate::respond::Response;
use document::{Document, Format, Wanted, bare, forever, redirect_to_current};
use pages::{hashes, open_id};
use writing::build;

/// The documents that have been requested.
#[derive(Default)]
pub(crate) struct OpenApi {
    cache: Mutex<Cache>,
    /// Documents that are being built; other requests for them wait.
    building: Mutex<HashMap<Key, BuildLock>>,
}

/// The path and format of a document.
type Key = (String, Format);
/// Held while a document is built.
type BuildLock = Arc<tokio::sync::Mutex<()>>;

#[derive(Default)]
struct Cache {
    index: Arc<Index>,
    documents: HashMap<Key, Arc<Document>>,
}

/// Every document's hash, by path.
#[derive(Default)]
struct Index {
    /// The generations of the definitions and of the extensions that the index was made of.
    numbers: (u64, u64),
    /// The resources that the documents describe. A document is built of these, not of those that
    /// are served by then, so that it belongs to its hash.
    resources: Arc<[Arc<Resource>]>,
    hashes: BTreeMap<String, String>,
    /// The hashes of the documents of extension API servers, by path in the index. Requests for
    /// these documents are forwarded, unless the document is in `converted`.
    extensions: BTreeMap<String, String>,
    /// The version 2 documents of extension API servers.
    v2: Vec<Arc<V2>>,
    /// Version 3 documents that were converted from version 2, for extension API servers that have
    /// no version 3, by path in the index.
    converted: BTreeMap<String, Arc<Converted>>,
}

const V2_PATH: &str = "/openapi/v2";
const V3: &str = "/openapi/v3";

impl OpenApi {
    /// The paths that always exist.
    pub(crate) fn paths() -> [&'static str; 2] {
        [V2_PATH, V3]
    }

    /// Serves a path below `/openapi`.
    pub(crate) async fn answer(&self, call: &Call<'_>) -> Result<Response, Status> {
        let path = call.info.path.as_str();
        let wanted = match path {
            V2_PATH => Wanted::V2,
            V3 => Wanted::Index,
            path => match path.strip_prefix(V3).and_then(|rest| rest.strip_prefix('/')) {
                Some(document) => Wanted::V3(document.to_owned()),
                None => return Err(Status::no_such_path()),
            },
        };
        let Some(format) = wanted.format(&call.head.headers) else {
            return Ok(bare(StatusCode::NOT_ACCEPTABLE, wanted.varies()));
        };
        let index = self.index(call).await;
        let Some(hash) = index.hashes.get(path) else {
            return Ok(bare(StatusCode::NOT_FOUND, None));
        };
        let requested = if matches!(wanted, Wanted::V3(_)) { call.query.text("hash") } else { "" };
        if !requested.is_empty() && requested != *hash {
            return Ok(redirect_to_current(path, hash, wanted.varies())); // OAS-02
        }
        let document = self.document(call, path, wanted, format, &index).await?;
        let mut response = document.response(&call.head.headers)?;
        if !requested.is_empty() {
            forever(response.headers_mut());
        }
        Ok(response)
    }

    /// The current index. Drops cached documents whose hash has changed.
    async fn index(&self, call: &Call<'_>) -> Arc<Index> {
        let (definitions, resources) = call.api.registry.resources();
        let numbers = (definitions, call.api.aggregation.number());
        let known = self.cache.lock().index.clone();
        if known.numbers == numbers && !known.hashes.is_empty() {
            return known;
        }
        work::ahead(usize::MAX).await;
        let aggregation = &call.api.aggregation;
        let (mut extensions, v2) = (aggregation.openapi(), aggregation.openapi_v2());
        let converted = aggregation.openapi_converted();
        let of_converted = converted.iter().map(|(path, made)| (path.clone(), made.hash.clone()));
        extensions.extend(of_converted.clone());
        let release = call.api.settings.version.emulation();
        let settings = (release.as_str(), call.api.settings.cbor);
        let mut hashes = hashes(&resources, &extensions, settings, open_id(call));
        hashes.extend(of_converted.map(|(path, hash)| (format!("{V3}/{path}"), hash)));
        if let Some(hash) = hashes.get_mut(V2_PATH).filter(|_| !v2.is_empty()) {
            let others = v2.iter().map(|other| other.hash.as_str());
            *hash = document_hash(
                [hash.as_str()].into_iter().chain(others).collect::<String>().as_bytes(),
            );
        }
        let index = Arc::new(Index { numbers, resources, hashes, extensions, v2, converted });
        let mut cache = self.cache.lock();
        cache.documents.retain(|(path, _), _| index.hashes.get(path) == known.hashes.get(path));
        cache.index = index.clone();
        index
    }

    async fn document(
        &self,
        call: &Call<'_>,
        path: &str,
        wanted: Wanted,
        format: Format,
        index: &Arc<Index>,
    ) -> Result<Arc<Document>, Status> {
        let key = (path.to_owned(), format);
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let turn = self.building.lock().entry(key.clone()).or_default().clone();
        let _turn = turn.lock().await;
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        work::ahead(usize::MAX).await;
        let etag = format!("\"{}\"", index.hashes.get(path).map_or("", String::as_str));
        let built = build(call, &wanted, format, index);
        self.building.lock().remove(&key);
        let (gzip, media_type) = built?;
        let varies = wanted.varies();
        let document = Arc::new(Document { gzip, etag, media_type, varies });
        let mut cache = self.cache.lock();
        if cache.index.hashes.get(path) == index.hashes.get(path) {
            cache.documents.insert(key, document.clone());
        }
        Ok(document)
    }

    fn known(&self, key: &Key) -> Option<Arc<Document>> {
        self.cache.lock().documents.get(key).cloned()
    }
}
