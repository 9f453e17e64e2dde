//! Snapshots at intervals, each in a file of its own in a folder; the oldest are removed.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pintle_registry::Registry;
use pintle_snapshot::{Folder, Replacement};

use super::{Snapshots, Trigger};
use crate::machine::now;

/// How long the server waits after a failure, unless the interval is shorter.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Takes snapshots until the task is dropped, if the configuration has a schedule. The first one is
/// due an interval after the newest one in the folder, so that restarts do not multiply snapshots.
pub(crate) async fn run(registry: Arc<Registry>, snapshots: Arc<Snapshots>) {
    let Some(schedule) = &snapshots.schedule else { return };
    let folder = Folder::new(&schedule.folder);
    let mut wait = until_due(&folder, schedule.interval);
    loop {
        tokio::time::sleep(wait).await;
        match take(&registry, &snapshots, &folder, schedule.keep).await {
            Ok((path, bytes)) => {
                tracing::info!(bytes, "took a snapshot: {}", path.display());
                wait = schedule.interval;
            }
            Err(why) => {
                wait = RETRY_AFTER.min(schedule.interval);
                tracing::warn!(%why, "cannot take a snapshot; the server tries again in {wait:?}");
            }
        }
    }
}

/// How long it is until the next snapshot is due.
fn until_due(folder: &Folder, interval: Duration) -> Duration {
    let Ok(Some(newest)) = folder.newest() else { return Duration::ZERO };
    // The age is negative if the clock was set back: the snapshot then counts as new.
    let age = Duration::from_micros(u64::try_from(now().unix_micros - newest).unwrap_or(0));
    interval.saturating_sub(age)
}

/// Takes a snapshot and removes the oldest ones; returns its path and size.
async fn take(
    registry: &Registry,
    snapshots: &Snapshots,
    folder: &Folder,
    keep: usize,
) -> Result<(PathBuf, u64), String> {
    let mut taking = snapshots.begin(registry, Trigger::Schedule).await?;
    let path = folder.file(taking.created_unix_micros);
    let named = |why: String| format!("{}: {why}", path.display());
    let begun = Replacement::begin(&path);
    let mut file = begun.map_err(|why| named(why.to_string()))?;
    while let Some(piece) = taking.next().await? {
        let written;
        (file, written) = on_disk(move || {
            let written = file.write_all(&piece);
            (file, written)
        })
        .await?;
        written.map_err(|why| named(why.to_string()))?;
    }
    let finished = on_disk(move || file.finish()).await?;
    finished.map_err(|why| named(why.to_string()))?;
    taking.complete();
    if let Err(why) = folder.prune(keep) {
        tracing::warn!(%why, "cannot remove old snapshots");
    }
    Ok((path, taking.bytes))
}

/// Runs work that waits for the disk on a blocking thread.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|why| why.to_string())
}
