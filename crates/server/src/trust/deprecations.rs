//! Properties of servers' certificates that Go's clients no longer accept (upstream:
//! `apiserver/pkg/util/x509metrics`).

use pintle_measure::Counter;
use rustls::pki_types::CertificateDer;
use x509_parser::oid_registry::OID_X509_EXT_SUBJECT_ALT_NAME;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::algorithm::Algorithm;
use crate::audit_notes;

/// The deprecated properties of a server's certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deprecations {
    /// The server's name is only in the common name of the subject.
    pub(crate) missing_san: bool,
    /// A certificate has a SHA-1 signature.
    pub(crate) insecure_sha1: bool,
}

/// The number of requests to servers with deprecated certificates.
#[derive(Default)]
pub(crate) struct DeprecationCounts {
    pub(crate) missing_san: Counter,
    pub(crate) insecure_sha1: Counter,
}

/// The counts by the kind of server, as upstream has them.
#[derive(Default)]
pub(crate) struct DeprecatedServers {
    pub(crate) webhooks: DeprecationCounts,
    pub(crate) extensions: DeprecationCounts,
}

impl Deprecations {
    /// The deprecations of an accepted chain, the server's own certificate first.
    pub(crate) fn of_chain(chain: &[CertificateDer<'_>]) -> Self {
        let parsed = |der| X509Certificate::from_der(der).map(|(_, parsed)| parsed).ok();
        let is_insecure = |one: &X509Certificate<'_>| {
            let is_self_issued = one.issuer().as_raw() == one.subject().as_raw();
            !is_self_issued && Algorithm::of(one).is_some_and(Algorithm::is_sha1)
        };
        Self {
            missing_san: chain
                .first()
                .and_then(|der| parsed(der))
                .is_some_and(|one| !has_san(&one)),
            insecure_sha1: chain.iter().filter_map(|der| parsed(der)).any(|one| is_insecure(&one)),
        }
    }
}

impl DeprecationCounts {
    /// If a property was found: counts the request to `host`, whether it was answered or not, and
    /// annotates the audit event of the client's request for which the server sent it.
    pub(crate) fn add(&self, found: Deprecations, host: &str) {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        for (is_found, count, id, reason) in [
            (
                found.missing_san,
                &self.missing_san,
                "missing-san",
                "relies on a legacy Common Name field instead of the SAN extension for subject validation",
            ),
            (
                found.insecure_sha1,
                &self.insecure_sha1,
                "insecure-sha1",
                "uses an insecure SHA-1 signature",
            ),
        ] {
            if is_found {
                count.add(1);
                tracing::info!(host, "invalid certificate: {reason}");
                audit_notes::add(format!("{id}.invalid-cert.kubernetes.io/{host}"), reason);
            }
        }
    }
}

/// Whether a certificate has the extension with the subject's alternative names.
pub(super) fn has_san(certificate: &X509Certificate<'_>) -> bool {
    certificate.extensions().iter().any(|one| one.oid == OID_X509_EXT_SUBJECT_ALT_NAME)
}
