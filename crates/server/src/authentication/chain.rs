//! Chains of client certificates that were verified.
//!
//! Upstream verifies a chain at each request. Here the outcome is kept: it stays the same until the first
//! certificate of the chain ends, and from then on the chain is verified at each request, too.

use std::sync::Arc;
use std::time::Duration;

use pintle_auth::Error;
use pintle_registry::request::Now;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A chain that held when the connection began.
pub(super) struct Chain {
    verifier: Arc<dyn ClientCertVerifier>,
    leaf: CertificateDer<'static>,
    others: Box<[CertificateDer<'static>]>,
    /// When the first of its certificates ends.
    first_end_unix_seconds: i64,
    /// When the holder's own ends.
    leaf_end_unix_seconds: i64,
}

impl Chain {
    /// Verifies a chain.
    pub(super) fn verify(
        verifier: &Arc<dyn ClientCertVerifier>,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: Now,
    ) -> Result<Self, Error> {
        let others = others.iter().map(|other| other.clone().into_owned());
        let mut chain = Self {
            verifier: verifier.clone(),
            leaf: leaf.clone().into_owned(),
            others: others.collect(),
            first_end_unix_seconds: i64::MIN,
            leaf_end_unix_seconds: end(leaf),
        };
        chain.check(now)?;
        let all = chain.others.iter().chain([&chain.leaf]);
        // One that cannot be read ends at once: nothing is known of how long it holds.
        chain.first_end_unix_seconds = all.map(end).min().unwrap_or(i64::MIN);
        Ok(chain)
    }

    /// For how long the holder's certificate is still valid, in seconds.
    pub(super) const fn remaining_seconds(&self, now: Now) -> i64 {
        self.leaf_end_unix_seconds.saturating_sub(now.unix_seconds())
    }

    /// Whether it holds now.
    pub(super) fn check(&self, now: Now) -> Result<(), Error> {
        let seconds = now.unix_seconds();
        if seconds <= self.first_end_unix_seconds {
            return Ok(());
        }
        let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let now = UnixTime::since_unix_epoch(seconds);
        let verified = self.verifier.verify_client_cert(&self.leaf, &self.others, now);
        verified.map(|_| ()).map_err(|error| Error::Untrusted(error.to_string()))
    }
}

fn end(certificate: &CertificateDer<'_>) -> i64 {
    let read = X509Certificate::from_der(certificate);
    read.map_or(i64::MIN, |(_, certificate)| certificate.validity().not_after.timestamp())
}
