//! PEM to certificates and keys, with errors that name the file.

use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::Error;

/// Every certificate in a file, at least one.
pub(super) fn certificates(path: &Path, text: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match all {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(error(path, "there is no certificate in this file".to_owned())),
        Err(why) => Err(error(path, format!("this is not a certificate in PEM: {why}"))),
    }
}

/// The private key in a file.
pub(super) fn key(path: &Path, text: &str) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|why| error(path, format!("this is not a private key in PEM: {why}")))
}

/// Something is wrong with a file.
pub(super) fn error(path: &Path, reason: String) -> Error {
    Error::Certificate { path: path.to_owned(), reason }
}
