//! AES-GCM: a random nonce of 12 bytes, the ciphertext, and the tag. upstream:
//! `apiserver/pkg/storage/value/encrypt/aes/aes.go`.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, Algorithm, LessSafeKey, NONCE_LEN, Nonce,
    UnboundKey,
};

use crate::Error;
use crate::random::random;

pub(crate) struct Gcm(LessSafeKey);

impl Gcm {
    /// Takes a key of 16, 24 or 32 bytes; returns `None` for any other length.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        let algorithm: &Algorithm = match key.len() {
            16 => &AES_128_GCM,
            24 => &AES_192_GCM,
            32 => &AES_256_GCM,
            _ => return None,
        };
        Some(Self(LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?)))
    }

    pub(crate) fn encrypt(
        &self,
        value: &[u8],
        authenticated: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        const FAILED: Error = Error::Unencryptable("AES-GCM could not encrypt the value");
        let nonce: [u8; NONCE_LEN] = random()?;
        out.extend_from_slice(&nonce);
        let start = out.len();
        out.extend_from_slice(value);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed =
            self.0.seal_in_place_separate_tag(nonce, Aad::from(authenticated), &mut out[start..]);
        out.extend_from_slice(sealed.map_err(|_| FAILED)?.as_ref());
        Ok(())
    }

    pub(crate) fn decrypt(&self, stored: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, Error> {
        let (nonce, sealed) = stored.split_first_chunk::<NONCE_LEN>().ok_or(Error::TOO_SHORT)?;
        let mut value = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let decrypted = self.0.open_in_place(nonce, Aad::from(authenticated), &mut value);
        let len = decrypted
            .map_err(|_| Error::Undecryptable("cipher: message authentication failed"))?
            .len();
        value.truncate(len);
        Ok(value)
    }
}
