//! Configuration of encryption at rest.

use std::path::PathBuf;

/// A file with an EncryptionConfiguration: `--encryption-provider-config…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptionFile {
    /// The file.
    pub path: PathBuf,
    /// Whether the file is reloaded when it changes.
    pub reloaded: bool,
}
