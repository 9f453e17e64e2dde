//! The verification of client certificate chains after the handshake, for X.509 versions 1 and 3.
//!
//! A CA counts only while it is valid, as in Go. webpki's trust anchors have no validity, so it is
//! checked here.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{CertificateError, RootCertStore};

use super::first_version;
use crate::pki::Authorities;

/// A fixed set of CAs, by which chains are verified.
#[derive(Debug)]
pub(crate) struct Chains {
    authorities: Authorities,
    /// All CAs, whether they are valid or not.
    all: Roots,
    provider: Arc<CryptoProvider>,
}

/// CAs as both verifiers need them.
#[derive(Debug)]
struct Roots {
    store: Arc<RootCertStore>,
    of_third_version: Arc<dyn ClientCertVerifier>,
}

impl Chains {
    /// # Errors
    /// There is no CA.
    pub(crate) fn new(
        authorities: &Authorities,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let all = Roots::new(authorities.roots(|_| true), provider)?;
        Ok(Self { authorities: authorities.clone(), all, provider: provider.clone() })
    }

    /// Verifies the chain of a client.
    ///
    /// # Errors
    /// A certificate is not valid at this time, or no CA that is valid then issued the chain.
    pub(crate) fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        if self.authorities.are_valid_at(seconds) {
            return self.verify_by(&self.all, leaf, others, now);
        }
        let valid = self.authorities.roots(|validity| validity.problem(seconds).is_none());
        match Roots::new(valid, &self.provider) {
            Ok(valid) => self.verify_by(&valid, leaf, others, now),
            Err(_) => Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)),
        }
    }

    /// The last second at which the same CAs are valid as at this one.
    pub(crate) fn unchanged_until(&self, unix_seconds: i64) -> i64 {
        self.authorities.unchanged_until(unix_seconds)
    }

    fn verify_by(
        &self,
        roots: &Roots,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        match first_version::parse(leaf) {
            Some(leaf) => {
                let algorithms = &self.provider.signature_verification_algorithms;
                first_version::verify(&leaf, &roots.store, algorithms, now)
            }
            None => roots.of_third_version.verify_client_cert(leaf, others, now).map(|_| ()),
        }
    }
}

impl Roots {
    fn new(
        store: RootCertStore,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let store = Arc::new(store);
        let verifier = WebPkiClientVerifier::builder_with_provider(store.clone(), provider.clone());
        Ok(Self { store, of_third_version: verifier.build()? })
    }
}
