//! The flags about snapshots that the server takes at intervals.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use pintle_server::SnapshotSchedule;

use super::duration;

#[derive(Args, Debug)]
#[command(next_help_heading = "Snapshots")]
pub(super) struct SnapshotFlags {
    /// Write snapshots into this directory at intervals; `pintle snapshot restore` reads them
    #[arg(long, value_name = "DIR")]
    snapshot_dir: Option<PathBuf>,
    /// The time between two snapshots: 30m, 24h
    #[arg(long, value_name = "DURATION", default_value = "1h0m0s", value_parser = duration)]
    snapshot_interval: Duration,
    /// The number of snapshots to keep; older ones are deleted
    #[arg(long, value_name = "COUNT", default_value_t = 24)]
    snapshot_keep: usize,
}

/// The shortest interval.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

impl SnapshotFlags {
    pub(super) fn schedule(self) -> anyhow::Result<Option<SnapshotSchedule>> {
        let Some(folder) = self.snapshot_dir else { return Ok(None) };
        if self.snapshot_interval < INTERVAL_MIN {
            bail!("--snapshot-interval: must be 1s or longer");
        }
        if self.snapshot_keep == 0 {
            bail!("--snapshot-keep: must be 1 or more");
        }
        let (interval, keep) = (self.snapshot_interval, self.snapshot_keep);
        Ok(Some(SnapshotSchedule { folder, interval, keep }))
    }
}
