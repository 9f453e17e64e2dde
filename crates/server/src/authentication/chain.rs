//! Chains of client certificates.
//!
//! Upstream verifies a chain at each request. Here the outcome is remembered: it stays the same until the
//! authorities change, or the first certificate of the chain ends. From then on the chain is verified at each
//! request, too.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use pintle_auth::Error;
use pintle_registry::request::Now;
use rustls::CertificateError;
use rustls::pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::tls::{Believed, Verifier};

/// A chain that a client has shown.
pub(super) struct Chain {
    verifier: Arc<Verifier>,
    leaf: CertificateDer<'static>,
    others: Box<[CertificateDer<'static>]>,
    /// When the first of its certificates ends.
    first_end_unix_seconds: i64,
    /// When the holder's own ends.
    leaf_end_unix_seconds: i64,
    outcome: ArcSwapOption<Outcome>,
}

/// What a verification came to.
struct Outcome {
    /// By which authorities.
    believed: Arc<Believed>,
    result: Result<(), Error>,
    /// Until when it stays the same, while the authorities do.
    until_unix_seconds: i64,
}

impl Chain {
    /// A chain that is not verified yet.
    pub(super) fn new(
        verifier: &Arc<Verifier>,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
    ) -> Self {
        let others: Box<[_]> = others.iter().map(|other| other.clone().into_owned()).collect();
        // One that cannot be read ends at once: nothing is known of how long it holds.
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

    /// For how long the holder's certificate is still valid, in seconds.
    pub(super) const fn remaining_seconds(&self, now: Now) -> i64 {
        self.leaf_end_unix_seconds.saturating_sub(now.unix_seconds())
    }

    /// Whether it holds now.
    pub(super) fn check(&self, now: Now) -> Result<(), Error> {
        let (believed, seconds) = (self.verifier.current(), now.unix_seconds());
        if let Some(outcome) = &*self.outcome.load()
            && Arc::ptr_eq(&outcome.believed, &believed)
            && seconds <= outcome.until_unix_seconds
        {
            return outcome.result.clone();
        }
        let since = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let time = UnixTime::since_unix_epoch(since);
        let verified = believed.verify_client_cert(&self.leaf, &self.others, time);
        let until_unix_seconds = match &verified {
            Ok(_) => self.first_end_unix_seconds,
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
            )) => i64::MIN,
            Err(_) => i64::MAX,
        };
        let result = verified.map(|_| ()).map_err(|error| Error::Untrusted(error.to_string()));
        let outcome = Outcome { believed, result: result.clone(), until_unix_seconds };
        self.outcome.store(Some(Arc::new(outcome)));
        result
    }
}

fn end(certificate: &CertificateDer<'_>) -> i64 {
    let read = X509Certificate::from_der(certificate);
    read.map_or(i64::MIN, |(_, certificate)| certificate.validity().not_after.timestamp())
}
