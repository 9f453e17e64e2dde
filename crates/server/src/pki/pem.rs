//! Parses PEM; errors name the file.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::KeyPair;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::Error;

/// All certificates in a file, at least one. A damaged certificate is an error, because a missing
/// CA would go unnoticed. Blocks of other types, such as keys, are skipped.
pub(super) fn certificates(path: &Path, text: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match all {
        Ok(certificates) if !certificates.is_empty() => {
            match certificates.iter().position(|der| X509Certificate::from_der(der).is_err()) {
                None => Ok(certificates),
                Some(at) => {
                    let reason = format!("certificate {} of this file cannot be read", at + 1);
                    Err(error(path, reason))
                }
            }
        }
        Ok(_) => Err(error(path, "there is no certificate in this file".to_owned())),
        Err(why) => Err(error(path, format!("this is not a certificate in PEM: {why}"))),
    }
}

/// The private key in a file.
pub(super) fn key(path: &Path, text: &str) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|why| error(path, format!("this is not a private key in PEM: {why}")))
}

/// Formats a P-256 key as `EC PRIVATE KEY` (SEC 1): clients such as fabric8's recognise by this
/// label that it is not an RSA key. `None` for other keys.
pub(super) fn elliptic(key: &KeyPair) -> Option<String> {
    // Parts of the key in PKCS #8: the object identifier of the curve, and the bytes before the
    // secret (the inner version, and the tag and length of the secret).
    const CURVE: [u8; 10] = [0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    const SECRET_BYTES: usize = 32;
    const WITHIN: [u8; 5] = [0x02, 1, 1, 0x04, SECRET_BYTES as u8];
    let (pkcs8, public) = (key.serialize_der(), key.public_key_raw());
    pkcs8.windows(CURVE.len()).position(|window| window == CURVE)?;
    let at = pkcs8.windows(WITHIN.len()).position(|window| window == WITHIN)? + WITHIN.len();
    let secret = pkcs8.get(at..at + SECRET_BYTES)?;
    let point = u8::try_from(public.len()).ok().filter(|length| *length == 65)?;
    let mut der = vec![0x30, 0x77];
    der.extend_from_slice(&WITHIN);
    der.extend_from_slice(secret);
    der.extend_from_slice(&[0xa0, CURVE.len() as u8]);
    der.extend_from_slice(&CURVE);
    der.extend_from_slice(&[0xa1, point + 3, 0x03, point + 1, 0]);
    der.extend_from_slice(public);
    let text = STANDARD.encode(der);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    let lines = lines.join("\n");
    Some(format!("-----BEGIN EC PRIVATE KEY-----\n{lines}\n-----END EC PRIVATE KEY-----\n"))
}

/// The error of a file.
pub(super) fn error(path: &Path, reason: String) -> Error {
    Error::Certificate { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elliptic_keys_say_so() {
        let made = KeyPair::generate().unwrap();
        let text = elliptic(&made).unwrap();
        assert!(matches!(key(Path::new(""), &text), Ok(PrivateKeyDer::Sec1(_))));
        let read = KeyPair::from_pem(&text).unwrap();
        assert_eq!(read.public_key_raw(), made.public_key_raw());
    }
}
