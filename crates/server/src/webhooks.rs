//! Calls to webhooks: HTTPS with an authority of the webhook's own, in bounded time and length.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use pintle_crd::{Answer, Caller, Endpoint};
use pintle_value::Str;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Upstream gives a webhook so long.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest answer: as many objects as a page of a list may hold.
const ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Carries requests to webhooks.
pub(crate) struct Webhooks;

impl Caller for Webhooks {
    fn call<'a>(&'a self, endpoint: &'a Endpoint, body: Vec<u8>) -> Answer<'a> {
        Box::pin(async move {
            let answer = tokio::time::timeout(TIMEOUT, post(endpoint, body)).await;
            let answer = answer.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
            answer.map_err(|why| format!("Post {:?}: {why}", endpoint.url))
        })
    }

    fn uid(&self) -> Str {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("an operating system without randomness runs no TLS");
        pintle_meta::uid::format(bytes).into()
    }
}

async fn post(endpoint: &Endpoint, body: Vec<u8>) -> Result<Vec<u8>, String> {
    let uri: Uri = endpoint.url.parse().map_err(|error| format!("{error}"))?;
    let host = uri.host().ok_or("no Host in request URL")?.trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(443);
    let stream = TcpStream::connect((host.as_str(), port)).await;
    let stream = stream.map_err(|error| format!("dial tcp {host}:{port}: {error}"))?;
    let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(Arc::new(config(&endpoint.ca_bundle)?));
    let stream = connector.connect(name, stream).await.map_err(|error| format!("tls: {error}"))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let request = Request::post(uri.path_and_query().map_or("/", |path| path.as_str()))
        .header(HOST, uri.authority().map_or("", |authority| authority.as_str()))
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| error.to_string())?;
    let exchange = async {
        let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        if status == StatusCode::OK {
            return Ok(body.to_vec());
        }
        Err(format!(
            "the server responded with the status code {} but did not return more information",
            status.as_u16()
        ))
    };
    // The connection only moves bytes for the exchange, and goes with it.
    let connection = async {
        let _ = connection.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answer = exchange => answer,
        () = connection => unreachable!("pending for ever"),
    }
}

fn config(ca_bundle: &[u8]) -> Result<ClientConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Arc::new(Bundle::new(ca_bundle, provider.clone())?);
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(config)
}

/// Trusts the certificates of a bundle: as authorities, and as themselves, as Go does.
#[derive(Debug)]
struct Bundle {
    certificates: Vec<CertificateDer<'static>>,
    /// `None` where no certificate of the bundle can be an authority.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl Bundle {
    fn new(pem: &[u8], provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|error| error.to_string())?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        let builder =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        Ok(Self { certificates, authorities: builder.build().ok(), provider })
    }
}

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.certificates.iter().any(|known| known == end_entity) {
            let parsed = ParsedCertificate::try_from(end_entity)?;
            rustls::client::verify_server_name(&parsed, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let authorities = self.authorities.as_ref().ok_or(unknown)?;
        authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
