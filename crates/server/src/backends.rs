//! Other servers that this one connects to for its clients: where they are dialled, whom they are
//! believed to be, and one request to them.
//!
//! Must not know: what is asked, and for whom.

mod dial;
mod extensions;
mod identity;
mod kubelets;
mod services;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::task::JoinHandle;

pub(crate) use dial::{Failure, dial};
pub(crate) use extensions::{Extensions, Trust, Unreachable};
pub(crate) use kubelets::{Kubelets, Verification};
pub(crate) use services::Services;

/// Where a request goes.
#[derive(Clone)]
pub(crate) struct Backend {
    /// `host:port`
    pub(crate) authority: String,
    /// The name that its certificate must have, where that is not its host's.
    pub(crate) name: Option<String>,
    /// Who it must be; nothing where it speaks without TLS.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// An answer whose body is on its way.
pub(crate) type Response = http::Response<Answer>;

/// The body of an answer, and the connection that it comes over, which ends with it.
pub(crate) struct Answer {
    body: Incoming,
    _connection: Connection,
}

/// What drives a connection; it ends when this is dropped.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Backend {
    /// Connects, and asks once.
    pub(crate) async fn ask<B>(&self, request: Request<B>) -> Result<Response, Failure>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
            + Send
            + Unpin
            + 'static,
    {
        let stream = dial::connect(self).await?;
        let failed = |why: hyper::Error| Failure::Exchange(why.to_string());
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
        let connection = Connection(tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "a connection to a backend broke");
            }
        }));
        let response = sender.send_request(request).await.map_err(failed)?;
        Ok(response.map(|body| Answer { body, _connection: connection }))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
