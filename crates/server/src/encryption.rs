//! Encryption at rest: the file that says what is encrypted and how, read at the start and, where that is
//! wanted, whenever it changes.
//!
//! Invariant: what is wrong with a changed file changes nothing.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use pintle_encryption::{Configuration, Providers};
use pintle_store::{Key, TransformError, Transformed, Transformer};
use zeroize::Zeroizing;

use crate::Error;
use crate::api::now;
use crate::config::EncryptionFile;
use crate::reloads::{Reloads, hash};

const FLAG: &str = "encryption-provider-config";

/// How often the file is looked at.
const PACE: Duration = Duration::from_secs(1);

/// The configuration that counts, and where it comes from.
pub(crate) struct Encryption {
    current: Arc<Current>,
    file: EncryptionFile,
    /// The hash of what the file said last.
    known: String,
    reloads: Arc<Reloads>,
}

impl Encryption {
    /// # Errors
    /// What is wrong with the file.
    pub(crate) fn open(file: &EncryptionFile) -> Result<Self, Error> {
        let said = read(file).map_err(|reason| Error::Flag { flag: FLAG, reason })?;
        let providers = providers(file, &said);
        let providers = providers.map_err(|reason| Error::Flag { flag: FLAG, reason })?;
        let reloads = Reloads::new("encryption");
        reloads.taken(&said);
        Ok(Self {
            current: Arc::new(Current(ArcSwap::from_pointee(providers))),
            file: file.clone(),
            known: hash(&said),
            reloads: Arc::new(reloads),
        })
    }

    /// What encrypts values, always by the configuration that counts.
    pub(crate) fn transformer(&self) -> Arc<dyn Transformer> {
        self.current.clone()
    }

    /// How the file is read again.
    pub(crate) fn reloads(&self) -> Arc<Reloads> {
        self.reloads.clone()
    }

    /// Reads the file again whenever it changes, if that is wanted.
    pub(crate) async fn follow_file(mut self) {
        if !self.file.reloaded {
            return;
        }
        let mut pace = tokio::time::interval(PACE);
        let mut is_missing = false;
        loop {
            pace.tick().await;
            let ended = match read(&self.file) {
                Ok(said) if hash(&said) == self.known => {
                    is_missing = false;
                    continue;
                }
                Ok(said) => {
                    is_missing = false;
                    self.reload(&said)
                }
                Err(_) if is_missing => continue,
                Err(why) => {
                    is_missing = true;
                    Err(why)
                }
            };
            self.reloads.ended(ended.err().as_deref(), now().unix_seconds());
        }
    }

    fn reload(&mut self, said: &[u8]) -> Result<(), String> {
        self.known = hash(said);
        self.current.0.store(Arc::new(providers(&self.file, said)?));
        self.reloads.taken(said);
        Ok(())
    }
}

/// What a file says; it holds keys.
fn read(file: &EncryptionFile) -> Result<Zeroizing<Vec<u8>>, String> {
    let path = file.path.display();
    match fs::read(&file.path) {
        Ok(said) if said.is_empty() => {
            Err(format!("encryption provider configuration file {path} is empty"))
        }
        Ok(said) => Ok(Zeroizing::new(said)),
        Err(why) => Err(format!("cannot read {path}: {why}")),
    }
}

fn providers(file: &EncryptionFile, said: &[u8]) -> Result<Providers, String> {
    let configuration = Configuration::read(said, file.reloaded);
    let providers = configuration.and_then(|configuration| Providers::new(&configuration));
    providers.map_err(|why| format!("{}: {why}", file.path.display()))
}

/// The providers that count now.
#[derive(Debug)]
struct Current(ArcSwap<Providers>);

impl Transformer for Current {
    fn to_storage(&self, key: &Key, path: &[u8], value: Bytes) -> Result<Bytes, TransformError> {
        self.0.load().to_storage(key, path, value)
    }

    fn to_value(
        &self,
        key: &Key,
        path: &[u8],
        stored: Bytes,
    ) -> Result<Transformed, TransformError> {
        self.0.load().to_value(key, path, stored)
    }

    fn fingerprint(&self) -> u64 {
        self.0.load().fingerprint()
    }
}
