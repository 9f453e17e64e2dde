//! When snapshots are taken, and where they are kept.

use std::path::PathBuf;
use std::time::Duration;

/// Snapshots at intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSchedule {
    /// The folder of the files.
    pub folder: PathBuf,
    /// The time between two snapshots.
    pub interval: Duration,
    /// How many of the newest are kept.
    pub keep: usize,
}
