//! `pintle snapshot restore`.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use pintle_server::{BackupEtcd, EncryptionFile, store_directory};
use pintle_snapshot::{Restored, Summary, fill, restore};
use tokio::runtime::Builder;

use super::{is_stream, now_unix_micros, open};
use crate::etcd_access::EtcdAccess;

/// Restore a snapshot into a new data directory, or into an empty etcd
///
/// In a data directory, objects keep their uids and resource versions. The server continues far
/// above the revision of the snapshot, so that clients of the old server get 410 Gone and list
/// again. A snapshot has no certificates and keys. Copy pki/ of the old data directory into the new
/// one before the server starts; otherwise the server generates new ones.
///
/// In etcd, objects keep their uids and get new resource versions. Restart all clients of the old
/// server, because etcd does not detect that their resource versions are invalid.
///
/// A damaged or incomplete snapshot is refused, and a data directory is removed again.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
#[group(id = "destination", required = true, multiple = false, args = ["data_dir", "etcd_servers"])]
pub(super) struct Restore {
    /// The new data directory, which must be empty or not exist
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The distance between the revision of the snapshot and the first new revision [default:
    /// 1,000,000,000 and 100,000 for each second since the snapshot was taken]
    #[arg(long, value_name = "COUNT", requires = "data_dir")]
    bump_revision: Option<u64>,
    #[command(flatten)]
    etcd: EtcdAccess,
    /// The file of the EncryptionConfiguration that encrypts values in the snapshot and in etcd
    #[arg(long, value_name = "FILE", requires = "etcd_servers")]
    encryption_provider_config: Option<PathBuf>,
    /// The snapshot; - is standard input, which cannot be restored into etcd
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Restore {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let restored = match &self.data_dir {
            Some(data_dir) => self.to_directory(data_dir),
            None => self.to_etcd(),
        };
        let line = restored.with_context(|| format!("cannot restore {}", self.file.display()))?;
        writeln!(io::stdout(), "{line}")?;
        Ok(())
    }

    /// Creates a data directory; returns a message.
    fn to_directory(&self, data_dir: &Path) -> anyhow::Result<String> {
        let (source, directory) = (open(&self.file)?, store_directory(data_dir));
        let restored = restore(source, &directory, self.bump_revision, now_unix_micros()?)?;
        let Restored { snapshot, floor, records } = restored;
        Ok(format!(
            "{}: {records} objects of revision {snapshot}; the server continues after revision {floor}",
            data_dir.display()
        ))
    }

    /// Writes into an empty etcd; returns a message.
    fn to_etcd(&self) -> anyhow::Result<String> {
        if is_stream(&self.file) {
            bail!("the snapshot must be a file, because it is checked before etcd is written to");
        }
        Summary::read(open(&self.file)?)?;
        let source = File::open(&self.file)?;
        let encryption = self.encryption_provider_config.clone();
        let encryption = encryption.map(|path| EncryptionFile { path, reloaded: false });
        let Some(etcd) = self.etcd.clone().options()? else {
            bail!("--etcd-servers names no server");
        };
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let filled = runtime.block_on(async {
            let opened = BackupEtcd::open(&etcd, encryption).await?;
            opened.with_store(async |store, keys| fill(source, store, keys).await).await
        })?;
        let records = filled?;
        Ok(format!("{}: {records} objects under {}", etcd.endpoints.join(","), etcd.prefix))
    }
}
