//! Random bytes for cryptographic use: keys, nonces and initialization vectors.

use crate::Error;

/// Returns random bytes from the operating system.
pub(crate) fn random<const LEN: usize>() -> Result<[u8; LEN], Error> {
    let mut bytes = [0; LEN];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| Error::Unencryptable("unable to read sufficient random bytes"))?;
    Ok(bytes)
}
