//! A kubelet without containers. The name of the container in a request decides how it responds.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderName, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

type Body = BoxBody<Bytes, Infallible>;

/// A kubelet and its open connections.
pub(crate) struct Kubelet {
    pub(crate) port: u16,
    pub(crate) takes_websockets: bool,
    /// The self-signed serving certificate.
    pub(crate) certificate_pem: String,
    pub(crate) connections: Arc<Connections>,
}

/// The connections to a kubelet.
#[derive(Default)]
pub(crate) struct Connections {
    open: AtomicUsize,
    changed: Notify,
}

impl Connections {
    /// Waits until `count` connections are open.
    pub(crate) async fn are(&self, count: usize) {
        let settled = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                if self.open.load(Ordering::SeqCst) == count {
                    return;
                }
                changed.await;
            }
        };
        let open = || self.open.load(Ordering::SeqCst);
        let settled = tokio::time::timeout(super::client::TIMEOUT, settled).await;
        assert!(settled.is_ok(), "{} connections are open instead of {count}", open());
    }
}

/// Counts a connection as open until this is dropped.
struct Open(Arc<Connections>);

impl Open {
    fn new(connections: &Arc<Connections>) -> Self {
        connections.open.fetch_add(1, Ordering::SeqCst);
        connections.changed.notify_waiters();
        Self(connections.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }
}

impl Kubelet {
    /// Starts a kubelet that asks clients for certificates and accepts any.
    pub(crate) async fn start(takes_websockets: bool) -> Self {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let chain = vec![certificate.der().clone()];
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(accept_any(&chain[0]))
            .with_single_cert(chain, key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::<Connections>::default();
        tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), connections.clone()));
        Self { port, takes_websockets, certificate_pem: certificate.pem(), connections }
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, connections: Arc<Connections>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, open) = (acceptor.clone(), Arc::new(Open::new(&connections)));
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let shown = stream.get_ref().1.peer_certificates().map(|chain| subject(&chain[0]));
            let shown: Arc<str> = shown.unwrap_or_default().into();
            let still_open = open.clone();
            let service = service_fn(move |request| {
                let (shown, open) = (shown.clone(), still_open.clone());
                async move { Ok::<_, Infallible>(answer(request, &shown, open)) }
            });
            let http = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            let _ = http.with_upgrades().await; // errors are expected: clients disconnect
            drop(open);
        });
    }
}

fn answer(request: Request<Incoming>, shown: &str, open: Arc<Open>) -> Response<Body> {
    let mut parts = request.uri().path().trim_start_matches('/').split('/');
    let (verb, container) = (parts.next().unwrap(), parts.next_back().unwrap());
    match (verb, container) {
        ("containerLogs", "c") => {
            text(StatusCode::OK, &format!("{shown} reads {}\n", request.uri()))
        }
        (_, "refuses") => {
            let code = request.uri().query().and_then(|query| query.split('=').nth(1));
            text(code.unwrap().parse().unwrap(), "not today")
        }
        (_, "rants") => text(StatusCode::BAD_REQUEST, &"no".repeat(40_000)),
        (_, "redirects") => {
            let mut answer = text(StatusCode::FOUND, "");
            answer.headers_mut().insert("location", "https://127.0.0.1:1/".parse().unwrap());
            answer
        }
        ("containerLogs", "waits") => {
            let first = futures_util::stream::iter([Ok(Frame::data(Bytes::from("first\n")))]);
            let body = futures_util::StreamExt::chain(first, futures_util::stream::pending());
            Response::new(BodyExt::boxed(StreamBody::new(Box::pin(body))))
        }
        ("containerLogs", "floods") => {
            let pieces = futures_util::stream::repeat_with(|| Ok(Frame::data(FLOOD)));
            Response::new(BodyExt::boxed(StreamBody::new(pieces)))
        }
        ("exec" | "attach" | "portForward", _) => switch(request, open),
        _ => text(StatusCode::NOT_FOUND, "404 page not found"),
    }
}

const FLOOD: Bytes = Bytes::from_static(b"and more of the same\n");

/// Switches protocols. The container `floods` sends without end, the container `echoes` and a
/// forwarded port send back all bytes, and any other container runs a command over SPDY. The header
/// `x-seen` of the response lists the headers of the request.
fn switch(mut request: Request<Incoming>, open: Arc<Open>) -> Response<Body> {
    let names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
    let names = names.join(" ");
    let mut answer = text(StatusCode::SWITCHING_PROTOCOLS, "");
    let headers = answer.headers_mut();
    headers.insert("x-seen", names.parse().unwrap());
    headers.insert("connection", "Upgrade".parse().unwrap());
    headers.insert("upgrade", request.headers()["upgrade"].clone());
    if let Some(version) = request.headers().get_all("x-stream-protocol-version").iter().next_back()
    {
        let is_command = request.uri().path().starts_with("/exec");
        let version = if is_command { "v4.channel.k8s.io" } else { version.to_str().unwrap() };
        headers.insert("x-stream-protocol-version", version.parse().unwrap());
    }
    let (path, query) = (request.uri().path().to_owned(), request.uri().query().map(str::to_owned));
    tokio::spawn(async move {
        let stream = TokioIo::new(hyper::upgrade::on(&mut request).await.unwrap());
        if path.ends_with("/echoes") || path.starts_with("/portForward") {
            let (mut from, mut to) = tokio::io::split(stream);
            let _ = tokio::io::copy(&mut from, &mut to).await; // until the peer closes
        } else if path.ends_with("/floods") {
            let (mut stream, flood) = (stream, FLOOD.repeat(1000));
            while stream.write_all(&flood).await.is_ok() {}
        } else {
            let _ = command(stream, path.ends_with("/waits"), &query.unwrap_or_default()).await;
        }
        drop(open);
    });
    answer
}

/// The ids of the SPDY streams, in the order in which clients open them.
const ERROR: u8 = 1;
const STDIN: u8 = 3;
const STDOUT: u8 = 5;
const STDERR: u8 = 7;

/// Runs a command that echoes its input and exits with the code that is its name. If `waits`, it
/// neither echoes nor exits. It implements only the part of SPDY that the tests need.
async fn command(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    waits: bool,
    query: &str,
) -> io::Result<()> {
    let code = query.split('&').find_map(|pair| pair.strip_prefix("command=")).unwrap();
    loop {
        let mut head = [0; 8];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[5], head[6], head[7]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await?;
        match head {
            [0x80, 3, 0, 1, ..] => {
                stream.write_all(&[0x80, 3, 0, 2, 0, 0, 0, 4]).await?;
                stream.write_all(&payload[..4]).await?;
            }
            [0, 0, 0, STDIN, ends, ..] if !waits => {
                write(&mut stream, STDOUT, 0, &payload).await?;
                if ends == 1 {
                    break;
                }
            }
            _ => {}
        }
    }
    for output in [STDOUT, STDERR] {
        write(&mut stream, output, 1, b"").await?;
    }
    let status = format!(
        r#"{{"status":"Failure","reason":"NonZeroExitCode","details":{{"causes":[
            {{"reason":"ExitCode","message":"{code}"}}]}}}}"#
    );
    let status = if code == "0" { "" } else { &status };
    write(&mut stream, ERROR, 1, status.as_bytes()).await?;
    stream.flush().await?;
    stream.read_to_end(&mut Vec::new()).await.map(drop)
}

async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    id: u8,
    flags: u8,
    bytes: &[u8],
) -> io::Result<()> {
    let [_, a, b, c] = (bytes.len() as u32).to_be_bytes();
    stream.write_all(&[0, 0, 0, id, flags, a, b, c]).await?;
    stream.write_all(bytes).await?;
    stream.flush().await
}

fn text(code: StatusCode, text: &str) -> Response<Body> {
    let mut answer = Response::new(Full::from(text.to_owned()).boxed());
    *answer.status_mut() = code;
    answer
}

/// The subject of a certificate.
pub(crate) fn subject(certificate: &CertificateDer<'_>) -> String {
    use x509_parser::prelude::{FromDer, X509Certificate};
    let (_, parsed) = X509Certificate::from_der(certificate).unwrap();
    parsed.subject().to_string()
}

/// A verifier that asks clients for a certificate and accepts any. The tests check the subject.
pub(crate) fn accept_any(root: &CertificateDer<'static>) -> Arc<dyn ClientCertVerifier> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let strict = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    Arc::new(AcceptAny(strict.build().unwrap()))
}

#[derive(Debug)]
struct AcceptAny(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AcceptAny {
    fn root_hint_subjects(&self) -> &[rustls::DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::server::danger::ClientCertVerified, rustls::Error> {
        Ok(rustls::server::danger::ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
