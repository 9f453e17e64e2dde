//! Webhooks: where they are, and the seam by which they are called. How a request travels is the caller's
//! matter.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

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
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send + 'a>>;

/// Carries requests to webhooks.
pub trait Caller: Send + Sync {
    /// POSTs JSON, within a time, and gives the answer, of bounded length.
    fn call<'a>(&'a self, endpoint: &'a Endpoint, body: Vec<u8>, patience: Duration) -> Answer<'a>;

    /// A new uid.
    fn uid(&self) -> Str;
}

impl Endpoint {
    /// What a `clientConfig` says.
    pub fn of(config: &Value) -> Self {
        let ca_bundle = config.str_at(&["caBundle"]).and_then(|text| STANDARD.decode(text).ok());
        let ca_bundle = ca_bundle.unwrap_or_default();
        if let Some(url) = config.str_at(&["url"]) {
            return Self { url: url.to_owned(), service: None, ca_bundle };
        }
        let text = |key: &str| config.str_at(&["service", key]).unwrap_or_default();
        let port = config.at(&["service", "port"]).and_then(Value::as_int).unwrap_or(443);
        let port = u16::try_from(port).unwrap_or(443);
        let (namespace, name, path) = (text("namespace"), text("name"), text("path"));
        let url = format!("https://{name}.{namespace}.svc:{port}/{}", path.trim_start_matches('/'));
        Self { url, service: Some((namespace.into(), name.into(), port)), ca_bundle }
    }

    /// Tells the webhook how long is waited for it, as upstream's client does.
    pub fn within(mut self, seconds: u64) -> Self {
        let host = self.url.find("://").map_or(0, |at| at + 3);
        let end = self.url[host..].find(['/', '?']).map_or(self.url.len(), |at| host + at);
        if !self.url[end..].starts_with('/') {
            self.url.insert(end, '/');
        }
        let mark = if self.url.contains('?') { '&' } else { '?' };
        self.url.push_str(&format!("{mark}timeout={seconds}s"));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_how_long_is_waited() {
        for (url, expected) in [
            ("https://a", "https://a/?timeout=30s"),
            ("https://a:1", "https://a:1/?timeout=30s"),
            ("https://a/", "https://a/?timeout=30s"),
            ("https://a/b", "https://a/b?timeout=30s"),
            ("https://a?b=c", "https://a/?b=c&timeout=30s"),
        ] {
            let endpoint = Endpoint { url: url.to_owned(), service: None, ca_bundle: Vec::new() };
            assert_eq!(endpoint.within(30).url, expected);
        }
    }
}
