//! XSalsa20 and Poly1305, like NaCl's secretbox: a random nonce of 24 bytes, the tag, the
//! ciphertext. The path of a value is not authenticated. upstream:
//! `apiserver/pkg/storage/value/encrypt/secretbox/secretbox.go`.

use crypto_secretbox::aead::{AeadInPlace, KeyInit};
use crypto_secretbox::{Nonce, Tag, XSalsa20Poly1305};

use crate::Error;
use crate::random::random;

const NONCE_LEN: usize = 24;
const TAG_LEN: usize = 16;

pub(crate) struct Secretbox(XSalsa20Poly1305);

impl Secretbox {
    /// Takes a key of 32 bytes; returns `None` for any other length.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        XSalsa20Poly1305::new_from_slice(key).ok().map(Self)
    }

    pub(crate) fn encrypt(&self, value: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        const FAILED: Error = Error::Unencryptable("secretbox could not encrypt the value");
        let nonce: [u8; NONCE_LEN] = random()?;
        out.extend_from_slice(&nonce);
        let tag_start = out.len();
        out.extend_from_slice(&[0; TAG_LEN]);
        out.extend_from_slice(value);
        let (tag, sealed) = out[tag_start..].split_at_mut(TAG_LEN);
        let encrypted = self.0.encrypt_in_place_detached(Nonce::from_slice(&nonce), b"", sealed);
        tag.copy_from_slice(&encrypted.map_err(|_| FAILED)?);
        Ok(())
    }

    pub(crate) fn decrypt(&self, stored: &[u8]) -> Result<Vec<u8>, Error> {
        let (nonce, rest) = stored.split_at_checked(NONCE_LEN).ok_or(Error::TOO_SHORT)?;
        let (tag, sealed) = rest.split_at_checked(TAG_LEN).ok_or(Error::TOO_SHORT)?;
        let mut value = sealed.to_vec();
        let (nonce, tag) = (Nonce::from_slice(nonce), Tag::from_slice(tag));
        let decrypted = self.0.decrypt_in_place_detached(nonce, b"", &mut value, tag);
        decrypted.map_err(|_| {
            Error::Undecryptable("output array was not large enough for encryption")
        })?;
        Ok(value)
    }
}
