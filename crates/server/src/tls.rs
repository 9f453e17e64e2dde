//! TLS as upstream has it: client certificates are asked for and not demanded, and judged later.

mod first_version;
mod parameters;

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, VerifierBuilderError, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig,
    SignatureScheme,
};
use webpki::RawPublicKeyEntity;
use x509_parser::certificate::Validity;

use crate::Error;
use crate::pki::{Pair, Pki};
pub use parameters::TlsParameters;

/// What the listener needs, and what verifies client certificates after the handshake.
pub(crate) struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) verifier: Arc<dyn ClientCertVerifier>,
    /// What verifies front proxies, where there are to be some.
    pub(crate) front_proxy_verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// What the server shows to clients.
    pub(crate) serving: Arc<Serving>,
}

/// The certificate that the server shows to clients, which is replaced while it runs: connections that are
/// begun from then on get the other one.
#[derive(Debug)]
pub(crate) struct Serving(ArcSwap<CertifiedKey>);

impl Serving {
    fn new(pair: &Pair) -> Result<Self, Error> {
        Ok(Self(ArcSwap::from_pointee(certified(pair)?)))
    }

    /// Shows another one from now on.
    pub(crate) fn replace(&self, pair: &Pair) -> Result<(), Error> {
        self.0.store(Arc::new(certified(pair)?));
        Ok(())
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// A pair as TLS needs it, if it is one.
fn certified(pair: &Pair) -> Result<CertifiedKey, Error> {
    let provider = aws_lc_rs::default_provider();
    CertifiedKey::from_der(pair.chain()?, pair.key()?, &provider).map_err(|why| match why {
        rustls::Error::InconsistentKeys(_) => pair.mismatch(),
        why => Error::Tls(why.to_string()),
    })
}

impl Tls {
    /// Sets up TLS with HTTP/2 and HTTP/1.1 to choose from.
    pub(crate) fn new(pki: &Pki, parameters: &TlsParameters) -> Result<Self, Error> {
        let error = |why: &dyn std::fmt::Display| Error::Tls(why.to_string());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = |authorities: &RootCertStore| {
            Chains::verifier(authorities, &provider).map_err(|why| error(&why))
        };
        let front_proxy_verifier = if pki.front_proxy_authorities.is_empty() {
            None
        } else {
            Some(verifier(&pki.front_proxy_authorities)?)
        };
        let verifier = verifier(&pki.client_authorities)?;
        let mut authorities = pki.client_authorities.subjects();
        authorities.extend(pki.front_proxy_authorities.subjects());
        let any = Arc::new(AnyCertificate { authorities, provider });
        let serving = Arc::new(Serving::new(&pki.serving)?);
        let mut config = ServerConfig::builder_with_provider(Arc::new(parameters.provider()))
            .with_protocol_versions(parameters.versions())
            .map_err(|why| error(&why))?
            .with_client_cert_verifier(any)
            .with_cert_resolver(serving.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), verifier, front_proxy_verifier, serving })
    }
}

/// Lets every certificate pass whose owner has its key; see [`crate::authentication`].
#[derive(Debug)]
struct AnyCertificate {
    /// Names the authorities to clients, so that they know which certificate to give.
    authorities: Vec<DistinguishedName>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.authorities
    }

    fn verify_client_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        match first_version::parse(leaf) {
            None => rustls::crypto::verify_tls12_signature(message, leaf, signature, algorithms),
            Some(leaf) => {
                first_version::verify_signature(&leaf, message, signature, algorithms)?;
                Ok(HandshakeSignatureValid::assertion())
            }
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        match first_version::parse(leaf) {
            None => rustls::crypto::verify_tls13_signature(message, leaf, signature, algorithms),
            Some(leaf) => {
                let key = SubjectPublicKeyInfoDer::from(leaf.public_key().raw);
                verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Verifies the chains of client certificates after the handshake, of whichever version the leaf is.
#[derive(Debug)]
struct Chains {
    authorities: Arc<RootCertStore>,
    of_third_version: Arc<dyn ClientCertVerifier>,
    provider: Arc<CryptoProvider>,
}

impl Chains {
    fn verifier(
        authorities: &RootCertStore,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, VerifierBuilderError> {
        let (authorities, provider) = (Arc::new(authorities.clone()), provider.clone());
        let of_third_version =
            WebPkiClientVerifier::builder_with_provider(authorities.clone(), provider.clone());
        Ok(Arc::new(Self { authorities, of_third_version: of_third_version.build()?, provider }))
    }
}

impl ClientCertVerifier for Chains {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.of_third_version.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let Some(leaf) = first_version::parse(leaf) else {
            return self.of_third_version.verify_client_cert(leaf, others, now);
        };
        let algorithms = &self.provider.signature_verification_algorithms;
        first_version::verify(&leaf, &self.authorities, algorithms, now)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.of_third_version.verify_tls12_signature(message, leaf, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.of_third_version.verify_tls13_signature(message, leaf, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.of_third_version.supported_verify_schemes()
    }
}

/// Whether a certificate is of this time.
pub(crate) fn is_of(validity: &Validity, now: UnixTime) -> Result<(), rustls::Error> {
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < validity.not_before.timestamp() {
        return Err(rustls::Error::InvalidCertificate(CertificateError::NotValidYet));
    }
    if now > validity.not_after.timestamp() {
        return Err(rustls::Error::InvalidCertificate(CertificateError::Expired));
    }
    Ok(())
}

/// Whether a signature is of this key (a `SubjectPublicKeyInfo` in DER), by one of the algorithms.
pub(crate) fn is_signed(
    key: &[u8],
    algorithms: &[&dyn SignatureVerificationAlgorithm],
    message: &[u8],
    signature: &[u8],
) -> bool {
    let key = SubjectPublicKeyInfoDer::from(key);
    let Ok(key) = RawPublicKeyEntity::try_from(&key) else { return false };
    algorithms.iter().any(|algorithm| key.verify_signature(*algorithm, message, signature).is_ok())
}
