//! Client certificates of the first version of X.509, which `openssl x509 -req` makes where it is not
//! told of extensions: many users of clusters have one. kube-apiserver takes them; webpki reads the third
//! version only, so they are verified here.
//!
//! Such a certificate cannot say what it is for, nor that it is an authority itself. So it holds if one
//! of the authorities issued it, for its time.

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{
    CertificateDer, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore};
use webpki::RawPublicKeyEntity;
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

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
    let issued = authorities.roots.iter().filter(|root| sequence(&root.subject) == issuer);
    let mut issued = issued.map(|root| sequence(&root.subject_public_key_info));
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

/// Whether a signature is of this key, by one of the algorithms.
fn is_signed(
    key: &[u8],
    algorithms: &[&dyn SignatureVerificationAlgorithm],
    message: &[u8],
    signature: &[u8],
) -> bool {
    let key = SubjectPublicKeyInfoDer::from(key);
    let Ok(key) = RawPublicKeyEntity::try_from(&key) else { return false };
    algorithms.iter().any(|algorithm| key.verify_signature(*algorithm, message, signature).is_ok())
}

/// A sequence in DER, from what is in it.
fn sequence(content: &[u8]) -> Vec<u8> {
    const TAG: u8 = 0x30;
    let length = content.len().to_be_bytes();
    let significant = &length[content.len().leading_zeros() as usize / 8..];
    let mut der = vec![TAG];
    match significant {
        [] => der.push(0),
        [short @ ..0x80] => der.push(*short),
        long => {
            der.push(0x80 | u8::try_from(long.len()).expect("a length has few bytes"));
            der.extend(long);
        }
    }
    der.extend(content);
    der
}
