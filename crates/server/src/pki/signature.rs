//! Verification of signatures.

use rustls::pki_types::SignatureVerificationAlgorithm;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use webpki::RawPublicKeyEntity;

/// Verifies a signature with a key (a `SubjectPublicKeyInfo` in DER) and one of the algorithms.
pub(crate) fn is_signed(
    key: &[u8],
    algorithms: &[&dyn SignatureVerificationAlgorithm],
    message: &[u8],
    signature: &[u8],
) -> bool {
    let key = SubjectPublicKeyInfoDer::from(key);
    let Ok(key) = RawPublicKeyEntity::try_from(&key) else { return false };
    algorithms.iter().any(|algorithm| key.verify_signature(*algorithm, message, signature).is_ok())
}
