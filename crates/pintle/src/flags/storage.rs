//! The flags about the data directory, the store and the history of changes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::snapshots::SnapshotFlags;
use super::{bytes, duration};

#[derive(Args, Debug)]
#[command(next_help_heading = "Storage")]
pub(super) struct StorageFlags {
    /// The directory of the store, the certificates and the administrator's kubeconfig
    #[arg(long, value_name = "DIR", default_value = ".pintle")]
    pub(super) data_dir: PathBuf,
    /// Keep the store and the certificates in memory only; they are lost when the server stops
    #[arg(long, conflicts_with = "etcd_servers")]
    pub(super) ephemeral: bool,
    /// Acknowledge a write before it is on disk. Writes are faster, and a crash of the machine
    /// loses the last ones
    #[arg(long)]
    pub(super) unsafe_no_fsync: bool,
    /// The file to which the administrator's kubeconfig is written [default: admin.kubeconfig in
    /// the data directory; with --ephemeral in a temporary directory]
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// How long the history of changes is kept, for watches and for lists at old resource versions
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub(super) watch_history: Duration,
    /// The largest size of that history: of each resource in memory, and of all resources on disk;
    /// 64Mi, 1Gi
    #[arg(long, value_name = "QUANTITY", default_value = "64Mi", value_parser = bytes)]
    pub(super) watch_history_size: usize,
    #[command(flatten)]
    pub(super) snapshots: SnapshotFlags,
}
