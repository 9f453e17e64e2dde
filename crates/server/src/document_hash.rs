//! The hash in the URL of an OpenAPI document, by which clients notice a change.

use sha2::{Digest, Sha512};

/// Returns the hash of a document.
pub(crate) fn document_hash(document: &[u8]) -> String {
    Sha512::digest(document).iter().map(|byte| format!("{byte:02X}")).collect()
}
