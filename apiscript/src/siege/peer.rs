//! The connections of a hostile client.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use socket2::{Domain, Protocol as Transport, SockAddr, Socket, Type};

use super::frames::{self, Kind, PREFACE};
use super::row::{Names, Protocol, Row, Step};
use crate::kubeconfig::Cluster;

/// The timeout of connection and handshake. A server at its connection limit does not respond.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// After this time without progress a sender continues with its next connection.
const SEND_TIMEOUT: Duration = Duration::from_millis(20);
/// The receive buffer of a client that does not read its response.
const RECEIVE_BUFFER_BYTES: usize = 4 * 1024;

/// How the server is reached.
pub(super) struct Route {
    address: SocketAddr,
    /// The source address of hostile clients, if it is not the ordinary user's.
    from: Option<IpAddr>,
    name: ServerName<'static>,
    tls: Arc<ClientConfig>,
}

impl Route {
    pub(super) fn new(cluster: &Cluster, from: Option<IpAddr>) -> Result<Self> {
        let authority = cluster.authority()?;
        let address = authority.to_socket_addrs()?.next();
        Ok(Self {
            address: address.ok_or_else(|| anyhow!("{authority} has no address"))?,
            from,
            name: ServerName::try_from(cluster.certificate_name()?)?,
            tls: cluster.tls(true)?,
        })
    }

    fn connect(&self, reads: bool) -> Result<TcpStream> {
        let socket =
            Socket::new(Domain::for_address(self.address), Type::STREAM, Some(Transport::TCP))?;
        if !reads {
            socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
        }
        if let Some(from) = self.from {
            socket.bind(&SockAddr::from(SocketAddr::new(from, 0)))?;
        }
        socket.connect_timeout(&SockAddr::from(self.address), OPEN_TIMEOUT)?;
        socket.set_read_timeout(Some(OPEN_TIMEOUT))?;
        socket.set_write_timeout(Some(OPEN_TIMEOUT))?;
        socket.set_tcp_nodelay(true)?;
        Ok(socket.into())
    }

    fn encrypt(&self, socket: TcpStream, protocol: &[u8]) -> Result<Stream> {
        let mut tls = ClientConfig::clone(&self.tls);
        tls.alpn_protocols = vec![protocol.to_vec()];
        let mut session = ClientConnection::new(Arc::new(tls), self.name.clone())?;
        let mut socket = socket;
        while session.is_handshaking() {
            session.complete_io(&mut socket).context("the handshake")?;
        }
        Ok(Stream::Tls(Box::new(StreamOwned::new(session, socket))))
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// One connection.
pub(super) struct Peer {
    stream: Stream,
    /// The number of the next HTTP/2 stream.
    next_stream: u32,
}

impl Peer {
    /// Connects, and executes a row's first steps.
    pub(super) fn open(route: &Route, row: &Row, names: &Names) -> Result<Self> {
        let socket = route.connect(row.flood)?;
        let stream = match row.speaks {
            Protocol::Tcp => Stream::Plain(socket),
            Protocol::Tls | Protocol::Http1 => route.encrypt(socket, b"http/1.1")?,
            Protocol::Http2 => route.encrypt(socket, b"h2")?,
        };
        let mut peer = Self { stream, next_stream: 1 };
        peer.socket().set_write_timeout(Some(SEND_TIMEOUT))?;
        if row.speaks == Protocol::Http2 {
            let mut first = PREFACE.to_vec();
            // Empty SETTINGS complete the preface. A row's steps may send more SETTINGS.
            frames::frame(Kind::Settings, 0, 0, &[], &mut first);
            peer.send(&first)?;
        }
        peer.take(&row.steps, names)?;
        Ok(peer)
    }

    /// Executes steps; an error if the server has closed the connection.
    pub(super) fn take(&mut self, steps: &[Step], names: &Names) -> Result<()> {
        for step in steps {
            let bytes = step.bytes(names, &mut self.next_stream)?;
            self.send(&bytes)?;
        }
        Ok(())
    }

    /// Sends what the server accepts; the rest is dropped.
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let sent = match &mut self.stream {
            Stream::Plain(socket) => socket.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        };
        match sent {
            Err(error) if !is_timeout(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Reads and discards what has arrived.
    pub(super) fn forget_answers(&mut self) -> Result<()> {
        let mut piece = [0; 64 << 10];
        let socket = self.socket();
        socket.set_nonblocking(true)?;
        let end = loop {
            match (&*socket).read(&mut piece) {
                Ok(0) => break Err(anyhow!("the server closed the connection")),
                Ok(_) => {}
                Err(error) if is_timeout(&error) => break Ok(()),
                Err(error) => break Err(error.into()),
            }
        };
        socket.set_nonblocking(false)?;
        end
    }

    /// Reads until the server closes the connection or the deadline. Returns whether it has closed.
    pub(super) fn is_closed_by(&mut self, deadline: Instant) -> bool {
        let mut piece = [0; 64 << 10];
        let socket = self.socket();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            // `set_read_timeout` refuses a timeout of zero.
            let timeout = left.max(Duration::from_millis(1));
            if socket.set_read_timeout(Some(timeout)).is_err() {
                return true;
            }
            match (&*socket).read(&mut piece) {
                Ok(0) => return true,
                Ok(_) if left.is_zero() => return false,
                Ok(_) => {}
                Err(error) if is_timeout(&error) && left.is_zero() => return false,
                Err(error) if is_timeout(&error) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
    }

    fn socket(&self) -> &TcpStream {
        match &self.stream {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => stream.get_ref(),
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
