//! Opens the store: in the data directory, in memory, or on etcd. Warns of a data directory that
//! has lost a part.

use std::sync::Arc;
use std::time::Duration;

use pintle_store::{Durability, Opening, Options};

use crate::encryption::Encryption;
use crate::pki::make_private_directory;
use crate::{Config, Error};

/// The history that a store in memory keeps: almost none, since watches read from the cache.
const EPHEMERAL_HISTORY_BYTES_MAX: u64 = 1024 * 1024;

/// The default lifetime of events in etcd.
const EVENT_TTL: Duration = Duration::from_secs(3600);

/// The store's directory in the data directory.
const STORE: &str = "store";

/// Opens the configured store, or creates it.
pub(super) async fn open(
    config: &Config,
    encryption: Option<&Encryption>,
) -> Result<Box<dyn Opening>, Error> {
    let transformer = encryption.map(Encryption::transformer);
    if let Some(etcd) = &config.etcd {
        let event_ttl = config.event_ttl.unwrap_or(EVENT_TTL);
        let kinds = &config.runtime_config;
        let layout = pintle_layout::Upstream::new(kinds, config.storage_media_type, event_ttl);
        let layout = Arc::new(layout);
        let options = pintle_etcd::Options { transformer, ..etcd.clone() };
        return Ok(Box::new(pintle_etcd::open(&options, layout).await?));
    }
    if config.ephemeral {
        return Ok(Box::new(pintle_store::memory(EPHEMERAL_HISTORY_BYTES_MAX)?));
    }
    make_private_directory(&config.data_dir).map_err(|error| error.of("data-dir"))?;
    let options = Options {
        dir: config.data_dir.join(STORE),
        durability: if config.fsync { Durability::Disk } else { Durability::System },
        history_bytes_max: config.watch_history_bytes as u64,
        transformer,
    };
    match pintle_store::open(&options) {
        Ok(opening) => Ok(Box::new(opening)),
        Err(why) => Err(unusable(config, why)),
    }
}

/// The error of a store that cannot be opened or read.
pub(super) fn unusable(config: &Config, error: pintle_store::Error) -> Error {
    let is_on_disk = !config.ephemeral && config.etcd.is_none();
    match error {
        pintle_store::Error::Failed { reason } if is_on_disk => {
            Error::OpenStore { path: config.data_dir.join(STORE), reason }
        }
        error if is_on_disk => Error::Store(error).of("data-dir"),
        error => error.into(),
    }
}

/// Warns if the data directory has only the store or only the certificates, as after a partial
/// restore; the server creates the other part anew. Must be called before anything is created.
pub(super) fn warn_of_losses(config: &Config) {
    let store = config.data_dir.join(STORE);
    let authority = config.certificate_directory().join("ca.crt");
    if config.ephemeral || config.etcd.is_some() {
        return;
    }
    match (store.exists(), authority.exists()) {
        (true, false) => tracing::warn!(
            "{} is missing, though there is a store: a new authority is made, and kubeconfigs, client \
             certificates and tokens of service accounts from before are no longer good; to keep them, \
             stop the server and put back a copy of the directory",
            authority.display()
        ),
        (false, true) => tracing::warn!(
            "{} is missing, though there are certificates: the server begins without any objects; to \
             have them back, stop the server and put back a copy of the directory",
            store.display()
        ),
        (true, true) | (false, false) => {}
    }
}
