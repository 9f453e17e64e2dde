//! A kubelet that runs nothing: it answers by the name of the container.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
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
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

type Body = BoxBody<Bytes, Infallible>;

/// A kubelet, and what is known of it.
pub(crate) struct Kubelet {
    pub(crate) port: u16,
    pub(crate) takes_websockets: bool,
    /// Its serving certificate, which is its own authority.
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
    /// Waits until so many are open.
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
        let settled = tokio::time::timeout(super::client::PATIENCE, settled).await;
        assert!(settled.is_ok(), "{} connections are open instead of {count}", open());
    }
}

/// Counts a connection.
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
    /// One that asks clients for certificates; who shows one must be known by these authorities.
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
            .with_client_cert_verifier(anyone(&chain[0]))
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
        let (acceptor, open) = (acceptor.clone(), Open::new(&connections));
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let shown = stream.get_ref().1.peer_certificates().map(|chain| subject(&chain[0]));
            let shown: Arc<str> = shown.unwrap_or_default().into();
            let service = service_fn(move |request| {
                let shown = shown.clone();
                async move { Ok::<_, Infallible>(answer(&request, &shown)) }
            });
            let http = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            let _ = http.with_upgrades().await; // clients may leave as they like
            drop(open);
        });
    }
}

fn answer(request: &Request<Incoming>, shown: &str) -> Response<Body> {
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
        (_, "redirects") => {
            let mut answer = text(StatusCode::FOUND, "");
            answer.headers_mut().insert("location", "https://127.0.0.1:1/".parse().unwrap());
            answer
        }
        (_, "waits") => {
            let first = futures_util::stream::iter([Ok(Frame::data(Bytes::from("first\n")))]);
            let body = futures_util::StreamExt::chain(first, futures_util::stream::pending());
            Response::new(BodyExt::boxed(StreamBody::new(Box::pin(body))))
        }
        _ => text(StatusCode::NOT_FOUND, "404 page not found"),
    }
}

fn text(code: StatusCode, text: &str) -> Response<Body> {
    let mut answer = Response::new(Full::from(text.to_owned()).boxed());
    *answer.status_mut() = code;
    answer
}

/// The common name in a certificate.
fn subject(certificate: &CertificateDer<'_>) -> String {
    use x509_parser::prelude::{FromDer, X509Certificate};
    let (_, parsed) = X509Certificate::from_der(certificate).unwrap();
    parsed.subject().to_string()
}

/// Asks for certificates and takes any: who the server says it is is looked at by the tests.
fn anyone(root: &CertificateDer<'static>) -> Arc<dyn ClientCertVerifier> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let strict = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    Arc::new(Anyone(strict.build().unwrap()))
}

#[derive(Debug)]
struct Anyone(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for Anyone {
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
