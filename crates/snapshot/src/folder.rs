//! A folder of snapshots that a server takes at intervals: names the snapshots and removes old
//! ones.
//!
//! Files with other names are ignored.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pintle_meta::time;

const PREFIX: &str = "pintle-";
const SUFFIX: &str = ".snapshot";

/// A folder of snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// A folder at a path.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Returns the path of a snapshot of this time, in microseconds since 1970:
    /// `pintle-2026-11-24T18-46-35Z.snapshot`.
    pub fn file(&self, unix_micros: i64) -> PathBuf {
        let time = time::format(unix_micros).replace(':', "-");
        self.path.join(format!("{PREFIX}{time}{SUFFIX}"))
    }

    /// Returns the time of the newest snapshot, in microseconds since 1970.
    pub fn newest(&self) -> io::Result<Option<i64>> {
        Ok(self.snapshots()?.into_iter().map(|(time, _)| time).max())
    }

    /// Removes all snapshots but the `keep` newest ones; returns how many it removed.
    pub fn prune(&self, keep: usize) -> io::Result<usize> {
        let mut snapshots = self.snapshots()?;
        snapshots.sort_unstable();
        let surplus = snapshots.len().saturating_sub(keep);
        for (_, path) in &snapshots[..surplus] {
            fs::remove_file(path)?;
        }
        Ok(surplus)
    }

    fn snapshots(&self) -> io::Result<Vec<(i64, PathBuf)>> {
        let mut snapshots = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let time = entry.file_name().to_str().and_then(time_of);
            snapshots.extend(time.map(|time| (time, entry.path())));
        }
        Ok(snapshots)
    }
}

/// Returns the time in the name of a snapshot.
fn time_of(name: &str) -> Option<i64> {
    let text = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let (date, clock) = text.split_once('T')?;
    let time = time::parse(&format!("{date}T{}", clock.replace('-', ":"))).ok()?;
    (time::format(time).replace(':', "-") == text).then_some(time)
}
