//! What can be told a server about encryption at rest.

use std::path::PathBuf;

/// A file with an EncryptionConfiguration: `--encryption-provider-config…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptionFile {
    /// The file.
    pub path: PathBuf,
    /// Whether it is read again when it changes.
    pub reloaded: bool,
}
