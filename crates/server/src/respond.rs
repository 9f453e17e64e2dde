//! Responses: encodes the registry's results.
//!
//! Encodings that clients request often are cached with the objects (`registry::Extra`). Every
//! other response starts as compact JSON, mostly the stored bytes, and is encoded from that JSON.
//! So each form (Table, metadata only) needs only a writer of JSON.

mod gzip;
mod list;
mod pretty;
pub(crate) mod protobuf;
mod rendering;
mod table;
mod warning;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Response as HttpResponse, StatusCode, Uri};
use pintle_meta::Status;
use pintle_meta::quote::quote;
use pintle_registry::request::Encoding;
use pintle_registry::results::{Outcome, ResponseBody};
use pintle_value::{Value, cbor, json, yaml};

pub(crate) use gzip::is_accepted as takes_gzip;
pub(crate) use list::{Item, Runs, collection, list};
pub(crate) use rendering::{Rendering, Shown};
pub(crate) use warning::add_warnings;

use crate::body::{Body, Pieces};
use crate::negotiation::{Form, Negotiated, media_type};

/// A response.
pub(crate) type Response = HttpResponse<Body>;

/// The schema's name of the type Status.
pub(crate) const STATUS_TYPE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

/// Encodes a document from compact JSON. A body that is a Protobuf message already is sent
/// unchanged.
pub(crate) fn document(code: u16, body: Body, negotiated: Negotiated) -> Response {
    encoded(code, encode(body, negotiated), negotiated.encoding)
}

/// A response whose body is encoded already.
pub(crate) fn encoded(code: u16, body: Body, encoding: Encoding) -> Response {
    let mut response = HttpResponse::new(body);
    *response.status_mut() = status_code(code);
    let content_type = HeaderValue::from_static(media_type(encoding));
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Encodes one object of the named type from compact JSON.
pub(crate) fn object(
    code: u16,
    json: impl Into<Bytes>,
    type_name: &str,
    negotiated: Negotiated,
) -> Response {
    let json = json.into();
    let body = match negotiated.encoding {
        Encoding::Protobuf => Body::full(protobuf::object(type_name, &json)),
        Encoding::Json | Encoding::Yaml | Encoding::Cbor => Body::full(json),
    };
    document(code, body, negotiated)
}

/// Plain text whose type browsers must not guess.
pub(crate) fn text(code: u16, text: impl Into<Bytes>) -> Response {
    let mut response = page(code, text);
    forbid_sniffing(response.headers_mut());
    response
}

/// 500 for a request that could not be authorized (upstream: `InternalError`).
pub(crate) fn undecided(uri: &Uri, why: &str) -> Response {
    let words = format!("Internal Server Error: {}: {why}", quote(&uri.to_string()));
    // Escaped as upstream does, because the text repeats the client's URI.
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text(500, format!("{words}\n"))
}

/// 429 of priority and fairness (APF-04; upstream: `tooManyRequests`).
pub(crate) fn too_many(retry_after_seconds: u64) -> Response {
    let mut response = text(429, "Too many requests, please try again later.\n");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after_seconds));
    response
}

/// Plain text.
pub(crate) fn page(code: u16, text: impl Into<Bytes>) -> Response {
    let mut response = HttpResponse::new(Body::full(text));
    *response.status_mut() = status_code(code);
    let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Forbids browsers to guess the type.
pub(crate) fn forbid_sniffing(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// A Status, with the headers that repeat its details (ST-19).
pub(crate) fn status(status: &Status, negotiated: Negotiated) -> Response {
    let mut response = object(status.code, status_json(status), STATUS_TYPE, negotiated);
    let retry_after = status.details.as_ref().and_then(|details| details.retry_after_seconds);
    if let Some(seconds) = retry_after.filter(|seconds| *seconds > 0) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    // Audit reads the Status from here and need not decode the body.
    response.extensions_mut().insert(Arc::new(status.clone()));
    response
}

/// A Status as compact JSON, members in upstream's order.
pub(crate) fn status_json(status: &Status) -> Vec<u8> {
    write_status(&status.to_value())
}

/// The Status without kind and version, as the error streams of remote commands have it.
pub(crate) fn bare_status_json(status: &Status) -> Vec<u8> {
    let mut tree = status.to_value();
    let members = tree.make_object();
    members.remove("kind");
    members.remove("apiVersion");
    write_status(&tree)
}

fn write_status(tree: &Value) -> Vec<u8> {
    let schema = pintle_schema::builtin();
    let mut out = Vec::with_capacity(256);
    match schema.find(STATUS_TYPE) {
        Some(ty) => pintle_schema::encode::write(schema, ty, tree, &mut out),
        None => json::write(tree, &mut out),
    }
    out
}

/// The response of a request for one object.
pub(crate) fn outcome(
    outcome: &Outcome,
    rendering: &Rendering,
    negotiated: Negotiated,
) -> Result<Response, Status> {
    let code = match (outcome.created, outcome.accepted) {
        (true, _) => 201,
        (_, true) => 202,
        _ => 200,
    };
    Ok(match &outcome.body {
        ResponseBody::Object(stored) => match rendering.cached(negotiated.encoding) {
            Some(extra) => {
                rendering.refuse_list()?;
                let document = rendering.resource.encoded(stored, extra).document();
                encoded(code, Body::full(document), negotiated.encoding)
            }
            None => {
                let body = rendering.stored(stored)?;
                object(code, body, rendering.type_name(), negotiated)
            }
        },
        ResponseBody::Value(value, type_name) => {
            let body = rendering.value(value, type_name)?;
            let as_it_is = rendering.form == Form::Object;
            let type_name = if as_it_is { type_name } else { rendering.type_name() };
            object(code, body, type_name, negotiated)
        }
        ResponseBody::Status(answer) => status(answer, negotiated),
    })
}

/// Compresses a long response if the client accepts gzip (CMP-01, CMP-03).
pub(crate) fn compress(response: Response, request_headers: &HeaderMap) -> Response {
    let encoded = response.headers().contains_key(CONTENT_ENCODING);
    if encoded || !response.body().is_long() || !gzip::is_accepted(request_headers) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    HttpResponse::from_parts(head, body.map_pieces(compressed))
}

fn compressed(mut pieces: Box<dyn Pieces>) -> Box<dyn Pieces> {
    pieces.compressed().unwrap_or_else(|| gzip::compress(pieces))
}

/// Sets `Cache-Control: no-cache, private`, unless the response has the header.
pub(crate) fn forbid_caching(headers: &mut HeaderMap) {
    let entry = headers.entry(CACHE_CONTROL);
    entry.or_insert(HeaderValue::from_static("no-cache, private"));
}

fn encode(body: Body, negotiated: Negotiated) -> Body {
    match (negotiated.encoding, negotiated.pretty) {
        (Encoding::Json, false) => body.line(),
        (Encoding::Json, true) if body.len().is_none() => body.map_pieces(pretty::indent_pieces),
        (Encoding::Json, true) => body.map_whole(pretty::indent),
        (Encoding::Yaml, _) => body.map_whole(|compact| {
            let mut out = Vec::with_capacity(compact.len());
            yaml::write(&parse_own(compact), &mut out);
            out
        }),
        (Encoding::Cbor, _) => body.map_whole(cbor),
        (Encoding::Protobuf, _) => body,
    }
}

/// Parses JSON that this server wrote, for another encoding. Only a defect of the server makes it
/// invalid. That is logged; it cannot become an error response, because the head may have been sent.
fn parse_own(own: &[u8]) -> Value {
    json::parse(own).unwrap_or_else(|why| {
        debug_assert!(false, "the server wrote invalid JSON: {why}");
        tracing::error!(%why, bytes = own.len(), "a document that the server wrote is invalid JSON; the client gets an empty one");
        Value::default()
    })
}

/// Converts a document from JSON to CBOR. The JSON was written by this server.
pub(crate) fn cbor(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    cbor::write(&parse_own(json), &mut out);
    out
}

fn status_code(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests;
