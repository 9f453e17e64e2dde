//! TLS client settings. A webhook's certificate is verified by the CAs of its configuration, or by
//! the system's; a certificate in the configuration itself is trusted, too, though it is no CA, as
//! in Go. A kubelet's is verified by the CA for kubelets, if there is one. Local health checks
//! verify none; nor do connections for which a configuration disables the verification.

mod algorithm;
mod deprecations;
mod refusal;

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use x509_parser::prelude::{FromDer, X509Certificate};

pub(crate) use deprecations::{DeprecatedServers, Deprecations};
use refusal::Refused;
pub(crate) use refusal::{Refusal, refusal};

use crate::pki::Credentials;
use crate::tls;

/// TLS settings that trust a PEM bundle, or the system's CAs if it is empty.
pub(crate) fn bundle(
    ca_bundle: &[u8],
    identity: Option<&Identity>,
) -> Result<ClientConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let named: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(ca_bundle).filter_map(Result::ok).collect();
    if named.is_empty() && !ca_bundle.is_empty() {
        return Err(
            "unable to load root certificates: unable to parse bytes as PEM block".to_owned()
        );
    }
    let mut roots = RootCertStore::empty();
    if ca_bundle.is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    } else {
        roots.add_parsable_certificates(named.iter().cloned());
    }
    let authorities = match roots.is_empty() {
        true => None,
        false => Some(
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()
                .map_err(|why| why.to_string())?,
        ),
    };
    config(provider, Trusted::These { authorities, named }, identity)
}

/// Whether the PEM has a certificate.
pub(crate) fn has_certificate(pem: &[u8]) -> bool {
    CertificateDer::pem_slice_iter(pem).any(|certificate| certificate.is_ok())
}

/// TLS settings that trust any certificate: for local health checks, whose answers carry no
/// authority; as in upstream, for kubelets without a CA; and where a kubeconfig, an APIService or a
/// client disables the verification.
pub(crate) fn anyone(identity: Option<&Identity>) -> Result<ClientConfig, String> {
    config(Arc::new(aws_lc_rs::default_provider()), Trusted::Anyone, identity)
}

/// The server's client certificate: chain and key.
pub(crate) struct Identity(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Identity {
    /// Parses PEM.
    ///
    /// # Errors
    /// If PEM cannot be parsed, or the key is not the certificate's.
    pub(crate) fn read(credentials: &Credentials) -> Result<Self, String> {
        let chain = CertificateDer::pem_slice_iter(credentials.certificate_pem.as_bytes());
        let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(|why| why.to_string())?;
        let key = PrivateKeyDer::from_pem_slice(credentials.key_pem.as_bytes());
        let key = key.map_err(|why| why.to_string())?;
        let provider = aws_lc_rs::default_provider();
        CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider).map_err(
            |why| match why {
                Error::InconsistentKeys(_) => "the key is not that of the certificate".to_owned(),
                why => why.to_string(),
            },
        )?;
        Ok(Self(chain, key))
    }
}

fn config(
    provider: Arc<CryptoProvider>,
    trusted: Trusted,
    identity: Option<&Identity>,
) -> Result<ClientConfig, String> {
    let verifier = Arc::new(Verifier { trusted, provider: provider.clone() });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| why.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    match identity {
        None => Ok(config.with_no_client_auth()),
        Some(Identity(chain, key)) => config
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(|why| why.to_string()),
    }
}

#[derive(Debug)]
enum Trusted {
    /// CA certificates, and leaf certificates that are trusted directly.
    These {
        authorities: Option<Arc<WebPkiServerVerifier>>,
        named: Vec<CertificateDer<'static>>,
    },
    Anyone,
}

#[derive(Debug)]
struct Verifier {
    trusted: Trusted,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Trusted::These { authorities, named } = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        let verdict = if named.iter().any(|named| named.as_ref() == end_entity.as_ref()) {
            verify_named(end_entity, server_name, now)
        } else if let Some(authorities) = authorities {
            authorities.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            )
        } else {
            Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
        };
        verdict.map_err(|why| {
            let refused = Refused {
                leaf: end_entity,
                others: intermediates,
                roots: named,
                name: server_name,
                now,
                provider: &self.provider,
            };
            let refusal = OtherError(Arc::new(refused.refusal(&why)));
            Error::InvalidCertificate(CertificateError::Other(refusal))
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Verifies a certificate that is trusted directly: it must be valid now and for that server.
fn verify_named(
    certificate: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    rustls::client::verify_server_name(&ParsedCertificate::try_from(certificate)?, server_name)?;
    let (_, parsed) = X509Certificate::from_der(certificate)
        .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    tls::check_validity(parsed.validity(), now)?;
    Ok(ServerCertVerified::assertion())
}
