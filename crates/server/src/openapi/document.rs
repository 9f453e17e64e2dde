//! A document: which one a path names, its formats, and the responses with it or about it. Must not
//! know how it is written.

use std::io::Read;

use bytes::{Buf, Bytes};
use flate2::read::GzDecoder;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, EXPIRES, HeaderMap, HeaderValue,
    IF_NONE_MATCH, LOCATION, VARY,
};
use http::{Response as HttpResponse, StatusCode};
use pintle_meta::Status;
use pintle_schema::openapi;

use crate::body::{Body, Ready};
use crate::header_text;
use crate::media_type::parse_accept;
use crate::query::percent_encode;
use crate::respond::{self, Response};

/// A document.
pub(super) struct Document {
    pub(super) gzip: Bytes,
    /// The quoted hash from the index. All formats of a document have the same one, and `Vary`
    /// distinguishes the formats.
    pub(super) etag: String,
    pub(super) media_type: &'static str,
    /// The value of `Vary`. The index has none.
    pub(super) varies: Option<&'static str>,
}

/// The bytes that are decompressed at a time, for clients that do not accept gzip.
const UNPACKED_BYTES: usize = 128 * 1024;

/// The document that a path names.
pub(super) enum Wanted {
    /// `/openapi/v2`
    V2,
    /// `/openapi/v3`
    Index,
    /// One of the documents in the index, by its path there.
    V3(String),
}

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Format {
    Json,
    Message,
}

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

impl Wanted {
    /// The format that the client accepts. The index is always JSON.
    pub(super) fn format(&self, headers: &HeaderMap) -> Option<Format> {
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
    pub(super) const fn varies(&self) -> Option<&'static str> {
        match self {
            Self::Index => None,
            Self::V2 => Some("Accept-Encoding, Accept"),
            Self::V3(_) => Some("Accept"),
        }
    }

    pub(super) fn media_type(&self, format: Format) -> &'static str {
        match (self, format) {
            (Self::Index, _) => "text/plain; charset=utf-8",
            (_, Format::Json) => "application/json",
            (Self::V2, _) => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            (Self::V3(_), _) => "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        }
    }

    /// Converts a document from JSON to Protobuf.
    pub(super) fn message(&self, json: &[u8]) -> Result<Vec<u8>, Status> {
        let message = match self {
            Self::V2 => openapi::v2_message(json),
            Self::Index | Self::V3(_) => openapi::v3_message(json),
        };
        message.map_err(Status::internal)
    }
}

impl Document {
    pub(super) fn response(&self, request: &HeaderMap) -> Result<Response, Status> {
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
pub(super) fn forever(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
    // For clients that do not know `immutable`.
    headers.insert(EXPIRES, HeaderValue::from_static("Thu, 31 Dec 2099 23:59:59 GMT"));
}

/// Redirects from an old hash of a document to the current one.
pub(super) fn redirect_to_current(
    path: &str,
    hash: &str,
    varies: Option<&'static str>,
) -> Response {
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
pub(super) fn bare(code: StatusCode, varies: Option<&'static str>) -> Response {
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
