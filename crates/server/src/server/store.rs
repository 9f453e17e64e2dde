//! Opens the store: in the data directory, in memory, or on etcd. Warns of a data directory that
//! has lost a part.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pintle_store::{Durability, Inspection, Opening, Options};

use crate::encryption::Encryption;
use crate::pki::make_private_directory;
use crate::{Config, Error};

/// The bound of an in-memory store's history. It is small because watches read from the cache.
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
        return Ok(Box::new(open_etcd(config, etcd, encryption).await?));
    }
    if config.ephemeral {
        return Ok(Box::new(pintle_store::memory(EPHEMERAL_HISTORY_BYTES_MAX)?));
    }
    make_private_directory(&config.data_dir).map_err(|error| error.of("data-dir"))?;
    let options = Options {
        dir: store_directory(&config.data_dir),
        durability: if config.fsync { Durability::Disk } else { Durability::System },
        history_bytes_max: config.watch_history_bytes as u64,
        transformer,
    };
    match pintle_store::open(&options) {
        Ok(opening) => Ok(Box::new(opening)),
        Err(why) => Err(unusable(config, why)),
    }
}

/// Reads all records of the store in the data directory, which no process may have open, with the
/// configured encryption. Changes nothing.
///
/// # Errors
/// The encryption cannot be configured, a part of the store is missing or damaged, or a value
/// cannot be decrypted.
pub fn inspect_store(config: &Config) -> Result<Inspection, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::Thread)?;
    let encryption = runtime.block_on(Encryption::open(config.encryption.as_ref()))?;
    let transformer = encryption.as_ref().map(Encryption::transformer);
    Ok(pintle_store::inspect(&store_directory(&config.data_dir), transformer)?)
}

/// The error of a store that cannot be opened or read.
pub(super) fn unusable(config: &Config, error: pintle_store::Error) -> Error {
    let is_on_disk = !config.ephemeral && config.etcd.is_none();
    match error {
        pintle_store::Error::Failed { reason } if is_on_disk => {
            Error::OpenStore { path: store_directory(&config.data_dir), reason }
        }
        error if is_on_disk => Error::Store(error).of("data-dir"),
        error => error.into(),
    }
}

/// Connects to etcd.
pub(super) async fn open_etcd(
    config: &Config,
    etcd: &pintle_etcd::Options,
    encryption: Option<&Encryption>,
) -> Result<pintle_etcd::EtcdOpening, Error> {
    let event_ttl = config.event_ttl.unwrap_or(EVENT_TTL);
    let kinds = &config.runtime_config;
    let layout = pintle_layout::Upstream::new(kinds, config.storage_media_type, event_ttl);
    let transformer = encryption.map(Encryption::transformer);
    let options = pintle_etcd::Options { transformer, ..etcd.clone() };
    let opened = pintle_etcd::open(&options, Arc::new(layout)).await;
    opened.map_err(|why| Error::Flag { flag: "etcd-servers", reason: with_remedy(&why) })
}

/// Returns the text of an error of etcd, with a remedy.
fn with_remedy(error: &pintle_etcd::Error) -> String {
    use pintle_etcd::Error as E;
    let remedy = match error {
        E::ServerCertificate(_) => {
            "the certificate must be valid for the host of the URL, and signed by an authority of \
             --etcd-cafile"
        }
        E::ClientCertificate(_) => {
            "etcd requires a valid certificate of an authority that it trusts: --etcd-certfile and \
             --etcd-keyfile"
        }
        E::Refused { .. } => {
            "if etcd has users, one of them must be the common name of --etcd-certfile, and may \
             read and write below --etcd-prefix and at compact_rev_key"
        }
        E::Unreachable(_) | E::Lost(_) => {
            "check the URLs, and that most members of etcd are running; https:// is for members \
             that serve TLS"
        }
        _ => return error.to_string(),
    };
    format!("{error}; {remedy}")
}

/// Returns the store's directory in a data directory.
pub fn store_directory(data_dir: &Path) -> PathBuf {
    data_dir.join(STORE)
}

/// Refuses a data directory that an interrupted restore left, warns of one that has lost a part,
/// and makes the folder of snapshots. Must be called before anything is created, so that the
/// restore can be repeated.
pub(super) fn check_directories(config: &Config) -> Result<(), Error> {
    if !config.ephemeral && config.etcd.is_none() {
        let refused = pintle_store::refuse_unfinished(&store_directory(&config.data_dir));
        refused.map_err(|error| unusable(config, error))?;
        warn_of_losses(config);
    }
    if let Some(schedule) = &config.snapshots {
        let made = make_private_directory(&schedule.folder);
        made.map_err(|error| error.of("snapshot-dir"))?;
    }
    Ok(())
}

/// Warns if the data directory has only the store or only the certificates, as after a partial
/// restore. The server then creates the other part.
fn warn_of_losses(config: &Config) {
    let store = store_directory(&config.data_dir);
    let authority = config.certificate_directory().join("ca.crt");
    match (store.exists(), authority.exists()) {
        (true, false) => tracing::warn!(
            "{} is missing, although the store exists: the server creates a new CA, so previous kubeconfigs, \
             client certificates and service account tokens are invalid; to keep them, stop the server \
             and restore a copy of the directory",
            authority.display()
        ),
        (false, true) => tracing::warn!(
            "{} is missing, although the certificates exist: the server starts without any objects; to \
             recover them, stop the server and restore a copy of the directory",
            store.display()
        ),
        (true, true) | (false, false) => {}
    }
}
