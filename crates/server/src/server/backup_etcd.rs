//! An etcd that is used without a server: to read its objects for a snapshot, or to fill it with
//! the objects of a snapshot.

use std::sync::Arc;

use pintle_etcd::EtcdOpening;
use pintle_store::{
    BoxFuture, Follower, Opening as _, Record, Revision, Store, StoredState, Transformer,
};

use super::store::open_etcd;
use crate::encryption::Encryption;
use crate::{Config, EncryptionFile, Error};

/// An etcd and the keys by which values are encrypted in it.
pub struct BackupEtcd {
    opening: EtcdOpening,
    /// Must live until the values are read or written, because it runs the clients of KMS plugins.
    encryption: Option<Encryption>,
}

/// The state of an etcd, with the keys.
struct EtcdState {
    state: Box<dyn StoredState>,
    _encryption: Option<Encryption>,
}

/// Ignores the records, because no cache reads this store.
struct NoFollower;

impl BackupEtcd {
    /// Connects to an etcd.
    ///
    /// # Errors
    /// If it cannot be reached, or the file of the keys is invalid.
    pub async fn open(
        etcd: &pintle_etcd::Options,
        encryption: Option<EncryptionFile>,
    ) -> Result<Self, Error> {
        let encryption = Encryption::open(encryption.as_ref()).await?;
        let options = pintle_etcd::Options {
            waits: false,
            compaction_interval: None,
            size_interval: None,
            ..etcd.clone()
        };
        let opening = open_etcd(&Config::default(), &options, encryption.as_ref()).await?;
        Ok(Self { opening, encryption })
    }

    /// Returns the newest state.
    pub fn state(self) -> Box<dyn StoredState> {
        let state = self.opening.stored_state();
        Box::new(EtcdState { state, _encryption: self.encryption })
    }

    /// Calls a function with the store and with the transformer, if values are encrypted.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn with_store<T>(
        self,
        work: impl AsyncFnOnce(&dyn Store, Option<Arc<dyn Transformer>>) -> T,
    ) -> Result<T, Error> {
        let transformer = self.encryption.as_ref().map(Encryption::transformer);
        let store = Box::new(self.opening).read_to(Arc::new(NoFollower)).await?;
        let done = work(&*store, transformer).await;
        store.close().await;
        Ok(done)
    }
}

impl StoredState for EtcdState {
    fn revision(&self) -> Revision {
        self.state.revision()
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Record>, pintle_store::Error>> {
        self.state.next()
    }
}

impl Follower for NoFollower {
    fn apply(&self, _: &[Record], _: Revision) {}

    fn reset(&self, _: &[Record], _: Revision) {}
}
