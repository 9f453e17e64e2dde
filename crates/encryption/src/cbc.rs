//! AES-CBC with PKCS #7 padding, after a random initialization vector of 16 bytes. The path of a
//! value is not authenticated. upstream: `apiserver/pkg/storage/value/encrypt/aes/aes.go`.

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, EncryptionContext,
    PaddedBlockDecryptingKey, PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;

use crate::Error;
use crate::random::random;

const BLOCK: usize = 16;

pub(crate) struct Cbc {
    encrypting: PaddedBlockEncryptingKey,
    decrypting: PaddedBlockDecryptingKey,
}

impl Cbc {
    /// Takes a key of 16, 24 or 32 bytes; returns `None` for any other length.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        let algorithm: &'static Algorithm = match key.len() {
            16 => &AES_128,
            24 => &AES_192,
            32 => &AES_256,
            _ => return None,
        };
        let key = || UnboundCipherKey::new(algorithm, key).ok();
        Some(Self {
            encrypting: PaddedBlockEncryptingKey::cbc_pkcs7(key()?).ok()?,
            decrypting: PaddedBlockDecryptingKey::cbc_pkcs7(key()?).ok()?,
        })
    }

    pub(crate) fn encrypt(&self, value: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        const FAILED: Error = Error::Unencryptable("AES-CBC could not encrypt the value");
        let vector: [u8; BLOCK] = random()?;
        let mut padded = Vec::with_capacity(value.len() + BLOCK);
        padded.extend_from_slice(value);
        let context = EncryptionContext::Iv128(FixedLength::from(vector));
        self.encrypting.less_safe_encrypt(&mut padded, context).map_err(|_| FAILED)?;
        out.extend_from_slice(&vector);
        out.extend_from_slice(&padded);
        Ok(())
    }

    pub(crate) fn decrypt(&self, stored: &[u8]) -> Result<Vec<u8>, Error> {
        let (vector, padded) = stored.split_first_chunk::<BLOCK>().ok_or(Error::TOO_SHORT)?;
        if !padded.len().is_multiple_of(BLOCK) {
            return Err(Error::Undecryptable(
                "the stored data is not a multiple of the block size",
            ));
        }
        if padded.is_empty() {
            return Err(Error::Undecryptable("invalid PKCS7 data (empty or not padded)"));
        }
        let mut value = padded.to_vec();
        let context = DecryptionContext::Iv128(FixedLength::from(vector));
        let decrypted = self.decrypting.decrypt(&mut value, context);
        let len = decrypted.map_err(|_| Error::Undecryptable("invalid padding on input"))?.len();
        value.truncate(len);
        Ok(value)
    }
}
