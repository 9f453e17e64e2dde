//! Clients of gRPC services that need no TLS: KMS plugins, and collectors of traces.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::uri::{Authority, Scheme};
use hyper::client::conn::http2::Builder;
use hyper_util::rt::TokioExecutor;
use pintle_grpc::{Connection, Failure, Service};
use prost::Message;
use tokio::net::UnixStream;
use tokio::sync::Mutex;

use crate::backends::{self, Backend};

/// The size limit of a response.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// The address of a service.
pub(crate) enum Destination {
    Unix(PathBuf),
    Tcp(Box<Backend>),
}

/// A client of one service, with its connection if one is open.
pub(crate) struct Channel {
    destination: Destination,
    connection: Mutex<Option<Connection>>,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let destination: &dyn fmt::Debug = match &self.destination {
            Destination::Unix(path) => path,
            Destination::Tcp(backend) => &backend.authority,
        };
        f.debug_tuple("Channel").field(destination).finish()
    }
}

impl Channel {
    /// A service to which a connection is opened by the first call.
    pub(crate) fn new(destination: Destination) -> Self {
        Self { destination, connection: Mutex::new(None) }
    }

    /// Calls a method once with a [framed](pintle_grpc::framed) message. The caller sets the
    /// deadline.
    pub(crate) async fn call<R: Message + Default>(
        &self,
        method: &str,
        request: &Bytes,
    ) -> Result<R, Failure> {
        self.connection().await?.call(method, request.clone()).await
    }

    /// Drops the connection, which may be stuck. The next call opens another one.
    pub(crate) async fn reset(&self) {
        *self.connection.lock().await = None;
    }

    /// Returns the open connection, or a new one if none is open.
    async fn connection(&self) -> Result<Connection, Failure> {
        let mut cached = self.connection.lock().await;
        if let Some(connection) = cached.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        let builder = Builder::new(TokioExecutor::new());
        let connection = match &self.destination {
            Destination::Unix(path) => {
                let service = service(Authority::from_static("localhost"));
                let socket = UnixStream::connect(path).await.map_err(Failure::unsent)?;
                Connection::open(socket, &builder, service).await?
            }
            Destination::Tcp(backend) => {
                let service = service(backend.authority.parse().map_err(Failure::unsent)?);
                let socket = backends::connect(backend).await.map_err(Failure::unsent)?;
                Connection::open(socket, &builder, service).await?
            }
        };
        Ok(cached.insert(connection).clone())
    }
}

fn service(authority: Authority) -> Arc<Service> {
    let message_bytes_max = RESPONSE_BYTES_MAX;
    Arc::new(Service { scheme: Scheme::HTTP, authority, message_bytes_max })
}
