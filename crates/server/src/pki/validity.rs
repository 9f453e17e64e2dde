//! The validity of certificates.

use std::time::{SystemTime, UNIX_EPOCH};

use pintle_meta::time;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

/// When a certificate is valid, in seconds since 1970, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) from: i64,
    pub(crate) until: i64,
}

impl Validity {
    /// The validity of a certificate; `None` if it cannot be parsed.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let validity = certificate.validity();
        Some(Self { from: validity.not_before.timestamp(), until: validity.not_after.timestamp() })
    }

    /// Returns the reason why a certificate is not valid at a time; `None` if it is valid.
    pub(crate) fn problem(self, now: i64) -> Option<String> {
        if now < self.from {
            let (from, now) = (date(self.from), date(now));
            Some(format!("it is valid from {from} on, and this machine's clock says {now}"))
        } else if now > self.until {
            Some(format!("it ended at {}", date(self.until)))
        } else {
            None
        }
    }
}

/// Formats a time for messages: `2026-11-22T13:00:00Z`.
pub(crate) fn date(unix_seconds: i64) -> String {
    time::format(unix_seconds.saturating_mul(time::SECOND))
}

/// A time in seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
