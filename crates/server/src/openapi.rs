//! `/openapi/v2` and `/openapi/v3`. Documents are built on the first request and cached compressed:
//! they are megabytes long, and most clients accept gzip.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, EXPIRES, HeaderMap, HeaderValue,
    IF_NONE_MATCH, LOCATION, VARY,
};
use http::{Response as HttpResponse, StatusCode};
use parking_lot::Mutex;
use pintle_meta::Status;
use pintle_registry::{Resource, work};
use pintle_schema::Schema;
use pintle_schema::openapi::{self, GroupVersion, Page, Source};
use sha2::{Digest, Sha512};

use crate::aggregation::{Converted, V2};
use crate::body::{Body, Ready};
use crate::handlers::Call;
use crate::header_text;
use crate::media_type::parse_accept;
use crate::paths;
use crate::query::percent_encode;
use crate::respond::{self, Response};
use crate::version;

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

/// A document.
struct Document {
    gzip: Bytes,
    /// The quoted hash from the index. All formats of a document have the same one, and `Vary`
    /// distinguishes the formats.
    etag: String,
    media_type: &'static str,
    /// The value of `Vary`. The index has none.
    varies: Option<&'static str>,
}

/// The compression level: fast, as most documents are requested once and some are very long.
const COMPRESSION: Compression = Compression::fast();

/// The bytes that are decompressed at a time, for clients that do not accept gzip.
const UNPACKED_BYTES: usize = 128 * 1024;

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Format {
    Json,
    Message,
}

const V2_PATH: &str = "/openapi/v2";
const V3: &str = "/openapi/v3";

/// The media types by version of OpenAPI. Names with an `@`, which is invalid in media types, are
/// older.
const V2_TYPES: [(&str, Format); 3] = [
    ("json", Format::Json),
    ("com.github.proto-openapi.spec.v2@v1.0+protobuf", Format::Message),
    ("com.github.proto-openapi.spec.v2.v1.0+protobuf", Format::Message),
];
const V3_TYPES: [(&str, Format); 3] = [
    ("json", Format::Json),
    ("com.github.proto-openapi.spec.v3@v1.0+protobuf", Format::Message),
    ("com.github.proto-openapi.spec.v3.v1.0+protobuf", Format::Message),
];

/// The document that a path names.
enum Wanted {
    /// `/openapi/v2`
    V2,
    /// `/openapi/v3`
    Index,
    /// One of the documents in the index, by its path there.
    V3(String),
}

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
            *hash = hex([hash.as_str()].into_iter().chain(others).collect::<String>().as_bytes());
        }
        let index = Arc::new(Index { numbers, hashes, extensions, v2, converted });
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

impl Wanted {
    /// The format that the client accepts. The index is always JSON.
    fn format(&self, headers: &HeaderMap) -> Option<Format> {
        let types = match self {
            Self::Index => return Some(Format::Json),
            Self::V2 => V2_TYPES,
            Self::V3(_) => V3_TYPES,
        };
        let accept = header_text::list(headers, &ACCEPT);
        if accept.is_empty() {
            return Some(Format::Json);
        }
        let found = parse_accept(&accept).into_iter().find_map(|range| {
            types.iter().find(|(subtype, _)| range.covers("application", subtype))
        });
        found.map(|(_, format)| *format)
    }

    /// The value of `Vary`, as upstream sets it.
    const fn varies(&self) -> Option<&'static str> {
        match self {
            Self::Index => None,
            Self::V2 => Some("Accept-Encoding, Accept"),
            Self::V3(_) => Some("Accept"),
        }
    }

    fn media_type(&self, format: Format) -> &'static str {
        match (self, format) {
            (Self::Index, _) => "text/plain; charset=utf-8",
            (_, Format::Json) => "application/json",
            (Self::V2, _) => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            (Self::V3(_), _) => "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        }
    }

    /// Converts a document from JSON to Protobuf.
    fn message(&self, json: &[u8]) -> Result<Vec<u8>, Status> {
        let message = match self {
            Self::V2 => openapi::v2_message(json),
            Self::Index | Self::V3(_) => openapi::v3_message(json),
        };
        message.map_err(Status::internal)
    }
}

impl Document {
    fn response(&self, request: &HeaderMap) -> Result<Response, Status> {
        let mut response = if request.get(IF_NONE_MATCH).is_some_and(|tag| tag == &*self.etag) {
            let mut response = HttpResponse::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else if respond::takes_gzip(request) {
            let mut response = HttpResponse::new(Body::full(self.gzip.clone()));
            let gzip = HeaderValue::from_static("gzip");
            response.headers_mut().insert(CONTENT_ENCODING, gzip);
            response
        } else {
            HttpResponse::new(Body::pieces(Ready(unpacked(self.gzip.clone()))))
        };
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        if let Some(varies) = self.varies {
            headers.insert(VARY, HeaderValue::from_static(varies));
            let etag = HeaderValue::from_str(&self.etag).expect("a hash is plain ASCII");
            headers.insert(ETAG, etag);
        }
        Ok(response)
    }
}

/// Marks a response as immutable: its URL has the document's hash.
fn forever(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
    // For clients that do not know `immutable`.
    headers.insert(EXPIRES, HeaderValue::from_static("Thu, 31 Dec 2099 23:59:59 GMT"));
}

/// Redirects from an old hash of a document to the current one.
fn redirect_to_current(path: &str, hash: &str, varies: Option<&'static str>) -> Response {
    let path: Vec<_> = path.split('/').map(percent_encode).collect();
    let location = format!("{}?hash={hash}", path.join("/"));
    let mut response = bare(StatusCode::MOVED_PERMANENTLY, varies);
    let location = HeaderValue::from_str(&location).expect("an encoded path is plain ASCII");
    let etag = HeaderValue::from_str(&format!("\"{hash}\"")).expect("a hash is plain ASCII");
    let headers = response.headers_mut();
    headers.insert(LOCATION, location);
    headers.insert(ETAG, etag);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A response without a body.
fn bare(code: StatusCode, varies: Option<&'static str>) -> Response {
    let mut response = HttpResponse::new(Body::empty());
    *response.status_mut() = code;
    if let Some(varies) = varies {
        response.headers_mut().insert(VARY, HeaderValue::from_static(varies));
    }
    response
}

/// Decompresses a document piece by piece.
fn unpacked(gzip: Bytes) -> impl Iterator<Item = Bytes> + Send {
    let mut decoder = GzDecoder::new(gzip.reader());
    std::iter::from_fn(move || {
        let mut piece = Vec::with_capacity(UNPACKED_BYTES);
        // This server compressed the document, so decompression does not fail.
        let read = decoder.by_ref().take(UNPACKED_BYTES as u64).read_to_end(&mut piece);
        (read.is_ok() && !piece.is_empty()).then(|| piece.into())
    })
}

/// Builds a document and compresses it while it is written. The document of version 2, which is the
/// longest, is in memory uncompressed only if it is converted to a Protobuf message.
fn build(
    call: &Call<'_>,
    wanted: &Wanted,
    format: Format,
    index: &Index,
) -> Result<(Bytes, &'static str), Status> {
    let mut packed = GzEncoder::new(Vec::new(), COMPRESSION);
    let mut written = Ok(());
    if format == Format::Json {
        let mut pack = |piece: &[u8]| {
            if written.is_ok() {
                written = packed.write_all(piece);
            }
        };
        write(call, wanted, index, &mut pack)?;
    } else {
        let mut json = Vec::new();
        write(call, wanted, index, &mut |piece| json.extend_from_slice(piece))?;
        let message = wanted.message(&json)?;
        drop(json);
        written = packed.write_all(&message);
    }
    let packed = written.and_then(|()| packed.finish()).map_err(Status::internal)?;
    Ok((packed.into(), wanted.media_type(format)))
}

/// Writes a document as JSON: that of version 2 piece by piece, any other as a whole.
fn write(
    call: &Call<'_>,
    wanted: &Wanted,
    index: &Index,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<(), Status> {
    let (_, resources) = call.api.registry.resources();
    let descriptions = pintle_descriptions::load().map_err(Status::internal)?;
    let release = call.api.settings.version.emulation();
    let source = Source {
        schema: schema(&resources),
        descriptions: &descriptions,
        cbor: call.api.settings.cbor,
        version: &release,
        open_id: open_id(call),
    };
    let versions = group_versions(&resources);
    match wanted {
        Wanted::V2 => {
            let excerpts = index.v2.iter().map(|other| &other.excerpt);
            openapi::v2_document(source, &versions, excerpts, sink);
        }
        Wanted::Index => {
            let documents = pages(&versions, source.open_id).map(|page| page.path());
            let documents = documents.filter_map(|path| {
                let hash = index.hashes.get(&format!("{V3}/{path}"))?;
                Some((path, hash.as_str()))
            });
            let mut documents: Vec<(String, &str)> = documents.collect();
            for (path, hash) in &index.extensions {
                documents.retain(|(own, _)| own != path);
                documents.push((path.clone(), hash));
            }
            sink(&openapi::v3_index(documents.iter().map(|(path, hash)| (&**path, *hash))));
        }
        Wanted::V3(path) if index.converted.contains_key(path) => {
            index.converted.get(path).into_iter().for_each(|made| sink(&made.json));
        }
        Wanted::V3(path) => {
            let page = pages(&versions, source.open_id).find(|page| page.path() == *path);
            sink(&match page.ok_or_else(Status::no_such_path)? {
                V3Page::Resources(version) => openapi::v3_document(source, version),
                V3Page::Page(page) => openapi::v3_page(source, page),
            });
        }
    }
    Ok(())
}

/// The schema of all served types: the built-in one, or the larger one with removed versions if any
/// of them is served.
fn schema(resources: &[Arc<Resource>]) -> &'static Schema {
    let is_removed = |resource: &Arc<Resource>| {
        resource.described.is_none() && !pintle_schema::is_builtin(&resource.schema, resource.ty)
    };
    let removed = resources.iter().any(is_removed);
    if removed { pintle_schema::with_removed() } else { pintle_schema::builtin() }
}

/// A document of version 3.
enum V3Page<'a> {
    Resources(&'a GroupVersion),
    Page(Page<'a>),
}

impl V3Page<'_> {
    /// The document's path in the index.
    fn path(&self) -> String {
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
        hex(source.as_bytes())
    }
}

fn pages(versions: &[GroupVersion], open_id: bool) -> impl Iterator<Item = V3Page<'_>> {
    let pages = openapi::pages(versions, open_id).map(V3Page::Page);
    pages.chain(versions.iter().map(V3Page::Resources))
}

/// True if the OpenID documents are served; then OpenAPI describes them, too.
fn open_id(call: &Call<'_>) -> bool {
    paths::open_id_configuration(call).is_some()
}

/// The hashes of all documents, by their paths.
fn hashes(
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
        hashes.insert(path.to_owned(), hex(all.as_bytes()));
    }
    hashes
}

/// The served resources as the OpenAPI writer wants them, sorted by group and version.
fn group_versions(resources: &[Arc<Resource>]) -> Vec<GroupVersion> {
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

fn hex(bytes: &[u8]) -> String {
    Sha512::digest(bytes).iter().map(|byte| format!("{byte:02X}")).collect()
}
