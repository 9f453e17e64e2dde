//! Requests to extension API servers whose responses this server reads itself.

use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Request, response};
use http_body_util::{BodyExt, Full, Limited};
use pintle_auth::User;

use super::{Aggregation, ApiService, identity};
use crate::backends;

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
}
