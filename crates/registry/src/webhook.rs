//! Webhooks: their endpoints, and the interface for calling them.
//!
//! It must not know how requests are sent.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_trace::SpanContext;
use pintle_value::{Str, Value};

/// The endpoint of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// `https://…`; a service is the host: `https://name.namespace.svc:443/path`.
    pub url: String,
    /// Namespace, name and port of the service, if it is one.
    pub service: Option<(Str, Str, u16)>,
    /// The trusted certificates in PEM; empty for the system's authorities. As in Go, a certificate
    /// in the bundle is trusted even if it is not an authority.
    pub ca_bundle: Vec<u8>,
}

/// The body of a successful response (status 200 to 206), or the error.
pub type ResponseFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, CallError>> + Send + 'a>>;

/// Why a webhook gave no usable response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct CallError {
    /// The error, in the words of upstream's client.
    pub why: String,
    /// The status code of the webhook's response, or 503 if there was none.
    pub code: u16,
    /// Whether a retry may succeed: the webhook's server says so, or it reset the connection.
    pub is_transient: bool,
}

impl CallError {
    /// Makes the error of a webhook that did not respond.
    pub const fn no_response(why: String) -> Self {
        Self { why, code: 503, is_transient: false }
    }
}

/// Sends requests to webhooks.
pub trait Caller: Send + Sync {
    /// POSTs JSON and returns the response of bounded length, or an error after the timeout. The
    /// webhook gets the trace's context, if there is one.
    fn call<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
        timeout: Duration,
        context: Option<SpanContext>,
    ) -> ResponseFuture<'a>;

    /// Makes a uid for a review.
    fn uid(&self) -> Str;

    /// Returns the time, for [`Self::converted`].
    fn now(&self) -> Instant;

    /// Measures a conversion that started at `began` and has ended.
    fn converted(&self, conversion: &Conversion<'_>, began: Instant);
}

/// A conversion by a webhook.
#[derive(Clone, Copy, Debug)]
pub struct Conversion<'a> {
    /// The name of the CustomResourceDefinition with the webhook.
    pub definition: &'a str,
    /// The version of the first object, without its group.
    pub from: &'a str,
    /// The requested version, without its group.
    pub to: &'a str,
    /// Why it failed, if it did.
    pub failure: Option<ConversionFailure>,
}

/// Why a conversion failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversionFailure {
    /// The webhook did not respond.
    Call,
    /// The response is not a valid review, or reports a failure.
    MalformedResponse,
    /// The response has another number of objects than the request.
    PartialResponse,
    /// A converted object has another version or identity than requested.
    InvalidConvertedObject,
}

impl Endpoint {
    /// Reads the endpoint from a `clientConfig`.
    pub fn of(config: &Value) -> Self {
        let ca_bundle = config.str_at(&["caBundle"]).and_then(|text| STANDARD.decode(text).ok());
        let ca_bundle = ca_bundle.unwrap_or_default();
        if let Some(url) = config.str_at(&["url"]) {
            return Self { url: normalized_url(url), service: None, ca_bundle };
        }
        let text = |key: &str| config.str_at(&["service", key]).unwrap_or_default();
        let port = config.at(&["service", "port"]).and_then(Value::as_int).unwrap_or(443);
        let port = u16::try_from(port).unwrap_or(443);
        let (namespace, name, path) =
            (text("namespace"), text("name"), normalized_path(text("path")));
        let url = format!("https://{name}.{namespace}.svc:{port}{path}");
        Self { url, service: Some((namespace.into(), name.into(), port)), ca_bundle }
    }

    /// Adds the timeout to the URL, as upstream's client does.
    pub fn within(mut self, seconds: u64) -> Self {
        self.url.push_str(&format!("?timeout={seconds}s"));
        self
    }
}

/// Normalizes a URL as upstream's client does: without query and fragment.
fn normalized_url(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let host = url.find("://").map_or(0, |at| at + 3);
    let path = url[host..].find('/').map_or(url.len(), |at| host + at);
    format!("{}{}", &url[..path], normalized_path(&url[path..]))
}

/// Normalizes a path as upstream's client does (Go's `path.Join`). A Go server answers doubled
/// slashes with a redirection, which loses the posted body.
fn normalized_path(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(config: &str, expected: &str) {
        let config = pintle_value::json::parse(config.as_bytes()).expect(config);
        assert_eq!(Endpoint::of(&config).within(30).url, expected);
    }

    #[test]
    fn a_url_is_normalized_as_upstream_does() {
        for (url, expected) in [
            ("https://a", "https://a/?timeout=30s"),
            ("https://a:1", "https://a:1/?timeout=30s"),
            ("https://a/", "https://a/?timeout=30s"),
            ("https://a/b", "https://a/b?timeout=30s"),
            ("https://a/b/", "https://a/b?timeout=30s"),
            ("https://127.0.0.1:1//failing", "https://127.0.0.1:1/failing?timeout=30s"),
            ("https://a//b///c/../d/./e", "https://a/b/d/e?timeout=30s"),
            ("https://a/../..", "https://a/?timeout=30s"),
            ("https://a/b?c=d#e", "https://a/b?timeout=30s"),
            ("https://a?b=c", "https://a/?timeout=30s"),
        ] {
            check(&format!(r#"{{"url":"{url}"}}"#), expected);
        }
    }

    #[test]
    fn a_service_url_is_built_as_upstream_does() {
        for (path, expected) in
            [("", "/"), ("/", "/"), ("/a", "/a"), ("a", "/a"), ("//a//b/", "/a/b")]
        {
            let service =
                format!(r#"{{"service":{{"namespace":"n","name":"s","path":"{path}"}}}}"#);
            check(&service, &format!("https://s.n.svc:443{expected}?timeout=30s"));
        }
    }
}
