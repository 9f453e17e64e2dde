//! A request to an extension API server whose answer is read here, and not handed on.

use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Request, response};
use http_body_util::{BodyExt, Full, Limited};
use pintle_auth::User;

use super::{Aggregation, ApiService, identity};

/// More of an answer is not read.
const ANSWER_BYTES_MAX: usize = 16 << 20;

impl Aggregation {
    /// Asks as a user, and reads the answer.
    pub(super) async fn exchange(
        &self,
        service: &ApiService,
        user: &User,
        mut request: Request<Full<Bytes>>,
        patience: Duration,
    ) -> Result<(response::Parts, Bytes), String> {
        let backend = self.backend(service).map_err(|why| why.to_string())?;
        let host = HeaderValue::try_from(&backend.authority).map_err(|why| why.to_string())?;
        request.headers_mut().insert(HOST, host);
        identity::write(user, request.headers_mut())?;
        let answer = async {
            let answer =
                self.extensions.ask(&backend, request).await.map_err(|why| why.to_string())?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            Ok((head, body.map_err(|why| why.to_string())?.to_bytes()))
        };
        let late = |_| Err("request timed out".to_owned());
        tokio::time::timeout(patience, answer).await.unwrap_or_else(late)
    }
}
