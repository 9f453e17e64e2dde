//! Connections to webhooks: made when they are needed, and kept for the next call for a while.
//!
//! Invariant: a connection that is kept has been answered whole, so that the next answer on it is the next
//! request's.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use crate::backends::dial;

/// How many are kept.
const KEPT_MAX: usize = 64;
/// How long one is kept without a call; Go's clients wait as long.
const KEPT_FOR: Duration = Duration::from_secs(90);

/// The connections that nobody uses at the moment, in the order in which they were given back.
#[derive(Default)]
pub(super) struct Connections(Mutex<Vec<(Whereto, Connection, Instant)>>);

/// Where a connection goes, and whom it believes.
#[derive(Clone)]
pub(super) struct Whereto {
    /// `host:port`
    pub(super) address: String,
    /// Whose certificate the server must have.
    pub(super) host: String,
    pub(super) trust: Arc<ClientConfig>,
}

impl PartialEq for Whereto {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
            && self.host == other.host
            && Arc::ptr_eq(&self.trust, &other.trust)
    }
}

/// A connection; it ends when it is dropped.
pub(super) struct Connection(SendRequest<Full<Bytes>>);

impl Connections {
    /// The one that was used last of those that go there.
    pub(super) fn take(&self, to: &Whereto) -> Option<Connection> {
        let mut kept = self.0.lock();
        kept.retain(|(_, connection, since)| {
            since.elapsed() < KEPT_FOR && !connection.0.is_closed()
        });
        let place = kept.iter().rposition(|(other, _, _)| other == to)?;
        Some(kept.remove(place).1)
    }

    /// Keeps one whose answer has been read, in place of the oldest if there are too many.
    pub(super) fn give_back(&self, to: Whereto, connection: Connection) {
        if connection.0.is_closed() {
            return;
        }
        let mut kept = self.0.lock();
        if kept.len() >= KEPT_MAX {
            kept.remove(0);
        }
        kept.push((to, connection, Instant::now()));
    }
}

impl Connection {
    /// Makes one.
    pub(super) async fn open(to: &Whereto) -> Result<Self, String> {
        let stream = dial(&to.address).await?;
        let _ = stream.set_nodelay(true); // only slower without
        let server = ServerName::try_from(to.host.clone()).map_err(|why| why.to_string())?;
        let stream = TlsConnector::from(to.trust.clone()).connect(server, stream).await;
        let stream = stream.map_err(|why| format!("tls: failed to verify certificate: {why}"))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|why| why.to_string())?;
        // It ends with its sender, or when the server leaves; either is seen at the next call.
        tokio::spawn(connection);
        Ok(Self(sender))
    }

    /// Sends a request when the one before is over.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<Response<Incoming>> {
        self.0.ready().await?;
        self.0.send_request(request).await
    }
}
