//! Configuration of the snapshots that the server takes at intervals.

use std::path::PathBuf;
use std::time::Duration;

/// Snapshots at intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSchedule {
    /// The folder of the files.
    pub folder: PathBuf,
    /// The time between two snapshots.
    pub interval: Duration,
    /// The number of newest snapshots that are retained.
    pub keep: usize,
}
