//! A client that takes a snapshot of a running server.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use pintle_value::{Value, json};

use crate::backends::{Dialers, Response};
use crate::request_info::SNAPSHOT;
use crate::webhooks::Remote;

/// How long the server may take to begin its response, and then to send each further piece.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The most bytes of an error's body; a longer body is ignored.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// A snapshot of a running server, as it arrives.
pub struct Download(Response);

impl Download {
    /// Asks the server of a kubeconfig's current context.
    ///
    /// # Errors
    /// The kubeconfig is invalid, or the server gives no snapshot. The text says why.
    pub async fn begin(kubeconfig: &Path) -> Result<Self, String> {
        let remote = Remote::read(kubeconfig, &Dialers::direct());
        let remote = remote.map_err(|why| format!("{}: {why}", kubeconfig.display()))?;
        let response = within(remote.get(SNAPSHOT)).await?;
        match response.status().as_u16() {
            200 => Ok(Self(response)),
            code => {
                let body = Limited::new(response.into_body(), ERROR_BYTES_MAX);
                let body = within(async { body.collect().await.map_err(|why| why.to_string()) });
                let body = body.await.map(|body| body.to_bytes()).unwrap_or_default();
                let status = json::parse(&body).unwrap_or_default();
                let message = status.get("message").and_then(Value::as_str).unwrap_or_default();
                Err(match message {
                    "" => format!("the server answered {code}; is it Pintle?"),
                    message => format!("the server refuses: {message}"),
                })
            }
        }
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// The rest does not arrive. The text says why.
    pub async fn next(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            let frame = async { Ok(self.0.body_mut().frame().await) };
            match within(frame).await?.transpose().map_err(|why| why.to_string())? {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }
}

async fn within<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let done = tokio::time::timeout(REQUEST_TIMEOUT, work).await;
    done.unwrap_or_else(|_| Err(format!("the server did not answer in {REQUEST_TIMEOUT:?}")))
}
