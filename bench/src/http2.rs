//! The same requests over HTTP/2, many per connection.

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::call::Call;
use crate::server::{Answer, Server};

/// A client of a shared connection.
#[derive(Clone)]
pub struct Http2 {
    sender: SendRequest<Full<Bytes>>,
    base: String,
    authorization: Option<String>,
}

impl Http2 {
    /// A new connection; clones of it share it.
    pub async fn connect(server: &Server) -> Result<Self> {
        let stream = server.stream(b"h2").await?;
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        tokio::spawn(connection); // senders receive its errors
        let base = format!("{}://{}", server.scheme(), server.authority);
        Ok(Self { sender, base, authorization: server.authorization() })
    }

    /// Sends a request and reads its response.
    pub async fn exchange(&mut self, call: &Call) -> Result<Answer> {
        let response = self.send(call).await?;
        let status = response.status().as_u16();
        let mut body = response.into_body();
        let mut body_bytes = 0;
        while let Some(frame) = body.frame().await {
            body_bytes += frame?.data_ref().map_or(0, Bytes::len);
        }
        Ok(Answer { status, body_bytes })
    }

    /// Sends a watch; its stream ends when the body is dropped.
    pub async fn open_watch(&mut self, call: &Call) -> Result<Incoming> {
        let response = self.send(call).await?;
        ensure!(response.status() == 200, "a watch was answered {}", response.status());
        Ok(response.into_body())
    }

    async fn send(&mut self, call: &Call) -> Result<Response<Incoming>> {
        let target = std::str::from_utf8(call.target())?;
        let mut request = http::Request::builder()
            .method(call.method)
            .uri(format!("{}{target}", self.base))
            .header("accept", "application/json");
        if let Some(value) = &self.authorization {
            request = request.header("authorization", value);
        }
        if !call.body().is_empty() {
            request = request.header("content-type", call.media_type);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(call.body())))?;
        self.sender.ready().await?;
        self.sender.send_request(request).await.context("HTTP/2")
    }
}
