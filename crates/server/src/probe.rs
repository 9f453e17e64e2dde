//! Checks the health of a program on this machine, with upstream's texts.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{HOST, USER_AGENT};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use crate::backends::{self, dial};
use crate::trust;

/// The timeout of the check.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The most bytes that are read of a response's body; the rest of a longer body is ignored.
const ANSWER_BYTES_MAX: usize = 10 << 10;

/// Requests `https://127.0.0.1:PORT/healthz`; returns the body of a successful response. The error
/// has upstream's text, or is the body of a response with an error code.
pub(crate) async fn healthz(port: u16) -> Result<String, String> {
    let outcome = tokio::time::timeout(TIMEOUT, get(port)).await;
    let outcome = outcome.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
    let (is_success, text) =
        outcome.map_err(|why| format!("Get \"https://127.0.0.1:{port}/healthz\": {why}"))?;
    if is_success { Ok(text) } else { Err(text) }
}

/// Returns the body of the response, and true if its code is a success or a redirect.
async fn get(port: u16) -> Result<(bool, String), String> {
    let text = |why: hyper::Error| why.to_string();
    let address = format!("127.0.0.1:{port}");
    let stream = dial(&address).await?;
    let connector = TlsConnector::from(Arc::new(trust::anyone(None)?));
    let server = ServerName::from(std::net::Ipv4Addr::LOCALHOST);
    let stream = connector.connect(server, stream).await.map_err(|why| why.to_string())?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(text)?;
    let connection = tokio::spawn(connection);
    let request = Request::get("/healthz")
        .header(HOST, address)
        .header(USER_AGENT, "kube-probe")
        .body(Empty::<Bytes>::new())
        .map_err(|why| why.to_string())?;
    let answer = sender.send_request(request).await.map_err(text)?;
    let is_success = (200..400).contains(&answer.status().as_u16());
    let mut body = Vec::new();
    let read = backends::read_start(answer.into_body(), &mut body, ANSWER_BYTES_MAX).await;
    connection.abort();
    read.map_err(text)?;
    Ok((is_success, String::from_utf8_lossy(&body).into_owned()))
}
