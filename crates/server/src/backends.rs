//! Clients of other servers: dialling, TLS, and HTTP requests.
//!
//! Must not know the purpose of a request, nor its user.

mod connections;
mod dial;
mod egress;
mod extensions;
mod identity;
mod kubelets;
mod measures;
mod reach;
mod services;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use rustls::ClientConfig;

use connections::Connection;
pub(crate) use connections::Connections;
pub(crate) use dial::{Failure, connect, dial};
pub(crate) use egress::{Dialer, Dialers};
pub(crate) use extensions::{Extensions, Trust, Unreachable};
pub(crate) use kubelets::{Kubelets, Verification};
pub(crate) use measures::{DIAL_BOUNDS, Dials};
pub(crate) use reach::Refused;
pub(crate) use services::Services;

use crate::trust::Deprecations;

/// The address and TLS settings of a server.
#[derive(Clone)]
pub(crate) struct Backend {
    /// `host:port`
    pub(crate) authority: String,
    /// The name that its certificate must have, if it is not the host.
    pub(crate) name: Option<String>,
    /// Its TLS settings; `None` for plain HTTP.
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// Its resolved addresses, if they were resolved and checked before dialling.
    pub(crate) addresses: Option<Arc<[SocketAddr]>>,
    /// Connects to the backend, directly or through a proxy.
    pub(crate) dialer: Dialer,
}

/// A response whose body is still arriving.
pub(crate) type Response = http::Response<ResponseBody>;

/// A response body that controls the reuse of its connection.
pub(crate) struct ResponseBody {
    body: Incoming,
    /// Called with true if the body was read to its end.
    over: Option<Box<dyn FnOnce(bool) + Send>>,
}

impl PartialEq for Backend {
    fn eq(&self, other: &Self) -> bool {
        let is_same = |(a, b): (&Arc<ClientConfig>, &Arc<ClientConfig>)| Arc::ptr_eq(a, b);
        self.authority == other.authority
            && self.name == other.name
            && self.addresses == other.addresses
            && self.dialer == other.dialer
            && self.tls.is_some() == other.tls.is_some()
            && self.tls.as_ref().zip(other.tls.as_ref()).is_none_or(is_same)
    }
}

impl Backend {
    /// The host of its address.
    pub(crate) fn host(&self) -> &str {
        dial::host(&self.authority)
    }

    /// Sends one request on a new connection.
    pub(crate) async fn ask<B>(&self, request: Request<B>) -> Result<Response, Failure>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
            + Send
            + 'static,
    {
        Connection::ask_once(self, request).await
    }
}

/// The deprecated properties of the certificates of the server that a request was sent to.
pub(crate) fn deprecations(answer: &Result<Response, Failure>) -> Deprecations {
    match answer {
        Ok(answer) => answer.extensions().get().copied().unwrap_or_default(),
        Err(Failure::Certificate(refusal)) => refusal.deprecations,
        Err(_) => Deprecations::default(),
    }
}

impl ResponseBody {
    fn new(body: Incoming, over: impl FnOnce(bool) + Send + 'static) -> Self {
        Self { body, over: Some(Box::new(over)) }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        let is_whole = self.body.is_end_stream();
        self.over.take().into_iter().for_each(|over| over(is_whole));
    }
}

/// Appends the first bytes of a body to `text`, until it has `bytes_max` bytes or the body ends.
/// The text has the bytes that arrived even if the body fails or the future is dropped.
pub(crate) async fn read_start<B>(
    mut body: B,
    text: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<(), B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    while text.len() < bytes_max
        && let Some(frame) = body.frame().await.transpose()?
    {
        let data = frame.data_ref().map_or(&[][..], |data| data);
        text.extend_from_slice(&data[..data.len().min(bytes_max - text.len())]);
    }
    Ok(())
}

impl Body for ResponseBody {
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
