//! Webhooks: where they are, and the seam by which they are called. How a request travels is the caller's
//! matter.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_value::{Str, Value};

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// `https://…`; for a service, with its name as host: `https://name.namespace.svc:443/path`.
    pub url: String,
    /// The service, where it is one: its namespace, its name, its port.
    pub service: Option<(Str, Str, u16)>,
    /// PEM, which alone is trusted; empty for the system's authorities. A certificate in it is trusted
    /// even where it is no authority, as Go does.
    pub ca_bundle: Vec<u8>,
}

/// The body of an answer with status 200, or why there is none.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, Unanswered>> + Send + 'a>>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unanswered {
    /// In the words of upstream's client.
    pub why: String,
    /// The status that the webhook's server answered with, or 503 where it did not answer.
    pub code: u16,
    /// Whether the server says that another attempt may succeed.
    pub is_transient: bool,
}

impl Unanswered {
    /// Nothing came back.
    pub const fn silent(why: String) -> Self {
        Self { why, code: 503, is_transient: false }
    }
}

/// Carries requests to webhooks.
pub trait Caller: Send + Sync {
    /// POSTs JSON, within a time, and gives the answer, of bounded length.
    fn call<'a>(&'a self, endpoint: &'a Endpoint, body: Vec<u8>, patience: Duration) -> Answer<'a>;

    /// A new uid.
    fn uid(&self) -> Str;

    /// The time, for [`Self::converted`].
    fn now(&self) -> Instant;

    /// Counts a conversion that began at a time and has ended now.
    fn converted(&self, conversion: &Conversion<'_>, began: Instant);
}

/// A conversion that a webhook was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Conversion<'a> {
    /// The name of the definition that names the webhook.
    pub definition: &'a str,
    /// The version that the first object was in, without its group.
    pub from: &'a str,
    /// The version that was wanted, without its group.
    pub to: &'a str,
    /// Why it failed, if it did.
    pub failure: Option<ConversionFailure>,
}

/// Why a conversion failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversionFailure {
    /// There was no answer.
    Call,
    /// What was answered is no answer to what was asked, or says that the webhook failed.
    MalformedResponse,
    /// There are other numbers of objects in the question and in the answer.
    PartialResponse,
    /// An object of the answer is not the one that was sent in the version that was wanted.
    InvalidConvertedObject,
}

impl Endpoint {
    /// What a `clientConfig` says.
    pub fn of(config: &Value) -> Self {
        let ca_bundle = config.str_at(&["caBundle"]).and_then(|text| STANDARD.decode(text).ok());
        let ca_bundle = ca_bundle.unwrap_or_default();
        if let Some(url) = config.str_at(&["url"]) {
            return Self { url: asked_url(url), service: None, ca_bundle };
        }
        let text = |key: &str| config.str_at(&["service", key]).unwrap_or_default();
        let port = config.at(&["service", "port"]).and_then(Value::as_int).unwrap_or(443);
        let port = u16::try_from(port).unwrap_or(443);
        let (namespace, name, path) = (text("namespace"), text("name"), asked_path(text("path")));
        let url = format!("https://{name}.{namespace}.svc:{port}{path}");
        Self { url, service: Some((namespace.into(), name.into(), port)), ca_bundle }
    }

    /// Tells the webhook how long is waited for it, as upstream's client does.
    pub fn within(mut self, seconds: u64) -> Self {
        self.url.push_str(&format!("?timeout={seconds}s"));
        self
    }
}

/// A URL as upstream's client asks for it: what is behind the path says nothing.
fn asked_url(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let host = url.find("://").map_or(0, |at| at + 3);
    let path = url[host..].find('/').map_or(url.len(), |at| host + at);
    format!("{}{}", &url[..path], asked_path(&url[path..]))
}

/// A path as upstream's client asks for it (Go's `path.Join`). Harnesses write doubled slashes, and a Go
/// server answers those with a redirection, on which what was posted is lost.
fn asked_path(path: &str) -> String {
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
    fn a_url_is_asked_for_as_upstream_does() {
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
    fn a_service_is_asked_for_as_upstream_does() {
        for (path, expected) in
            [("", "/"), ("/", "/"), ("/a", "/a"), ("a", "/a"), ("//a//b/", "/a/b")]
        {
            let service =
                format!(r#"{{"service":{{"namespace":"n","name":"s","path":"{path}"}}}}"#);
            check(&service, &format!("https://s.n.svc:443{expected}?timeout=30s"));
        }
    }
}
