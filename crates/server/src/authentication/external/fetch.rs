//! Fetches the documents of OpenID providers over HTTPS.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use rustls::ClientConfig;

use crate::backends::{Backend, Connections, Dialer};
use crate::trust;

/// The longest document that is read, in bytes.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The HTTPS client of a provider.
pub(super) struct Client {
    tls: Arc<ClientConfig>,
    dialer: Dialer,
    connections: Arc<Connections>,
}

impl Client {
    /// Trusts these CAs in PEM; the system's if empty.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn new(authorities_pem: &str, dialer: Dialer) -> Result<Self, String> {
        let tls = Arc::new(trust::bundle(authorities_pem.as_bytes(), None)?);
        Ok(Self { tls, dialer, connections: Arc::default() })
    }

    /// Fetches a URL.
    ///
    /// # Errors
    /// The reason of the failure.
    pub(super) async fn get(&self, url: &str) -> Result<Bytes, String> {
        let fetched = tokio::time::timeout(TIMEOUT, self.exchange(url)).await;
        let fetched = fetched.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
        fetched.map_err(|why| format!("Get {url:?}: {why}"))
    }

    async fn exchange(&self, url: &str) -> Result<Bytes, String> {
        let uri: Uri = url.parse().map_err(|_| "the URL is malformed")?;
        if uri.scheme_str() != Some("https") {
            return Err("the URL must begin with https://".to_owned());
        }
        let host = uri.host().ok_or("the URL names no host")?;
        let backend = Backend {
            authority: format!("{host}:{}", uri.port_u16().unwrap_or(443)),
            name: Some(host.trim_start_matches('[').trim_end_matches(']').to_owned()),
            tls: Some(self.tls.clone()),
            addresses: None,
            dialer: self.dialer.clone(),
        };
        let request = Request::get(uri.path_and_query().map_or("/", |path| path.as_str()))
            .header(HOST, uri.authority().map_or("", |authority| authority.as_str()))
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, "kube-apiserver")
            .body(Empty::<Bytes>::new())
            .map_err(|why| why.to_string())?;
        let answer = self.connections.ask(&backend, request).await;
        let (head, body) = answer.map_err(|why| why.to_string())?.into_parts();
        if head.status != StatusCode::OK {
            return Err(format!("the answer is {}", head.status));
        }
        let body = Limited::new(body, DOCUMENT_BYTES_MAX).collect().await;
        Ok(body.map_err(|why| why.to_string())?.to_bytes())
    }
}
