//! Client certificates of X.509 version 1, which `openssl x509 -req` makes without extensions: many
//! users have one. kube-apiserver accepts them; webpki reads version 3 only, so they are verified
//! here.
//!
//! Version 1 has no key usages and no CA flag. So a certificate is accepted if a CA issued it and
//! the current time is within its validity.

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use crate::pki::der::{SEQUENCE, der};
use crate::pki::is_signed;

/// Parses a certificate of version 1.
pub(super) fn parse<'c>(der: &'c CertificateDer<'_>) -> Option<X509Certificate<'c>> {
    let (rest, certificate) = X509Certificate::from_der(der).ok()?;
    (rest.is_empty() && certificate.version() == X509Version::V1).then_some(certificate)
}

/// Verifies that a CA issued the certificate and that it is valid now.
pub(super) fn verify(
    certificate: &X509Certificate<'_>,
    authorities: &RootCertStore,
    algorithms: &WebPkiSupportedAlgorithms,
    now: UnixTime,
) -> Result<(), Error> {
    super::check_validity(certificate.validity(), now)?;
    let issuer = certificate.issuer().as_raw();
    let (signed, signature) =
        (certificate.tbs_certificate.as_ref(), &*certificate.signature_value.data);
    let issued = authorities.roots.iter().filter(|root| der(SEQUENCE, &root.subject) == issuer);
    let mut issued = issued.map(|root| der(SEQUENCE, &root.subject_public_key_info));
    match issued.any(|key| is_signed(&key, algorithms.all, signed, signature)) {
        true => Ok(()),
        false => Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
    }
}

/// Verifies that the peer has the certificate's key.
pub(super) fn verify_signature(
    certificate: &X509Certificate<'_>,
    message: &[u8],
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<(), Error> {
    let of_scheme = algorithms.mapping.iter().find(|(scheme, _)| *scheme == signature.scheme);
    let of_scheme = of_scheme.map(|(_, algorithms)| *algorithms).unwrap_or_default();
    match is_signed(certificate.public_key().raw, of_scheme, message, signature.signature()) {
        true => Ok(()),
        false => Err(Error::InvalidCertificate(CertificateError::BadSignature)),
    }
}
