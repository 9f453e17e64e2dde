//! Envelope encryption as in KMS version 2: values are encrypted with keys that are derived from a
//! seed. The seed is stored with each value, encrypted by a plugin. upstream:
//! `apiserver/pkg/storage/value/encrypt/envelope/kmsv2/envelope.go`,
//! `apiserver/pkg/storage/value/encrypt/aes/aes_extended_nonce.go`.
//!
//! It must not know how or when a plugin is called, or the clock.

mod object;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use aws_lc_rs::hkdf::{HKDF_SHA256, Prk};
use parking_lot::{Mutex, RwLock};
use zeroize::Zeroizing;

use crate::Error;
use crate::gcm::Gcm;
use crate::measures::{FROM_STORAGE, TO_STORAGE};
use crate::random::random;
use object::{EncryptedObject, SEED};
pub use object::{SealedSource, check_key_id};

/// The lengths in bytes of a seed; of the random bytes that are stored with each value, to derive
/// its key; and of a key.
const SEED_LEN: usize = 32;
const INFO_LEN: usize = 32;
const KEY_LEN: usize = 32;

/// The maximum number of cached seeds and keys. Each start of a server and each new key of the
/// plugin adds one.
const SOURCES_MAX: usize = 4096;

/// Decrypts seeds.
pub trait KeyService: fmt::Debug + Send + Sync {
    /// Decrypts a seed or key. This is called on any thread and blocks it, so it must return within
    /// seconds.
    ///
    /// # Errors
    /// The reason of the failure.
    fn unseal(&self, sealed: &SealedSource) -> Result<Zeroizing<Vec<u8>>, String>;

    /// Counts a value that is encrypted or decrypted with a seed or key that the service's key
    /// `key_id` sealed.
    fn count_use(&self, direction: Direction, key_id: &str) {
        let _ = (direction, key_id);
    }
}

/// Whether a value is read from the storage or written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    FromStorage,
    ToStorage,
}

impl Direction {
    /// Upstream's label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FromStorage => FROM_STORAGE,
            Self::ToStorage => TO_STORAGE,
        }
    }
}

/// A provider whose seeds are encrypted by a plugin.
#[derive(Debug)]
pub struct Envelope {
    service: Arc<dyn KeyService>,
    state: RwLock<State>,
    sources: Mutex<HashMap<(SealedSource, i32), Arc<Source>>>,
}

/// The seed for new values, and whether they may be written.
#[derive(Debug, Default)]
struct State {
    current: Option<Arc<Current>>,
    /// Why values must not be written, even if there is a seed.
    refused: Option<String>,
}

struct Current {
    sealed: SealedSource,
    source: Arc<Source>,
}

/// The source of the keys of values.
enum Source {
    /// Each value has its own derived key.
    Seed(Box<Prk>),
    /// A single key, as earlier versions of kube-apiserver wrote.
    Key(Box<Gcm>),
}

/// A new seed, which a plugin will encrypt.
pub struct Seed(Zeroizing<[u8; SEED_LEN]>);

impl Seed {
    /// Generates a seed.
    ///
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
    /// Creates an envelope that can read; to write, it needs a seed.
    pub fn new(service: Arc<dyn KeyService>) -> Self {
        Self { service, state: RwLock::default(), sources: Mutex::default() }
    }

    /// The ID of the plugin's key that encrypted the current seed.
    pub fn key_id(&self) -> Option<String> {
        self.state.read().current.as_ref().map(|current| current.sealed.key_id.clone())
    }

    /// Uses a new seed for writes.
    ///
    /// # Errors
    /// If the plugin's answer is invalid.
    pub fn write_with(&self, seed: &Seed, sealed: SealedSource) -> Result<(), Error> {
        sealed.check()?;
        let source = Arc::new(Source::seed(seed.bytes())?);
        self.remember((sealed.clone(), SEED), source.clone());
        let current = Some(Arc::new(Current { sealed, source }));
        *self.state.write() = State { current, refused: None };
        Ok(())
    }

    /// Allows writes with the current seed.
    pub fn allow_writes(&self) {
        self.state.write().refused = None;
    }

    /// Refuses writes until there is a new seed, or [`Self::allow_writes`] is called.
    pub fn refuse_writes(&self, why: String) {
        self.state.write().refused = Some(why);
    }

    /// The number of cached seeds and keys.
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
        self.service.count_use(Direction::ToStorage, &current.sealed.key_id);
        EncryptedObject::new(data.into(), &current.sealed).encode(out);
        Ok(())
    }

    /// Returns the value, and whether it is stale: a write would now use another key of the plugin,
    /// or a seed instead of a key of the value alone.
    pub(crate) fn decrypt(&self, stored: &[u8], path: &[u8]) -> Result<(Vec<u8>, bool), Error> {
        let object = EncryptedObject::decode(stored)?;
        let (data, sealed, kind) = object.split();
        let is_stale = kind != SEED || self.key_id().is_some_and(|now| now != sealed.key_id);
        let key_id = sealed.key_id.clone();
        let source = self.source(sealed, kind)?;
        self.service.count_use(Direction::FromStorage, &key_id);
        let value = match &*source {
            Source::Key(key) => key.decrypt(&data, path)?,
            Source::Seed(_) => {
                let (info, sealed) =
                    data.split_first_chunk::<INFO_LEN>().ok_or(Error::TOO_SHORT)?;
                source.key(info)?.decrypt(sealed, path)?
            }
        };
        Ok((value, is_stale))
    }

    /// Returns the source of keys from the cache or from the plugin.
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
                let key =
                    key.ok_or(Error::Undecryptable("the plugin gave a key of an invalid size"))?;
                Source::Key(Box::new(key))
            }
        });
        self.remember(id, source.clone());
        Ok(source)
    }

    fn remember(&self, id: (SealedSource, i32), source: Arc<Source>) {
        let mut sources = self.sources.lock();
        if sources.len() >= SOURCES_MAX {
            sources.clear(); // the plugin decrypts the few that are in use again
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

    /// The derived key of one value.
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
