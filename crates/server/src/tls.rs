//! TLS settings of the listener. Client certificates are requested, not required, and verified
//! after the handshake, as in upstream.

mod chains;
mod choice;
mod first_version;
mod verifier;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
};
use x509_parser::certificate::Validity;

use crate::Error;
use crate::config::TlsParameters;
use crate::pki::{Authorities, ListenerCertificates, Pair};
pub(crate) use chains::Chains;
use choice::Choice;
pub(crate) use verifier::Verifier;

/// The settings of the listener and the verifiers of client certificates. Certificates can be
/// replaced while the server runs.
pub(crate) struct Tls {
    parameters: TlsParameters,
    settings: ArcSwap<Settings>,
    /// Verifies client certificates.
    pub(crate) clients: Arc<Verifier>,
    /// Verifies front proxies; `None` without a CA for them.
    pub(crate) front_proxies: Option<Arc<Verifier>>,
}

/// The settings for new connections.
struct Settings {
    config: Arc<ServerConfig>,
    /// The settings by server address, for addresses that have their own certificate.
    by_address: HashMap<IpAddr, Arc<ServerConfig>>,
}

impl Tls {
    /// Sets up TLS; ALPN offers HTTP/2 and HTTP/1.1.
    pub(crate) fn new(
        certificates: &ListenerCertificates,
        parameters: &TlsParameters,
    ) -> Result<Self, Error> {
        let (clients, front_proxies) = verifiers(certificates)?;
        Ok(Self {
            settings: ArcSwap::from_pointee(Settings::new(certificates, parameters)?),
            parameters: parameters.clone(),
            clients: Arc::new(Verifier::new(clients)),
            front_proxies: front_proxies.map(|verifier| Arc::new(Verifier::new(verifier))),
        })
    }

    /// Replaces the serving certificates, for new connections, and the CAs, for the next requests
    /// of all connections.
    ///
    /// # Errors
    /// A certificate cannot be used. Then nothing changes.
    pub(crate) fn replace(&self, certificates: &ListenerCertificates) -> Result<(), Error> {
        let settings = Settings::new(certificates, &self.parameters)?;
        let (clients, front_proxies) = verifiers(certificates)?;
        self.settings.store(Arc::new(settings));
        self.clients.replace(clients);
        if let (Some(current), Some(front_proxies)) = (&self.front_proxies, front_proxies) {
            current.replace(front_proxies);
        }
        Ok(())
    }

    /// The settings for a connection to one of the server's addresses.
    pub(crate) fn config(&self, address: IpAddr) -> Arc<ServerConfig> {
        let settings = self.settings.load();
        settings.by_address.get(&address.to_canonical()).unwrap_or(&settings.config).clone()
    }
}

/// The verifiers of clients and of front proxies.
fn verifiers(certificates: &ListenerCertificates) -> Result<(Chains, Option<Chains>), Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let chains = |authorities: &Authorities| {
        Chains::new(authorities, &provider).map_err(|why| Error::Tls(why.to_string()))
    };
    let front_proxies = certificates.front_proxies.as_ref().map(chains);
    Ok((chains(&certificates.clients)?, front_proxies.transpose()?))
}

impl Settings {
    fn new(certificates: &ListenerCertificates, parameters: &TlsParameters) -> Result<Self, Error> {
        let choice = Choice::new(certificates)?;
        let all = std::iter::once(&certificates.clients).chain(&certificates.front_proxies);
        let authorities = all.flat_map(|some| some.roots(|_| true).subjects()).collect();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let any = Arc::new(AnyCertificate { authorities, provider });
        let config = |choice: Choice| {
            let mut config = ServerConfig::builder_with_provider(Arc::new(parameters.provider()))
                .with_protocol_versions(parameters.versions())
                .map_err(|why| Error::Tls(why.to_string()))?
                .with_client_cert_verifier(any.clone())
                .with_cert_resolver(Arc::new(choice));
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            Ok::<_, Error>(Arc::new(config))
        };
        let by_address = choice.by_address().into_iter();
        let by_address = by_address.map(|(address, choice)| Ok((address, config(choice)?)));
        Ok(Self { by_address: by_address.collect::<Result<_, Error>>()?, config: config(choice)? })
    }
}

/// Converts a pair; an error if key and certificate do not match.
fn certified(pair: &Pair) -> Result<CertifiedKey, Error> {
    let provider = aws_lc_rs::default_provider();
    CertifiedKey::from_der(pair.chain()?, pair.key()?, &provider).map_err(|why| match why {
        rustls::Error::InconsistentKeys(_) => pair.mismatch(),
        why => Error::Tls(why.to_string()),
    })
}

/// Accepts every certificate whose key the client has; see [`crate::authentication`].
#[derive(Debug)]
struct AnyCertificate {
    /// The CA names that the server sends, so that clients can choose a certificate.
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

/// Verifies that a certificate is valid now.
pub(crate) fn check_validity(validity: &Validity, now: UnixTime) -> Result<(), rustls::Error> {
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < validity.not_before.timestamp() {
        return Err(rustls::Error::InvalidCertificate(CertificateError::NotValidYet));
    }
    if now > validity.not_after.timestamp() {
        return Err(rustls::Error::InvalidCertificate(CertificateError::Expired));
    }
    Ok(())
}
