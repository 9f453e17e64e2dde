//! The server under test and connections to it. They do little work, because the load generator
//! runs on the same cores as the server.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use apiscript::kubeconfig::Cluster;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::call::Call;

/// How long a response may take.
const TIMEOUT: Duration = Duration::from_secs(90);
/// The most headers of a response. A kube-apiserver sends a `Warning` for each deprecated or
/// duplicate field.
const HEADERS_MAX: usize = 1024;
/// The size of a read.
const PIECE: usize = 256 << 10;
/// The size of a read of a lean connection.
const SMALL_PIECE: usize = 16 << 10;

/// An API server with credentials.
#[derive(Clone)]
pub struct Server {
    /// `host:port`
    pub authority: String,
    certificate_name: ServerName<'static>,
    tls: Option<Arc<ClientConfig>>,
    /// The same without the client certificate.
    anonymous_tls: Option<Arc<ClientConfig>>,
    token: Option<String>,
}

impl Server {
    /// The server of a kubeconfig's current context.
    pub fn from_kubeconfig(path: &Path) -> Result<Self> {
        let cluster = Cluster::from_file(path)?;
        Ok(Self {
            authority: cluster.authority()?,
            certificate_name: ServerName::try_from(cluster.certificate_name()?)?,
            tls: if cluster.is_tls() { Some(cluster.tls(false)?) } else { None },
            anonymous_tls: if cluster.is_tls() { Some(cluster.tls(true)?) } else { None },
            token: cluster.token.clone(),
        })
    }

    /// The same server for a client whose only credential is this token.
    pub fn with_token(&self, token: &str) -> Self {
        let tls = self.anonymous_tls.clone();
        Self { tls, token: Some(token.to_owned()), ..self.clone() }
    }

    /// A stream to the server that speaks the protocol (`http/1.1` or `h2`).
    pub async fn stream(&self, protocol: &[u8]) -> Result<Stream> {
        let socket = tokio::time::timeout(TIMEOUT, TcpStream::connect(&self.authority))
            .await
            .context("connecting takes too long")?
            .with_context(|| format!("connecting to {}", self.authority))?;
        socket.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(socket)) };
        let mut tls = ClientConfig::clone(tls);
        tls.alpn_protocols = vec![protocol.to_vec()];
        let connector = TlsConnector::from(Arc::new(tls));
        let stream = connector.connect(self.certificate_name.clone(), socket).await?;
        Ok(Stream::Tls(Box::new(stream)))
    }

    /// A new connection that speaks HTTP/1.1.
    pub async fn connect(&self) -> Result<Connection> {
        let stream = self.stream(b"http/1.1").await?;
        Ok(Connection { stream, buffer: Vec::with_capacity(PIECE), start: 0, piece: PIECE })
    }

    /// The same with small reads, for thousands of connections.
    pub async fn connect_lean(&self) -> Result<Connection> {
        let stream = self.stream(b"http/1.1").await?;
        Ok(Connection { stream, buffer: Vec::new(), start: 0, piece: SMALL_PIECE })
    }

    /// A request. Gaps in target or body (see [`Call`]) are filled later.
    pub fn call(
        &self,
        method: &'static str,
        target: &str,
        media_type: &'static str,
        body: &str,
    ) -> Call {
        self.call_with(method, target, media_type, "", body)
    }

    /// A request with more headers, each with its line break.
    pub fn call_with(
        &self,
        method: &'static str,
        target: &str,
        media_type: &'static str,
        headers: &str,
        body: &str,
    ) -> Call {
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {}\r\n", self.authority);
        head.push_str("User-Agent: pintle-bench\r\n");
        if !headers.contains("Accept: ") {
            head.push_str("Accept: application/json\r\n");
        }
        if let Some(token) = &self.token {
            head.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        head.push_str(headers);
        if !body.is_empty() {
            let length = body.len();
            head.push_str(&format!("Content-Type: {media_type}\r\nContent-Length: {length}\r\n"));
        }
        head.push_str("\r\n");
        Call::new(method, media_type, target.len(), head, body)
    }

    /// The value of the header `Authorization`, for HTTP/2.
    pub(crate) fn authorization(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Bearer {token}"))
    }

    /// The scheme of its URLs.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Sends one request on its own connection; an error unless it succeeds or `allowed` contains
    /// the response's code.
    pub async fn ask(
        &self,
        method: &'static str,
        target: &str,
        body: &str,
        allowed: &[u16],
    ) -> Result<(u16, Vec<u8>)> {
        let call = self.call(method, target, "application/json", body);
        let mut connection = self.connect().await?;
        let mut answer = Vec::new();
        let got = connection.exchange(call.bytes(), Some(&mut answer)).await?;
        if got.status >= 300 && !allowed.contains(&got.status) {
            bail!("{method} {target}: {} {}", got.status, String::from_utf8_lossy(&answer));
        }
        Ok((got.status, answer))
    }
}

/// A response.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The length of its body, as sent.
    pub body_bytes: usize,
}

/// An HTTP/1.1 connection that is kept between requests.
pub struct Connection {
    stream: Stream,
    /// Bytes that were read; those before `start` are used.
    buffer: Vec<u8>,
    start: usize,
    /// The size of a read.
    piece: usize,
}

/// How the end of a body is found.
#[derive(Clone, Copy)]
enum Framing {
    Length(usize),
    Chunked,
}

impl Connection {
    /// Sends the bytes of a request and reads its response; the body is appended to `keep` or
    /// dropped.
    pub async fn exchange(&mut self, request: &[u8], keep: Option<&mut Vec<u8>>) -> Result<Answer> {
        let exchange = async {
            self.stream.write_all(request).await?;
            self.stream.flush().await?;
            let (status, framing) = self.head().await?;
            let body_bytes = match framing {
                Framing::Length(length) => self.sized(length, keep).await?,
                Framing::Chunked => self.chunks(keep).await?,
            };
            Ok(Answer { status, body_bytes })
        };
        tokio::time::timeout(TIMEOUT, exchange).await.context("no answer in time")?
    }

    /// Sends the bytes of a watch and reads the head of the response; `chunk` reads the events.
    pub async fn open_watch(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        match self.head().await? {
            (200, Framing::Chunked) => Ok(()),
            (status, framing) => {
                let mut text = Vec::new();
                match framing {
                    Framing::Length(length) => self.sized(length, Some(&mut text)).await?,
                    Framing::Chunked => self.chunks(Some(&mut text)).await?,
                };
                bail!("a watch was answered {status}: {}", String::from_utf8_lossy(&text))
            }
        }
    }

    /// The next chunk of a watch, appended to `into`; false at the end.
    pub async fn chunk(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        let size = self.chunk_size().await?;
        if size > 0 {
            self.take(size, Some(into)).await?;
        }
        self.line_end().await?;
        Ok(size > 0)
    }

    async fn head(&mut self) -> Result<(u16, Framing)> {
        loop {
            let bytes = &self.buffer[self.start..];
            let head = match parse_head(bytes, &mut [httparse::EMPTY_HEADER; 32]) {
                Err(httparse::Error::TooManyHeaders) => {
                    parse_head(bytes, &mut vec![httparse::EMPTY_HEADER; HEADERS_MAX])
                }
                head => head,
            };
            if let Some((length, status, framing)) = head? {
                self.start += length;
                return Ok((status, framing.context("an answer without length")?));
            }
            self.fill().await?;
        }
    }

    async fn sized(&mut self, length: usize, keep: Option<&mut Vec<u8>>) -> Result<usize> {
        self.take(length, keep).await?;
        Ok(length)
    }

    async fn chunks(&mut self, mut keep: Option<&mut Vec<u8>>) -> Result<usize> {
        let mut total = 0;
        loop {
            let size = self.chunk_size().await?;
            self.take(size, keep.as_deref_mut()).await?;
            self.line_end().await?;
            if size == 0 {
                return Ok(total);
            }
            total += size;
        }
    }

    async fn chunk_size(&mut self) -> Result<usize> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[self.start..]) {
                let line = std::str::from_utf8(&self.buffer[self.start..self.start + end])?;
                let digits = line.trim_end().split(';').next().unwrap_or_default();
                let size = usize::from_str_radix(digits, 16).context("chunk size")?;
                self.start += end + 1;
                return Ok(size);
            }
            self.fill().await?;
        }
    }

    async fn line_end(&mut self) -> Result<()> {
        self.take(2, None).await
    }

    /// Consumes `count` bytes, and appends them to `keep`.
    async fn take(&mut self, mut count: usize, mut keep: Option<&mut Vec<u8>>) -> Result<()> {
        loop {
            let some = count.min(self.buffer.len() - self.start);
            if let Some(keep) = keep.as_deref_mut() {
                keep.extend_from_slice(&self.buffer[self.start..self.start + some]);
            }
            self.start += some;
            count -= some;
            if count == 0 {
                return Ok(());
            }
            self.fill().await?;
        }
    }

    /// Makes room in the buffer, and reads more bytes.
    async fn fill(&mut self) -> Result<()> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.reserve(self.piece);
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }
}

/// The length of a response's head, its status, and how the end of its body is found; `None` until
/// the head is complete.
fn parse_head<'b>(
    bytes: &'b [u8],
    headers: &mut [httparse::Header<'b>],
) -> Result<Option<(usize, u16, Option<Framing>)>, httparse::Error> {
    let mut head = httparse::Response::new(headers);
    let httparse::Status::Complete(length) = head.parse(bytes)? else { return Ok(None) };
    let framing = head.headers.iter().find_map(framing);
    Ok(Some((length, head.code.unwrap_or_default(), framing)))
}

fn framing(header: &httparse::Header<'_>) -> Option<Framing> {
    if header.name.eq_ignore_ascii_case("transfer-encoding") {
        return Some(Framing::Chunked);
    }
    if header.name.eq_ignore_ascii_case("content-length") {
        let length = std::str::from_utf8(header.value).ok()?.trim().parse().ok()?;
        return Some(Framing::Length(length));
    }
    None
}

/// A connection's bytes.
pub enum Stream {
    /// Plain TCP.
    Plain(TcpStream),
    /// TLS.
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, into),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
