//! Requests to extension API servers whose responses this server reads itself.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, HeaderValue};
use http::{Request, response};
use http_body_util::{BodyExt, Full, Limited};
use pintle_auth::User;

use super::{Aggregation, ApiService, identity};
use crate::backends;

/// The timeout of a request for a document, as upstream's.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The largest response, and the longest line of a watch, in bytes.
pub(super) const ANSWER_BYTES_MAX: usize = 16 << 20;

impl Aggregation {
    /// Sends a request as a user and reads the response.
    pub(super) async fn exchange(
        &self,
        service: &ApiService,
        user: &User,
        request: Request<Full<Bytes>>,
        timeout: Duration,
    ) -> Result<(response::Parts, Bytes), String> {
        let answer = async {
            let (head, body) = self.exchange_begun(service, user, request).await?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            Ok((head, body.map_err(|why| why.to_string())?.to_bytes()))
        };
        let late = |_| Err("request timed out".to_owned());
        tokio::time::timeout(timeout, answer).await.unwrap_or_else(late)
    }

    /// Sends a request as a user and returns when the response begins.
    pub(super) async fn exchange_begun(
        &self,
        service: &ApiService,
        user: &User,
        mut request: Request<Full<Bytes>>,
    ) -> Result<backends::Response, String> {
        let backend = self.backend(service).map_err(|why| why.to_string())?;
        let host = HeaderValue::try_from(&backend.authority).map_err(|why| why.to_string())?;
        request.headers_mut().insert(HOST, host);
        identity::write(user, request.headers_mut())?;
        self.extensions.ask(&backend, request).await.map_err(|why| why.to_string())
    }

    /// Requests a document as this server's own user.
    pub(super) async fn get(
        &self,
        service: &ApiService,
        path: &str,
        accept: &'static str,
    ) -> Result<(http::response::Parts, Bytes), String> {
        let request = Request::get(path).header(ACCEPT, HeaderValue::from_static(accept));
        let request = request.body(Full::default()).map_err(|why| why.to_string())?;
        self.exchange(service, &Self::itself(), request, TIMEOUT).await
    }
}

/// Reads a JSON document.
pub(super) fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|why| why.to_string())
}
