//! The stored form of a value: upstream's `EncryptedObject`
//! (`apiserver/pkg/storage/value/encrypt/envelope/kmsv2/v2/api.proto`).

use std::collections::BTreeMap;

use bytes::Bytes;
use pintle_meta::names;
use prost::Message;

use crate::Error;

/// The size limits of a key ID, an encrypted seed, and the annotations, in bytes.
const KEY_ID_BYTES_MAX: usize = 1024;
const SOURCE_BYTES_MAX: usize = 1024;
const ANNOTATIONS_BYTES_MAX: usize = 32 * 1024;

/// The types of a source: an AES-GCM key, or a seed from which keys are derived.
const KEY: i32 = 0;
pub(super) const SEED: i32 = 1;

/// An encrypted seed or key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SealedSource {
    /// The ID of the plugin's key.
    pub key_id: String,
    /// The encrypted bytes.
    pub bytes: Bytes,
    /// Data of the plugin that it needs to decrypt the bytes.
    pub annotations: BTreeMap<String, Bytes>,
}

impl SealedSource {
    /// Checks that this can be stored.
    pub(super) fn check(&self) -> Result<(), Error> {
        let invalid = |why: String| Err(Error::KeyService(why));
        if self.bytes.is_empty() {
            return invalid(
                "failed to validate encrypted DEK source: encrypted DEK source is empty".to_owned(),
            );
        }
        if self.bytes.len() > SOURCE_BYTES_MAX {
            return invalid(format!(
                "failed to validate encrypted DEK source: encrypted DEK source is {} bytes, which exceeds \
                 the max size of {SOURCE_BYTES_MAX}",
                self.bytes.len()
            ));
        }
        if let Err((_, why)) = check_key_id(&self.key_id) {
            return invalid(format!("failed to validate key id: {why}"));
        }
        let is_domain = |name: &str| {
            let name = name.strip_suffix('.').unwrap_or(name);
            name.contains('.') && names::dns1123_subdomain(name).is_empty()
        };
        if let Some(name) = self.annotations.keys().find(|name| !is_domain(name)) {
            return invalid(format!(
                "failed to validate annotations: {name:?} is not a fully qualified domain name"
            ));
        }
        let len: usize =
            self.annotations.iter().map(|(name, value)| name.len() + value.len()).sum();
        if len > ANNOTATIONS_BYTES_MAX {
            return invalid(format!(
                "failed to validate annotations: total size of annotations is {len}, which exceeds the max \
                 size of {ANNOTATIONS_BYTES_MAX}"
            ));
        }
        Ok(())
    }
}

/// Checks the ID of a plugin's key.
///
/// # Errors
/// The error code for metrics, and the message.
pub fn check_key_id(key_id: &str) -> Result<(), (&'static str, String)> {
    match key_id.len() {
        0 => Err(("empty", "keyID is empty".to_owned())),
        len if len > KEY_ID_BYTES_MAX => {
            let why =
                format!("keyID is {len} bytes, which exceeds the max size of {KEY_ID_BYTES_MAX}");
            Err(("too_long", why))
        }
        _ => Ok(()),
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EncryptedObject {
    #[prost(bytes = "bytes", tag = "1")]
    data: Bytes,
    #[prost(string, tag = "2")]
    key_id: String,
    #[prost(bytes = "bytes", tag = "3")]
    source: Bytes,
    #[prost(btree_map = "string, bytes", tag = "4")]
    annotations: BTreeMap<String, Bytes>,
    #[prost(int32, tag = "5")]
    source_type: i32,
}

impl EncryptedObject {
    /// Creates an object with a value that was encrypted with a derived key.
    pub(super) fn new(data: Bytes, sealed: &SealedSource) -> Self {
        let SealedSource { key_id, bytes, annotations } = sealed.clone();
        Self { data, key_id, source: bytes, annotations, source_type: SEED }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(self.encoded_len());
        self.encode_raw(out);
    }

    /// Reads and checks a stored object.
    pub(super) fn decode(stored: &[u8]) -> Result<Self, Error> {
        let object = <Self as Message>::decode(stored)
            .map_err(|_| Error::Undecryptable("the stored data is not an EncryptedObject"))?;
        if !matches!(object.source_type, KEY | SEED) {
            let why = format!("unknown encryptedDEKSourceType: {}", object.source_type);
            return Err(Error::KeyService(why));
        }
        if object.data.is_empty() {
            return Err(Error::Undecryptable("encrypted data is empty"));
        }
        object.clone().split().1.check()?;
        Ok(object)
    }

    /// The encrypted value, the encrypted source, and the source's type.
    pub(super) fn split(self) -> (Bytes, SealedSource, i32) {
        let Self { data, key_id, source: bytes, annotations, source_type } = self;
        (data, SealedSource { key_id, bytes, annotations }, source_type)
    }
}
