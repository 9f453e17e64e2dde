//! Dials backends, with deadlines; errors have Go's texts.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Backend, Dialer};
use crate::trust::{self, Deprecations, Refusal};

/// Upstream's timeout of dialling and of the TLS handshake.
const DIAL_TIMEOUT: Duration = Duration::from_secs(30);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Dialling failed.
    #[error("{0}")]
    Dial(String),
    /// The certificate is invalid or another server's.
    #[error("tls: failed to verify certificate: {0}")]
    Certificate(Refusal),
    /// The peer reset the connection.
    #[error("read: connection reset by peer")]
    Reset,
    /// The connection broke otherwise, or the peer does not speak HTTP.
    #[error("{0}")]
    Exchange(String),
}

/// A byte stream.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects to a backend, with TLS if it has TLS settings.
pub(crate) async fn connect(backend: &Backend) -> Result<Box<dyn Stream>, Failure> {
    connect_with_deprecations(backend).await.map(|(stream, _)| stream)
}

/// [`connect`], with the deprecated properties of the backend's certificates.
pub(super) async fn connect_with_deprecations(
    backend: &Backend,
) -> Result<(Box<dyn Stream>, Deprecations), Failure> {
    let authority = backend.authority.as_str();
    let stream = tokio::time::timeout(DIAL_TIMEOUT, reach(backend)).await;
    let stream = stream.unwrap_or_else(|_| Err(format!("dial tcp {authority}: i/o timeout")));
    let stream = stream.map_err(Failure::Dial)?;
    let Some(tls) = &backend.tls else { return Ok((stream, Deprecations::default())) };
    let name = server_name(backend.name.as_deref().unwrap_or_else(|| host(authority)));
    let name = name.map_err(Failure::Dial)?;
    let handshake = TlsConnector::from(tls.clone()).connect(name, stream);
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
        Ok(Ok(stream)) => {
            let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
            let deprecations = Deprecations::of_chain(chain);
            Ok((Box::new(stream), deprecations))
        }
        Ok(Err(why)) => Err(Failure::of_handshake(&why)),
        Err(_) => Err(Failure::Dial("net/http: TLS handshake timeout".to_owned())),
    }
}

/// Connects directly or through the proxy, to the resolved addresses if there are any.
async fn reach(backend: &Backend) -> Result<Box<dyn Stream>, String> {
    let authority = backend.authority.as_str();
    let found = backend.addresses.as_deref();
    if let Dialer::Proxy(proxy) = &backend.dialer {
        let found = found.and_then(|found| found.first()).map(SocketAddr::to_string);
        return proxy.dial(found.as_deref().unwrap_or(authority)).await;
    }
    let stream = match found {
        Some(found) => {
            TcpStream::connect(found).await.map_err(|why| dial_error(authority, &why))?
        }
        None => dial(authority).await?,
    };
    let _ = stream.set_nodelay(true); // a failure only costs latency
    Ok(Box::new(stream))
}

/// The name that a certificate must have.
pub(super) fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(host.to_owned()).map_err(|why| why.to_string())
}

/// The host of `host:port`.
pub(super) fn host(authority: &str) -> &str {
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

impl Failure {
    pub(super) fn of_handshake(why: &std::io::Error) -> Self {
        let cause = why.get_ref().and_then(|cause| cause.downcast_ref());
        match cause {
            Some(why @ rustls::Error::InvalidCertificate(_)) => {
                Self::Certificate(trust::refusal(why))
            }
            Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => {
                Self::Dial("tls: first record does not look like a TLS handshake".to_owned())
            }
            _ => Self::Dial(why.to_string()),
        }
    }
}

/// Connects to an address.
pub(crate) async fn dial(address: &str) -> Result<TcpStream, String> {
    TcpStream::connect(address).await.map_err(|why| dial_error(address, &why))
}

fn dial_error(address: &str, why: &io::Error) -> String {
    match why.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("dial tcp {address}: connect: connection refused")
        }
        _ => format!("dial tcp {address}: {why}"),
    }
}

/// Resolves a host, and adds the port.
pub(super) async fn look_up(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let found = tokio::time::timeout(DIAL_TIMEOUT, tokio::net::lookup_host((host, port))).await;
    let found = found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    found.map(Iterator::collect).map_err(|why| format!("lookup {host}: {why}"))
}
