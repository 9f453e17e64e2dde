//! Lists the certificates of files with their expiry.

use std::fs;
use std::path::{Path, PathBuf};

use x509_parser::prelude::{FromDer, X509Certificate};

use super::{files, pem};
use crate::Error;

/// A certificate in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedCertificate {
    /// The file.
    pub path: PathBuf,
    /// Its subject, such as `CN=kube-apiserver`.
    pub subject: String,
    /// The last second of its validity, in seconds since 1970.
    pub until_unix_seconds: i64,
}

/// The certificates in a file, or in a directory's `.crt` files, sorted by file name.
///
/// # Errors
/// A file or the directory cannot be read, or a file has no certificate or an invalid one.
pub fn list_certificates(path: &Path) -> Result<Vec<ListedCertificate>, Error> {
    let mut listed = Vec::new();
    for path in files_of(path)? {
        let text = files::read(&path)?;
        for der in pem::certificates(&path, &text)? {
            let (_, certificate) = X509Certificate::from_der(&der)
                .map_err(|why| pem::error(&path, format!("this is not a certificate: {why}")))?;
            listed.push(ListedCertificate {
                path: path.clone(),
                subject: certificate.subject().to_string(),
                until_unix_seconds: certificate.validity().not_after.timestamp(),
            });
        }
    }
    Ok(listed)
}

fn files_of(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |why| Error::File { action: "read", path: path.to_owned(), why };
    let entries = fs::read_dir(path).map_err(unreadable)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()).map_err(unreadable));
    let mut paths = paths.collect::<Result<Vec<_>, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "crt"));
    paths.sort();
    Ok(paths)
}
