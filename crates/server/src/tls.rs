//! TLS as upstream has it: client certificates are asked for and not demanded, and judged later.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
};

use crate::Error;
use crate::pki::Pki;

/// What the listener needs, and what verifies client certificates after the handshake.
pub(crate) struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) verifier: Arc<dyn ClientCertVerifier>,
    /// What verifies front proxies, where there are to be some.
    pub(crate) front_proxy_verifier: Option<Arc<dyn ClientCertVerifier>>,
}

impl Tls {
    /// Sets up TLS 1.2 and 1.3 with HTTP/2 and HTTP/1.1 to choose from.
    pub(crate) fn new(pki: &Pki) -> Result<Self, Error> {
        let error = |why: &dyn std::fmt::Display| Error::Tls(why.to_string());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = |authorities: &RootCertStore| {
            let authorities = Arc::new(authorities.clone());
            let verifier =
                WebPkiClientVerifier::builder_with_provider(authorities, provider.clone());
            verifier.build().map_err(|why| error(&why))
        };
        let front_proxy_verifier = if pki.front_proxy_authorities.is_empty() {
            None
        } else {
            Some(verifier(&pki.front_proxy_authorities)?)
        };
        let verifier = verifier(&pki.client_authorities)?;
        let mut authorities = verifier.root_hint_subjects().to_vec();
        authorities.extend(pki.front_proxy_authorities.subjects());
        let any = Arc::new(AnyCertificate { authorities, provider: provider.clone() });
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|why| error(&why))?
            .with_client_cert_verifier(any)
            .with_single_cert(pki.chain.clone(), pki.key.clone_key())
            .map_err(|why| error(&why))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), verifier, front_proxy_verifier })
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
        rustls::crypto::verify_tls12_signature(message, leaf, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, leaf, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
