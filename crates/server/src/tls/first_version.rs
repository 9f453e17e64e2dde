//! Client certificates of the first version of X.509, which `openssl x509 -req` makes where it is not
//! told of extensions: many users of clusters have one. kube-apiserver takes them; webpki reads the third
//! version only, so they are verified here.
//!
//! Such a certificate cannot say what it is for, nor that it is an authority itself. So it holds if one
//! of the authorities issued it, for its time.

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use super::is_signed;
use crate::pki::der::{SEQUENCE, der};

/// The certificate, if it is one of the first version.
pub(super) fn parse<'c>(der: &'c CertificateDer<'_>) -> Option<X509Certificate<'c>> {
    let (rest, certificate) = X509Certificate::from_der(der).ok()?;
    (rest.is_empty() && certificate.version() == X509Version::V1).then_some(certificate)
}

/// Whether one of the authorities issued a certificate that is of this time.
pub(super) fn verify(
    certificate: &X509Certificate<'_>,
    authorities: &RootCertStore,
    algorithms: &WebPkiSupportedAlgorithms,
    now: UnixTime,
) -> Result<(), Error> {
    super::is_of(certificate.validity(), now)?;
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

/// Whether who is at the other end has the key of a certificate.
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
