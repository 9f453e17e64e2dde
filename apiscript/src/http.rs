//! A small blocking HTTP/1.1 client that sends exactly the bytes it is given.
//!
//! A library client would refuse or repair half of what the scripts and the hostile requests are
//! about (odd paths, doubled headers, bad bodies), so the connection is our own. It knows nothing
//! of Kubernetes. Invariant: after an error a connection is never used again.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use rustls::{ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;

use crate::kubeconfig::Cluster;

/// The most bytes of a response's body: a server that sends more is wrong.
const BODY_LIMIT: usize = 256 << 20;
/// The most bytes of a response's head.
const HEAD_LIMIT: usize = 1 << 20;

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The method, sent as it is.
    pub method: String,
    /// Path and query, sent as they are.
    pub target: String,
    /// Header lines. `Host` is added before them if they lack it, and `Content-Length` for a body.
    pub headers: Vec<(String, String)>,
    /// The body; `None` sends no `Content-Length` either.
    pub body: Option<Vec<u8>>,
}

/// The status line and the headers of a response.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The headers in the order of arrival, names as they were sent.
    pub headers: Vec<(String, String)>,
}

/// A whole response.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// Status and headers.
    pub head: Head,
    /// The body without its transfer encoding.
    pub body: Vec<u8>,
}

impl Head {
    /// All values of a header, in order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let same = |(n, _): &&(String, String)| n.eq_ignore_ascii_case(name);
        self.headers.iter().filter(same).map(|(_, v)| v.as_str()).collect()
    }

    /// The first value of a header.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
    Done,
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// One connection to the server.
pub struct Connection {
    stream: Box<dyn Stream>,
    socket: TcpStream,
    authority: String,
    /// Bytes that were received and are not used yet.
    buffer: Vec<u8>,
    framing: Framing,
    closing: bool,
}

/// Closes a connection that another thread reads from.
pub struct Closer(TcpStream);

impl Closer {
    /// Closes both directions; the reader sees the end of the stream.
    pub fn close(&self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Connection {
    /// Connects, with TLS if the server's URL says so.
    pub fn open(cluster: &Cluster, tls: &Arc<rustls::ClientConfig>) -> Result<Self> {
        let authority = cluster.authority()?;
        let address = authority
            .to_socket_addrs()
            .with_context(|| format!("resolving {authority}"))?
            .next()
            .ok_or_else(|| anyhow!("{authority} has no address"))?;
        let socket = TcpStream::connect_timeout(&address, Duration::from_secs(60))
            .with_context(|| format!("connecting to {authority}"))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(90)))?;
        socket.set_write_timeout(Some(Duration::from_secs(60)))?;
        let stream: Box<dyn Stream> = if cluster.is_tls() {
            let name = ServerName::try_from(cluster.certificate_name()?)?;
            let session = ClientConnection::new(tls.clone(), name)?;
            Box::new(StreamOwned::new(session, socket.try_clone()?))
        } else {
            Box::new(socket.try_clone()?)
        };
        Ok(Self {
            stream,
            socket,
            authority,
            buffer: Vec::new(),
            framing: Framing::Done,
            closing: false,
        })
    }

    /// A handle that closes this connection from another thread.
    pub fn closer(&self) -> Result<Closer> {
        Ok(Closer(self.socket.try_clone()?))
    }

    /// Whether another request may be sent: the last response is read and the server keeps the
    /// connection.
    pub fn is_idle(&self) -> bool {
        self.framing == Framing::Done && !self.closing && self.buffer.is_empty()
    }

    /// How long a read may wait; `None` for ever.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> Result<()> {
        Ok(self.socket.set_read_timeout(limit)?)
    }

    /// Sends a request and reads the whole response.
    pub fn exchange(&mut self, request: &Request) -> Result<Response> {
        let head = self.start(request)?;
        let mut body = Vec::new();
        while let Some(piece) = self.next_piece()? {
            body.extend_from_slice(&piece);
            if body.len() > BODY_LIMIT {
                bail!("the answer's body has more than {BODY_LIMIT} bytes");
            }
        }
        Ok(Response { head, body })
    }

    /// Sends a request and reads the response's head; `next_piece` reads the body.
    pub fn start(&mut self, request: &Request) -> Result<Head> {
        let mut bytes = format!("{} {} HTTP/1.1\r\n", request.method, request.target).into_bytes();
        if !request.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case("host")) {
            bytes.extend_from_slice(format!("Host: {}\r\n", self.authority).as_bytes());
        }
        for (name, value) in &request.headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        if let Some(body) = &request.body {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(request.body.as_deref().unwrap_or_default());
        let head = self.send_bytes(&bytes)?;
        if request.method == "HEAD" {
            self.framing = Framing::Done;
        }
        Ok(head)
    }

    /// Sends the bytes of a request as they are and reads the response's head.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<Head> {
        // A server that refuses a large body early may stop reading: its response still counts.
        let sent = self.stream.write_all(bytes).and_then(|()| self.stream.flush());
        match self.read_head() {
            Ok(head) => {
                self.closing |= sent.is_err();
                Ok(head)
            }
            Err(error) => {
                self.closing = true;
                sent.context("sending the request")?;
                Err(error)
            }
        }
    }

    fn read_head(&mut self) -> Result<Head> {
        loop {
            let head = self.read_one_head()?;
            if head.status == 101 || head.status >= 200 {
                return Ok(head);
            }
        }
    }

    fn read_one_head(&mut self) -> Result<Head> {
        loop {
            let mut lines = [httparse::EMPTY_HEADER; 128];
            let mut parsed = httparse::Response::new(&mut lines);
            let state = parsed.parse(&self.buffer).context("the answer's head is not HTTP/1.1")?;
            if let httparse::Status::Complete(length) = state {
                let headers: Vec<(String, String)> = parsed
                    .headers
                    .iter()
                    .map(|h| (h.name.to_owned(), String::from_utf8_lossy(h.value).into_owned()))
                    .collect();
                let head = Head { status: parsed.code.unwrap_or_default(), headers };
                self.closing |= parsed.version == Some(0);
                self.buffer.drain(..length);
                self.frame(&head)?;
                return Ok(head);
            }
            if self.buffer.len() > HEAD_LIMIT {
                bail!("the answer's head has more than {HEAD_LIMIT} bytes");
            }
            if !self.fill()? {
                bail!("the server closed the connection before its answer");
            }
        }
    }

    fn frame(&mut self, head: &Head) -> Result<()> {
        let says = |name: &str, word: &str| {
            head.get(name).is_some_and(|v| v.to_ascii_lowercase().contains(word))
        };
        self.closing |= says("connection", "close");
        self.framing = if head.status < 200 || head.status == 204 || head.status == 304 {
            Framing::Done
        } else if says("transfer-encoding", "chunked") {
            Framing::Chunked
        } else if let Some(length) = head.get("content-length") {
            match length.parse().context("Content-Length")? {
                0 => Framing::Done,
                length => Framing::Length(length),
            }
        } else {
            self.closing = true;
            Framing::UntilClose
        };
        Ok(())
    }

    /// The next piece of the body, as it arrives; `None` at its proper end.
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>> {
        match self.framing {
            Framing::Done => Ok(None),
            Framing::Chunked => self.next_chunk(),
            Framing::UntilClose => {
                if self.buffer.is_empty() && !self.fill()? {
                    self.framing = Framing::Done;
                    return Ok(None);
                }
                Ok(Some(std::mem::take(&mut self.buffer)))
            }
            Framing::Length(left) => {
                if self.buffer.is_empty() && !self.fill()? {
                    bail!("the body ended {left} bytes early");
                }
                let take = left.min(self.buffer.len());
                self.framing =
                    if take == left { Framing::Done } else { Framing::Length(left - take) };
                Ok(Some(self.buffer.drain(..take).collect()))
            }
        }
    }

    fn next_chunk(&mut self) -> Result<Option<Vec<u8>>> {
        let line = self.read_line()?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size =
            usize::from_str_radix(digits, 16).with_context(|| format!("chunk size {line:?}"))?;
        if size > BODY_LIMIT {
            bail!("a chunk of {size} bytes");
        }
        if size == 0 {
            while !self.read_line()?.is_empty() {} // trailers
            self.framing = Framing::Done;
            return Ok(None);
        }
        while self.buffer.len() < size + 2 {
            if !self.fill()? {
                bail!("the body ended inside a chunk");
            }
        }
        let piece = self.buffer.drain(..size).collect();
        if self.buffer.drain(..2).collect::<Vec<u8>>() != b"\r\n" {
            bail!("a chunk doesn't end where its size says");
        }
        Ok(Some(piece))
    }

    fn read_line(&mut self) -> Result<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..end + 2).take(end).collect();
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            if self.buffer.len() > HEAD_LIMIT || !self.fill()? {
                bail!("the body ended without its last chunk");
            }
        }
    }

    /// Reads available bytes; false at the end of the stream.
    fn fill(&mut self) -> Result<bool> {
        let mut piece = [0; 16 << 10];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.buffer.extend_from_slice(&piece[..count]);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The server closed the connection without TLS's close_notify.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    self.closing = true;
                    bail!("the server did not answer in time");
                }
                Err(error) => {
                    self.closing = true;
                    return Err(error).context("reading the answer");
                }
            }
        }
    }
}
