//! Why a server's certificate is refused, in the words and in the order of Go's `crypto/x509`.
//!
//! The TLS library has decided already; this module only says why. It looks at the certificates
//! that the server sent and at those of the CA bundle.

use std::fmt;
use std::net::IpAddr;

use pintle_meta::quote::quote;
use pintle_meta::time;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use super::algorithm::{Algorithm, check_signature};
use super::deprecations::{Deprecations, has_san};

/// The most signatures that the search for a reason checks, as in Go.
const SIGNATURES_MAX: usize = 100;
/// As in Go, a text lists the alternative names only if there are fewer than this.
const NAMES_MAX: usize = 100;

/// Why a certificate is refused.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    why: String,
    /// The deprecated properties that are the reason.
    pub(crate) deprecations: Deprecations,
}

/// A chain that was refused, and the roots, the name and the time by which it was verified.
pub(super) struct Refused<'a> {
    pub(super) leaf: &'a CertificateDer<'a>,
    pub(super) others: &'a [CertificateDer<'a>],
    /// The certificates of the CA bundle; none if the system's CAs are trusted.
    pub(super) roots: &'a [CertificateDer<'a>],
    pub(super) name: &'a ServerName<'a>,
    pub(super) now: UnixTime,
    pub(super) provider: &'a CryptoProvider,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Refusal {}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self { why, deprecations: Deprecations::default() }
    }
}

impl Refused<'_> {
    /// Returns the reason; `verdict` is the TLS library's error.
    pub(super) fn refusal(&self, verdict: &Error) -> Refusal {
        let Ok((_, leaf)) = X509Certificate::from_der(self.leaf) else {
            return plain(verdict).into();
        };
        if let Some(why) = outdated(&leaf, self.now) {
            return why.into();
        }
        if let Some(refusal) = self.name_refusal(&leaf) {
            return refusal;
        }
        if let Error::InvalidCertificate(
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
        ) = verdict
        {
            return "x509: certificate specifies an incompatible key usage".to_owned().into();
        }
        match self.hint(leaf) {
            Some(hint) => hint,
            None => plain(verdict).into(),
        }
    }

    /// The refusal of a certificate that is not for this server (Go: `HostnameError`).
    fn name_refusal(&self, leaf: &X509Certificate<'_>) -> Option<Refusal> {
        let has_san = has_san(leaf);
        let is_for_server = ParsedCertificate::try_from(self.leaf)
            .map(|parsed| rustls::client::verify_server_name(&parsed, self.name).is_ok());
        // The TLS library cannot parse certificates of version 1, which have no alternative names.
        if is_for_server.unwrap_or(has_san) {
            return None;
        }
        let host = self.name.to_str();
        if !has_san && matches_common_name(leaf, &host) {
            let why = "x509: certificate relies on legacy Common Name field, use SANs instead";
            let deprecations = Deprecations { missing_san: true, ..Deprecations::default() };
            return Some(Refusal { why: why.to_owned(), deprecations });
        }
        let is_address = matches!(self.name, ServerName::IpAddress(_));
        Some(of_names(&names(leaf, is_address), is_address, &host).into())
    }

    /// The first reason why a candidate cannot have signed the chain.
    fn hint<'a>(&'a self, leaf: X509Certificate<'a>) -> Option<Refusal> {
        let parsed = |ders: &'a [CertificateDer<'a>]| -> Vec<X509Certificate<'a>> {
            let parsed = ders.iter().filter_map(|der| X509Certificate::from_der(der).ok());
            parsed.map(|(_, certificate)| certificate).collect()
        };
        let (roots, others) = (parsed(self.roots), parsed(self.others));
        let (mut current, mut checks) = (&leaf, 0);
        loop {
            let is_parent = |one: &&X509Certificate<'_>| {
                let is_itself = one.tbs_certificate.as_ref() == current.tbs_certificate.as_ref();
                !is_itself && one.subject().as_raw() == current.issuer().as_raw()
            };
            let of_roots = roots.iter().filter(is_parent).map(|one| (one, true));
            let mut signer = None;
            for (one, is_root) in
                of_roots.chain(others.iter().filter(is_parent).map(|one| (one, false)))
            {
                checks += 1;
                if checks > SIGNATURES_MAX {
                    return None;
                }
                if let Err(why) = self.is_signed_by(current, one) {
                    return Some(unknown_authority(&why, one));
                }
                signer = signer.or((!is_root).then_some(one));
            }
            current = signer?;
        }
    }

    /// Checks that `parent` may sign certificates, has signed this one, and is valid now.
    fn is_signed_by(
        &self,
        certificate: &X509Certificate<'_>,
        parent: &X509Certificate<'_>,
    ) -> Result<(), String> {
        const CANNOT: &str =
            "x509: invalid signature: parent certificate cannot sign this kind of certificate";
        let basic = parent.basic_constraints().ok().flatten();
        let is_ca = basic.map_or(parent.version() != X509Version::V3, |basic| basic.value.ca);
        let usage = parent.key_usage().ok().flatten();
        if !is_ca || usage.is_some_and(|usage| !usage.value.key_cert_sign()) {
            return Err(CANNOT.to_owned());
        }
        check_signature(certificate, parent, self.provider)?;
        outdated(parent, self.now).map_or(Ok(()), Err)
    }
}

/// The refusal in an error of a handshake.
pub(crate) fn refusal(why: &Error) -> Refusal {
    let known = match why {
        Error::InvalidCertificate(CertificateError::Other(other)) => other.0.downcast_ref(),
        _ => None,
    };
    known.cloned().unwrap_or_else(|| plain(why).into())
}

/// The text of the TLS library's error.
fn plain(verdict: &Error) -> String {
    const UNKNOWN: &str = "x509: certificate signed by unknown authority";
    match verdict {
        Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => UNKNOWN.to_owned(),
        Error::InvalidCertificate(other) => format!("x509: {other}"),
        other => other.to_string(),
    }
}

/// The refusal of a chain whose authority is not known (Go: `UnknownAuthorityError`).
fn unknown_authority(why: &str, candidate: &X509Certificate<'_>) -> Refusal {
    let subject = candidate.subject();
    let name = subject.iter_common_name().next().and_then(|name| name.as_str().ok());
    let name = name.filter(|name| !name.is_empty());
    let organization = || subject.iter_organization().next().and_then(|name| name.as_str().ok());
    let name = name
        .or_else(organization)
        .map_or_else(|| format!("serial:{}", candidate.tbs_certificate.serial), str::to_owned);
    let insecure_sha1 = why.starts_with(Algorithm::INSECURE) && why.contains("SHA1");
    Refusal {
        why: format!(
            "x509: certificate signed by unknown authority (possibly because of {} while trying \
             to verify candidate authority certificate {})",
            quote(why),
            quote(&name)
        ),
        deprecations: Deprecations { insecure_sha1, ..Deprecations::default() },
    }
}

/// The refusal of a certificate that is not valid now.
fn outdated(certificate: &X509Certificate<'_>, now: UnixTime) -> Option<String> {
    const MICROS: i64 = 1_000_000;
    let text = |seconds: i64| time::format(seconds.saturating_mul(MICROS));
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX / MICROS);
    let validity = certificate.validity();
    let (from, to) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    let (relation, bound) = match now {
        now if now < from => ("before", from),
        now if now > to => ("after", to),
        _ => return None,
    };
    let (now, bound) = (text(now), text(bound));
    Some(format!(
        "x509: certificate has expired or is not yet valid: current time {now} is {relation} {bound}"
    ))
}

/// The names or addresses for which a certificate is valid.
fn names(leaf: &X509Certificate<'_>, addresses: bool) -> Vec<String> {
    let named = leaf.subject_alternative_name().ok().flatten();
    let named = named.map_or(&[][..], |extension| &extension.value.general_names);
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) if !addresses => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) if addresses => address(bytes).map(|ip| ip.to_string()),
        _ => None,
    };
    named.iter().filter_map(name).collect()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from).ok();
    v4.or_else(|| <[u8; 16]>::try_from(bytes).map(IpAddr::from).ok())
}

/// The refusal of a certificate that is only for `names`.
fn of_names(names: &[String], are_addresses: bool, host: &str) -> String {
    let count = names.len();
    match (names, are_addresses) {
        ([], true) => format!(
            "x509: cannot validate certificate for {host} because it doesn't contain any IP SANs"
        ),
        ([], false) => {
            format!("x509: certificate is not valid for any names, but wanted to match {host}")
        }
        _ if count >= NAMES_MAX => {
            let kind = if are_addresses { "IP SANs" } else { "names" };
            format!("x509: certificate is valid for {count} {kind}, but none matched {host}")
        }
        _ => format!("x509: certificate is valid for {}, not {host}", names.join(", ")),
    }
}

/// Whether the common name is, or matches, the host (Go: `matchHostnames`).
fn matches_common_name(leaf: &X509Certificate<'_>, host: &str) -> bool {
    let name = leaf.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
    let Some(pattern) = name.filter(|name| !name.is_empty()) else { return false };
    let host = host.strip_suffix('.').unwrap_or(host);
    let (mut pattern, mut host) = (pattern.split('.'), host.split('.'));
    for index in 0.. {
        match (pattern.next(), host.next()) {
            (None, None) => return true,
            (Some("*"), Some(_)) if index == 0 => {}
            (Some(part), Some(label)) if part.eq_ignore_ascii_case(label) => {}
            _ => return false,
        }
    }
    false
}
