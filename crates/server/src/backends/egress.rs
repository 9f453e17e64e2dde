//! Connects to backends directly or through an HTTP CONNECT proxy (upstream: `EgressSelector`).

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::dial::{self, Failure, Stream};
use super::measures::{DialStage, Dials};
use crate::config::{Egress, EgressSelector, EgressTls, Transport};
use crate::pki::{self, Credentials};
use crate::trust::DeprecatedServers;
use crate::{Error, trust};

const FLAG: &str = "egress-selector-config-file";
/// The largest response to CONNECT.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Opens connections to backends: directly, or through a proxy.
#[derive(Clone)]
pub(crate) enum Dialer {
    Direct,
    Proxy(Arc<Proxy>),
}

/// A proxy.
pub(crate) struct Proxy {
    address: Address,
    dials: Arc<Dials>,
}

/// The address of a proxy.
enum Address {
    Tcp { authority: String, tls: Option<(ServerName<'static>, Arc<ClientConfig>)> },
    Unix(PathBuf),
}

impl PartialEq for Dialer {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Direct, Self::Direct) => true,
            (Self::Proxy(one), Self::Proxy(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

/// The dialers by destination.
#[derive(Clone)]
pub(crate) struct Dialers {
    /// For nodes, pods and services.
    pub(crate) cluster: Dialer,
    /// For servers that have a URL.
    pub(crate) control_plane: Dialer,
    /// Measures of proxies.
    pub(crate) dials: Arc<Dials>,
    /// Servers with deprecated certificates.
    pub(crate) deprecated: Arc<DeprecatedServers>,
}

impl Dialers {
    /// Reads the configured certificates and keys.
    pub(crate) fn new(selector: &EgressSelector) -> Result<Self, Error> {
        let dials = Arc::<Dials>::default();
        let cluster = Dialer::new(&selector.cluster, &dials)?;
        let control_plane = Dialer::new(&selector.control_plane, &dials)?;
        Ok(Self { cluster, control_plane, dials, deprecated: Arc::default() })
    }

    /// Direct connections.
    pub(crate) fn direct() -> Self {
        Self {
            cluster: Dialer::Direct,
            control_plane: Dialer::Direct,
            dials: Arc::default(),
            deprecated: Arc::default(),
        }
    }
}

impl Dialer {
    fn new(egress: &Egress, dials: &Arc<Dials>) -> Result<Self, Error> {
        let address = match egress {
            Egress::Direct => return Ok(Self::Direct),
            Egress::HttpConnect(Transport::Unix(path)) => Address::Unix(path.clone()),
            Egress::HttpConnect(Transport::Tcp(authority, tls)) => {
                let tls = tls.as_ref().map(|tls| read(authority, tls)).transpose()?;
                Address::Tcp { authority: authority.clone(), tls }
            }
        };
        Ok(Self::Proxy(Arc::new(Proxy { address, dials: dials.clone() })))
    }
}

fn read(
    authority: &str,
    tls: &EgressTls,
) -> Result<(ServerName<'static>, Arc<ClientConfig>), Error> {
    let authorities = tls.ca_bundle.as_ref().map(|path| pki::read_authorities(path, FLAG));
    let bundle = authorities.transpose()?.unwrap_or_default();
    let credentials = Credentials::read(&tls.client_cert, &tls.client_key, [FLAG, FLAG])?;
    let failed = |why: String| Error::Tls(why).of(FLAG);
    let identity = trust::Identity::read(&credentials).map_err(failed)?;
    let config = trust::bundle(bundle.as_bytes(), Some(&identity)).map_err(failed)?;
    let name = tls.server_name.as_deref().unwrap_or_else(|| dial::host(authority));
    let name = dial::server_name(name).map_err(failed)?;
    Ok((name, Arc::new(config)))
}

impl Proxy {
    /// Connects through the proxy.
    pub(super) async fn dial(&self, to: &str) -> Result<Box<dyn Stream>, String> {
        let (transport, began) = (self.address.transport(), Instant::now());
        self.dials.begin(transport);
        let connected = self.address.connect().await;
        let (name, mut stream) =
            connected.inspect_err(|_| self.dials.fail(transport, DialStage::Connect))?;
        connect(&mut stream, to, &name)
            .await
            .inspect_err(|_| self.dials.fail(transport, DialStage::Proxy))?;
        self.dials.took(transport, began.elapsed());
        Ok(stream)
    }
}

impl Address {
    const fn transport(&self) -> &'static str {
        match self {
            Self::Tcp { .. } => "tcp",
            Self::Unix(_) => "uds",
        }
    }

    /// Connects to the proxy; returns its name for messages, too.
    async fn connect(&self) -> Result<(String, Box<dyn Stream>), String> {
        match self {
            Self::Unix(path) => {
                let failed = |why: std::io::Error| format!("dial unix {}: {why}", path.display());
                let stream = UnixStream::connect(path).await.map_err(failed)?;
                Ok((path.display().to_string(), Box::new(stream)))
            }
            Self::Tcp { authority, tls } => {
                let stream = dial::dial(authority).await?;
                let stream: Box<dyn Stream> = match tls {
                    None => Box::new(stream),
                    Some((name, config)) => {
                        let connector = TlsConnector::from(config.clone());
                        let encrypted = connector.connect(name.clone(), stream).await;
                        Box::new(encrypted.map_err(|why| Failure::of_handshake(&why).to_string())?)
                    }
                };
                Ok((authority.clone(), stream))
            }
        }
    }
}

/// Sends CONNECT and reads the proxy's response.
async fn connect(stream: &mut Box<dyn Stream>, to: &str, proxy: &str) -> Result<(), String> {
    let failed = |why: &dyn std::fmt::Display| {
        format!("reading HTTP response from CONNECT to {to} via proxy {proxy} failed: {why}")
    };
    let request = format!("CONNECT {to} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|why| failed(&why))?;
    stream.flush().await.map_err(|why| failed(&why))?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() == ANSWER_BYTES_MAX {
            return Err(failed(&"it is too long"));
        }
        // Reads byte by byte, so that no byte of the backend is consumed.
        answer.push(stream.read_u8().await.map_err(|why| failed(&why))?);
    }
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut headers);
    head.parse(&answer).map_err(|why| failed(&why))?;
    match head.code.unwrap_or_default() {
        200 => Ok(()),
        code => Err(format!(
            "proxy error from {proxy} while dialing {to}, code {code}: {code} {}",
            head.reason.unwrap_or_default()
        )),
    }
}
