//! The verification of client certificates, cached.
//!
//! Upstream verifies a chain at each request. Here a success is cached until the CAs change, or one
//! of them or a certificate of the chain expires; from then on a chain that is still valid is verified at each
//! request. A failure is cached until the CAs change, unless a certificate is not valid yet.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use pintle_auth::Error;
use pintle_registry::request::Now;
use rustls::CertificateError;
use rustls::pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::tls::{Chains, Verifier};

/// The certificate chain of a client.
pub(super) struct Chain {
    verifier: Arc<Verifier>,
    leaf: CertificateDer<'static>,
    others: Box<[CertificateDer<'static>]>,
    /// The earliest expiry in the chain.
    first_end_unix_seconds: i64,
    /// The expiry of the leaf certificate.
    leaf_end_unix_seconds: i64,
    outcome: ArcSwapOption<Outcome>,
}

/// The cached outcome of a verification.
struct Outcome {
    /// The CAs that were used.
    verifier: Arc<Chains>,
    result: Result<(), Error>,
    /// The outcome is valid until this time, if the CAs do not change.
    until_unix_seconds: i64,
}

impl Chain {
    /// A chain that has not been verified.
    pub(super) fn new(
        verifier: &Arc<Verifier>,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
    ) -> Self {
        let others: Box<[_]> = others.iter().map(|other| other.clone().into_owned()).collect();
        // An unreadable certificate counts as expired, so a success is not cached.
        let first_end = others.iter().chain([leaf]).map(end).min().unwrap_or(i64::MIN);
        Self {
            verifier: verifier.clone(),
            leaf: leaf.clone().into_owned(),
            others,
            first_end_unix_seconds: first_end,
            leaf_end_unix_seconds: end(leaf),
            outcome: ArcSwapOption::empty(),
        }
    }

    /// The remaining validity of the leaf certificate in seconds.
    pub(super) const fn remaining_seconds(&self, now: Now) -> i64 {
        self.leaf_end_unix_seconds.saturating_sub(now.unix_seconds())
    }

    /// Verifies the chain, or returns the cached outcome.
    pub(super) fn check(&self, now: Now) -> Result<(), Error> {
        let (verifier, seconds) = (self.verifier.current(), now.unix_seconds());
        if let Some(outcome) = &*self.outcome.load()
            && Arc::ptr_eq(&outcome.verifier, &verifier)
            && seconds <= outcome.until_unix_seconds
        {
            return outcome.result.clone();
        }
        let since = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let time = UnixTime::since_unix_epoch(since);
        let verified = verifier.verify(&self.leaf, &self.others, time);
        let until_unix_seconds = match &verified {
            Ok(_) => self.first_end_unix_seconds,
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
            )) => i64::MIN,
            Err(_) => i64::MAX,
        };
        let until_unix_seconds = until_unix_seconds.min(verifier.unchanged_until(seconds));
        let result = verified.map_err(|error| Error::Untrusted(error.to_string()));
        let outcome = Outcome { verifier, result: result.clone(), until_unix_seconds };
        self.outcome.store(Some(Arc::new(outcome)));
        result
    }
}

fn end(certificate: &CertificateDer<'_>) -> i64 {
    let read = X509Certificate::from_der(certificate);
    read.map_or(i64::MIN, |(_, certificate)| certificate.validity().not_after.timestamp())
}
