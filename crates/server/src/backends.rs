//! Other servers that this one connects to for its clients: where they are dialled, whom they are
//! believed to be, and requests to them.
//!
//! Must not know: what is asked, and for whom.

mod connections;
mod dial;
mod egress;
mod extensions;
mod identity;
mod kubelets;
mod reach;
mod services;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use rustls::ClientConfig;

use connections::Connection;
pub(crate) use connections::Connections;
pub(crate) use dial::{Failure, dial};
pub(crate) use egress::{Way, Ways};
pub(crate) use extensions::{Extensions, Trust, Unreachable};
pub(crate) use kubelets::{Kubelets, Verification};
pub(crate) use reach::Unallowed;
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
    /// Where it was found, if it was looked up before it is dialled.
    pub(crate) addresses: Option<Arc<[SocketAddr]>>,
    /// How it is reached.
    pub(crate) way: Way,
}

/// An answer whose body is on its way.
pub(crate) type Response = http::Response<Answer>;

/// The body of an answer, and what becomes of the connection that it comes over.
pub(crate) struct Answer {
    body: Incoming,
    /// Is told whether the answer was read to the end.
    over: Option<Box<dyn FnOnce(bool) + Send>>,
}

impl PartialEq for Backend {
    fn eq(&self, other: &Self) -> bool {
        let is_same = |(a, b): (&Arc<ClientConfig>, &Arc<ClientConfig>)| Arc::ptr_eq(a, b);
        self.authority == other.authority
            && self.name == other.name
            && self.addresses == other.addresses
            && self.way == other.way
            && self.tls.is_some() == other.tls.is_some()
            && self.tls.as_ref().zip(other.tls.as_ref()).is_none_or(is_same)
    }
}

impl Backend {
    /// Connects, and asks once.
    pub(crate) async fn ask<B>(&self, request: Request<B>) -> Result<Response, Failure>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
            + Send
            + 'static,
    {
        Connection::ask_once(self, request).await
    }
}

impl Answer {
    fn new(body: Incoming, over: impl FnOnce(bool) + Send + 'static) -> Self {
        Self { body, over: Some(Box::new(over)) }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let is_whole = self.body.is_end_stream();
        self.over.take().into_iter().for_each(|over| over(is_whole));
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
