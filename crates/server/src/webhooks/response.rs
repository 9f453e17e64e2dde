//! Interprets the response of a webhook, with the texts of upstream's client (client-go's
//! `rest.Request` and `rest.Result`).

use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use http::header::{CONTENT_TYPE, LOCATION};
use http::response::Parts;
use http::uri::PathAndQuery;
use pintle_meta::quote::quote;
use pintle_registry::webhook::CallError;
use pintle_value::{Value, json};

use super::retry;
use crate::header_text;

/// The most bytes of an error response that a message quotes.
const TEXT_BYTES_MAX: usize = 2048;

/// The meaning of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A success, with its body.
    Review(Vec<u8>),
    /// A redirect on the same server.
    Elsewhere(PathAndQuery),
    /// An error.
    Refusal(CallError),
    /// A temporary error; retry after this time.
    RetryAfter(Duration, CallError),
}

/// Interprets a response to a request to a URI; a redirect must stay on the same server.
pub(super) fn read(head: &Parts, body: &Bytes, uri: &Uri) -> Result<Outcome, String> {
    let content_type = head.headers.get(CONTENT_TYPE).map(header_text::text);
    let content_type = content_type.as_deref();
    match head.status.as_u16() {
        307 | 308 => {
            let location = head.headers.get(LOCATION).map(header_text::text);
            let location = location.and_then(|location| location.parse::<Uri>().ok());
            let is_here =
                |there: &Uri| there.authority().is_none_or(|a| Some(a) == uri.authority());
            let path = location.filter(is_here).and_then(|there| there.path_and_query().cloned());
            path.map(Outcome::Elsewhere).ok_or_else(|| "redirected to another server".to_owned())
        }
        code @ 200..=206 if body.is_empty() => {
            let content_type = content_type.unwrap_or("application/json");
            Ok(Outcome::Refusal(CallError::no_response(format!(
                "0-length response with status code: {code} and content type: {content_type}"
            ))))
        }
        200..=206 => Ok(Outcome::Review(body.to_vec())),
        code => {
            let refusal = match status(body) {
                Some(status) => {
                    let why = status.str_at(&["message"]).unwrap_or_default().to_owned();
                    CallError { why, code, is_transient: retry::status_is_transient(&status) }
                }
                None => {
                    let is_text =
                        content_type.is_none_or(|value| value.trim_start().starts_with("text/"));
                    let text = String::from_utf8_lossy(&body[..body.len().min(TEXT_BYTES_MAX)]);
                    let why = words(code, if is_text { text.trim() } else { "unknown" });
                    CallError { why, code, is_transient: retry::is_transient(head) }
                }
            };
            Ok(match retry::after(head) {
                Some(pause) => Outcome::RetryAfter(pause, refusal),
                None => Outcome::Refusal(refusal),
            })
        }
    }
}

/// The body, if it is a failure Status.
fn status(body: &Bytes) -> Option<Value> {
    let status = json::parse(body).ok()?;
    let is = |key: &str, text: &str| status.str_at(&[key]) == Some(text);
    let is_v1 = status.get("apiVersion").is_none_or(|version| version.as_str() == Some("v1"));
    (is_v1 && is("kind", "Status") && is("status", "Failure")).then_some(status)
}

/// The text for a status code without a Status (upstream: `NewGenericServerResponse`).
fn words(code: u16, text: &str) -> String {
    let words = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => text,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if matches!(text, "" | "unknown") => {
            "the server was unable to respond with a content type that the client supports"
        }
        406 => text,
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request"
        }
        500.. => {
            return format!(
                "an error on the server ({}) has prevented the request from succeeding",
                quote(text)
            );
        }
        _ => {
            return format!(
                "the server responded with the status code {code} but did not return more information"
            );
        }
    };
    words.to_owned()
}

#[cfg(test)]
mod tests;
