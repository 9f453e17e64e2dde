//! Envelope encryption, as the second version of the KMS API has it: values are encrypted by keys that derive
//! from a seed, and the seed lies beside them, encrypted by a plugin.
//! upstream: `apiserver/pkg/storage/value/encrypt/envelope/kmsv2/envelope.go`,
//! `apiserver/pkg/storage/value/encrypt/aes/aes_extended_nonce.go`.
//!
//! Must not know: how a plugin is reached, when it is asked, the clock.

mod object;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use aws_lc_rs::hkdf::{HKDF_SHA256, Prk};
use parking_lot::{Mutex, RwLock};
use zeroize::Zeroizing;

use crate::Error;
use crate::chain::{SHORT, random};
use crate::gcm::Gcm;
use object::{EncryptedObject, SEED};
pub use object::{SealedSource, check_key_id};

/// How long a seed is, in bytes; what stands before each value to derive its key from the seed; and a key.
const SEED_LEN: usize = 32;
const INFO_LEN: usize = 32;
const KEY_LEN: usize = 32;

/// How many seeds and keys of the past are remembered. There is one for each start of each server and each
/// key of the plugin.
const SOURCES_MAX: usize = 4096;

/// Who encrypts seeds.
pub trait KeyService: fmt::Debug + Send + Sync {
    /// The seed, or the key, that was sealed. It is asked from any thread, which waits for the answer: the
    /// answer must come within seconds.
    ///
    /// # Errors
    /// Why it could not be decrypted.
    fn unseal(&self, sealed: &SealedSource) -> Result<Zeroizing<Vec<u8>>, String>;
}

/// A provider whose seeds a plugin encrypts.
#[derive(Debug)]
pub struct Envelope {
    service: Arc<dyn KeyService>,
    state: RwLock<State>,
    sources: Mutex<HashMap<(SealedSource, i32), Arc<Source>>>,
}

/// What is written with.
#[derive(Debug, Default)]
struct State {
    current: Option<Arc<Current>>,
    /// Why nothing may be written, though there may be a seed.
    refused: Option<String>,
}

struct Current {
    sealed: SealedSource,
    source: Arc<Source>,
}

/// What keys come from.
enum Source {
    /// A key of its own for each value.
    Seed(Box<Prk>),
    /// One key, as servers of before wrote.
    Key(Box<Gcm>),
}

/// A new seed, for a plugin to encrypt.
pub struct Seed(Zeroizing<[u8; SEED_LEN]>);

impl Seed {
    /// # Errors
    /// If the operating system gives no random bytes.
    pub fn generate() -> Result<Self, Error> {
        Ok(Self(Zeroizing::new(random()?)))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &*self.0
    }
}

impl Envelope {
    /// Reads what the service can unseal; it does not write before it has a seed.
    pub fn new(service: Arc<dyn KeyService>) -> Self {
        Self { service, state: RwLock::default(), sources: Mutex::default() }
    }

    /// By which of the plugin's keys the seed is encrypted that values are written with.
    pub fn key_id(&self) -> Option<String> {
        self.state.read().current.as_ref().map(|current| current.sealed.key_id.clone())
    }

    /// Writes with a seed from now on.
    ///
    /// # Errors
    /// What is wrong with what the plugin made of it.
    pub fn write_with(&self, seed: &Seed, sealed: SealedSource) -> Result<(), Error> {
        sealed.check()?;
        let source = Arc::new(Source::seed(seed.bytes())?);
        self.remember((sealed.clone(), SEED), source.clone());
        let current = Some(Arc::new(Current { sealed, source }));
        *self.state.write() = State { current, refused: None };
        Ok(())
    }

    /// Writes with the seed that there is.
    pub fn allow_writes(&self) {
        self.state.write().refused = None;
    }

    /// Writes nothing until there is a new seed, or the old one may be used again.
    pub fn refuse_writes(&self, why: String) {
        self.state.write().refused = Some(why);
    }

    /// How many seeds and keys are remembered.
    pub fn sources(&self) -> usize {
        self.sources.lock().len()
    }

    pub(crate) fn encrypt(
        &self,
        value: &[u8],
        path: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let current = {
            let state = self.state.read();
            if let Some(why) = &state.refused {
                return Err(Error::KeyService(why.clone()));
            }
            state.current.clone()
        };
        let current =
            current.ok_or(Error::Unencryptable("the KMS plugin has not encrypted a seed yet"))?;
        let info: [u8; INFO_LEN] = random()?;
        let mut data = Vec::with_capacity(INFO_LEN + value.len() + 28);
        data.extend_from_slice(&info);
        current.source.key(&info)?.encrypt(value, path, &mut data)?;
        EncryptedObject::new(data.into(), &current.sealed).encode(out);
        Ok(())
    }

    /// The value, and whether it would be written with another key of the plugin now.
    pub(crate) fn decrypt(&self, stored: &[u8], path: &[u8]) -> Result<(Vec<u8>, bool), Error> {
        let object = EncryptedObject::decode(stored)?;
        let (data, sealed, kind) = object.split();
        let is_stale = kind != SEED || self.key_id().is_some_and(|now| now != sealed.key_id);
        let source = self.source(sealed, kind)?;
        let value = match &*source {
            Source::Key(key) => key.decrypt(&data, path)?,
            Source::Seed(_) => {
                let (info, sealed) = data.split_first_chunk::<INFO_LEN>().ok_or(SHORT)?;
                source.key(info)?.decrypt(sealed, path)?
            }
        };
        Ok((value, is_stale))
    }

    /// What keys come from: remembered, or asked for.
    fn source(&self, sealed: SealedSource, kind: i32) -> Result<Arc<Source>, Error> {
        let id = (sealed, kind);
        if let Some(source) = self.sources.lock().get(&id) {
            return Ok(source.clone());
        }
        let unsealed = self.service.unseal(&id.0);
        let unsealed = unsealed
            .map_err(|why| Error::KeyService(format!("failed to decrypt DEK, error: {why}")))?;
        let source = Arc::new(match kind {
            SEED => Source::seed(&unsealed)?,
            _ => {
                let key = Gcm::new(&unsealed);
                let key = key.ok_or(Error::Undecryptable("the plugin gave a key of no size"))?;
                Source::Key(Box::new(key))
            }
        });
        self.remember(id, source.clone());
        Ok(source)
    }

    fn remember(&self, id: (SealedSource, i32), source: Arc<Source>) {
        let mut sources = self.sources.lock();
        if sources.len() >= SOURCES_MAX {
            sources.clear(); // the few that are in use are asked for again
        }
        sources.insert(id, source);
    }
}

impl Source {
    fn seed(seed: &[u8]) -> Result<Self, Error> {
        if seed.len() < SEED_LEN {
            return Err(Error::KeyService(format!(
                "invalid seed length {} used for key generation",
                seed.len()
            )));
        }
        Ok(Self::Seed(Box::new(Prk::new_less_safe(HKDF_SHA256, seed))))
    }

    /// The key of one value.
    fn key(&self, info: &[u8; INFO_LEN]) -> Result<Gcm, Error> {
        const FAILED: Error = Error::Undecryptable("failed to KDF expand seed with info");
        let Self::Seed(seed) = self else { return Err(FAILED) };
        let mut key = Zeroizing::new([0; KEY_LEN]);
        seed.expand(&[info], HKDF_SHA256)
            .and_then(|expanded| expanded.fill(&mut *key))
            .map_err(|_| FAILED)?;
        Gcm::new(&*key).ok_or(FAILED)
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Current").field(&self.sealed.key_id).finish()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}
