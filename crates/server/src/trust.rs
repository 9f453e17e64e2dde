//! Whose certificates are believed when this server calls others, and who it says it is. A webhook's: by
//! the authorities of its configuration, or the system's; and as Go does, a certificate that is in the
//! configuration itself, though it be no authority. A kubelet's: by the authority for kubelets, anyone's where
//! there is none. A program's that is only asked whether it is well: anyone's.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::pki::Credentials;
use crate::tls;

/// TLS settings that believe a bundle of certificates in PEM, or the system's where it is empty.
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
    config(provider, Believed::These { authorities, named }, identity)
}

/// Whether there is a certificate in PEM.
pub(crate) fn has_certificate(pem: &[u8]) -> bool {
    CertificateDer::pem_slice_iter(pem).any(|certificate| certificate.is_ok())
}

/// TLS settings that believe anyone: for those to whom nothing is said, and whose word does not count; and,
/// as upstream has it, for kubelets without an authority.
pub(crate) fn anyone(identity: Option<&Identity>) -> Result<ClientConfig, String> {
    config(Arc::new(aws_lc_rs::default_provider()), Believed::Anyone, identity)
}

/// Who this server says it is: a certificate, those behind it, and the key.
pub(crate) struct Identity(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Identity {
    /// Reads PEM.
    ///
    /// # Errors
    /// Also if the key is not that of the certificate.
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
    believed: Believed,
    identity: Option<&Identity>,
) -> Result<ClientConfig, String> {
    let verifier = Arc::new(Verifier { believed, provider: provider.clone() });
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
enum Believed {
    /// Certificates of authorities, and those that are named.
    These {
        authorities: Option<Arc<WebPkiServerVerifier>>,
        named: Vec<CertificateDer<'static>>,
    },
    Anyone,
}

#[derive(Debug)]
struct Verifier {
    believed: Believed,
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
        let Believed::These { authorities, named } = &self.believed else {
            return Ok(ServerCertVerified::assertion());
        };
        if named.iter().any(|named| named.as_ref() == end_entity.as_ref()) {
            return verify_named(end_entity, server_name, now);
        }
        match authorities {
            Some(authorities) => authorities.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            ),
            None => Err(Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer)),
        }
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

/// The very certificate that is named: it must be of that server, and of this time.
fn verify_named(
    certificate: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    rustls::client::verify_server_name(&ParsedCertificate::try_from(certificate)?, server_name)?;
    let (_, parsed) = X509Certificate::from_der(certificate)
        .map_err(|_| Error::InvalidCertificate(rustls::CertificateError::BadEncoding))?;
    tls::is_of(parsed.validity(), now)?;
    Ok(ServerCertVerified::assertion())
}
