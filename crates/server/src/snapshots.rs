//! Snapshots of this server's store: for clients that ask, and at intervals.
//!
//! Must not know the format of snapshots, where objects are stored, or requests.
//!
//! Invariant: the number of snapshots at a time and the time of each are bounded, because the store
//! keeps the records that they have yet to read.

mod download;
mod schedule;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pintle_measure::{Counter, Distribution, Gauge};
use pintle_registry::Registry;
use pintle_snapshot::{Header, Saving};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant as Deadline;

use crate::Config;
use crate::config::SnapshotSchedule;
use crate::machine::now;
pub use download::Download;
pub(crate) use schedule::run;

/// How many clients can take a snapshot at the same time.
pub(crate) const CLIENTS_MAX: usize = 2;

/// How long a snapshot may take. The history that the store retains for the snapshot grows
/// meanwhile.
const TIME_MAX: Duration = Duration::from_secs(3600);

/// The bounds of durations of snapshots, in nanoseconds: from 10 ms to the longest.
pub(crate) const BOUNDS: [u64; 8] = {
    const SECOND: u64 = 1_000_000_000;
    [
        SECOND / 100,
        SECOND / 10,
        SECOND / 2,
        SECOND,
        10 * SECOND,
        60 * SECOND,
        600 * SECOND,
        3600 * SECOND,
    ]
};

/// The reason why a snapshot is taken, which labels its measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    Request,
    Schedule,
}

/// The triggers' labels, in the order of [`Trigger`].
pub(crate) const TRIGGERS: [&str; 2] = ["request", "schedule"];

/// The measures of the snapshots of one trigger.
pub(crate) struct Measures {
    /// The durations of complete snapshots.
    pub(crate) took: Distribution,
    pub(crate) failures: Counter,
    /// When the last complete snapshot was begun, and its size.
    pub(crate) last_unix_seconds: Gauge,
    pub(crate) last_bytes: Gauge,
}

/// The snapshots of a server.
pub(crate) struct Snapshots {
    /// The permits of clients that take a snapshot.
    clients: Arc<Semaphore>,
    schedule: Option<SnapshotSchedule>,
    source: &'static str,
    /// Whether the store has plain values although the configuration asks for encryption.
    is_plain: bool,
    /// By trigger.
    measures: [Arc<Measures>; 2],
}

impl Snapshots {
    /// Sets up snapshots, of which none has been taken.
    pub(crate) fn new(config: &Config) -> Self {
        let source = match (&config.etcd, config.ephemeral) {
            (Some(_), _) => "etcd",
            (None, true) => "memory",
            (None, false) => "embedded",
        };
        Self {
            clients: Arc::new(Semaphore::new(CLIENTS_MAX)),
            schedule: config.snapshots.clone(),
            source,
            is_plain: config.ephemeral && config.encryption.is_some(),
            measures: std::array::from_fn(|_| Arc::new(Measures::new())),
        }
    }

    /// The measures of each trigger with its label.
    pub(crate) fn measures(&self) -> impl Iterator<Item = (&'static str, &Measures)> {
        TRIGGERS.into_iter().zip(self.measures.iter().map(|measures| &**measures))
    }

    /// A permit for a client; `None` if [`CLIENTS_MAX`] clients have one.
    pub(crate) fn enter(&self) -> Option<OwnedSemaphorePermit> {
        self.clients.clone().try_acquire_owned().ok()
    }

    /// Begins a snapshot of the newest state.
    pub(crate) async fn begin(
        &self,
        registry: &Registry,
        trigger: Trigger,
    ) -> Result<Taking, String> {
        let measures = self.measures[trigger as usize].clone();
        let begun = async {
            if self.is_plain {
                return Err("the store is in memory, where values are not encrypted; without \
                            --ephemeral they are"
                    .to_owned());
            }
            registry.stored_state().await.map_err(|why| why.to_string())
        };
        let state = begun.await.inspect_err(|_| measures.failures.add(1))?;
        let created_unix_micros = now().unix_micros;
        let header = Header {
            created_unix_micros,
            program: concat!("pintle ", env!("CARGO_PKG_VERSION")).to_owned(),
            source: self.source.to_owned(),
        };
        Ok(Taking {
            saving: Saving::new(state, &header),
            created_unix_micros,
            measures,
            began: Instant::now(),
            bytes: 0,
            is_complete: false,
        })
    }
}

impl Measures {
    fn new() -> Self {
        Self {
            took: Distribution::new(&BOUNDS),
            failures: Counter::default(),
            last_unix_seconds: Gauge::default(),
            last_bytes: Gauge::default(),
        }
    }
}

/// A snapshot that is being taken. It counts as failed if it is dropped before it is complete.
pub(crate) struct Taking {
    saving: Saving,
    created_unix_micros: i64,
    measures: Arc<Measures>,
    began: Instant,
    bytes: u64,
    is_complete: bool,
}

impl Taking {
    /// The next bytes of the file; `None` at its end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, String> {
        let deadline = Deadline::from_std(self.began + TIME_MAX);
        let next = tokio::time::timeout_at(deadline, self.saving.next()).await;
        let next = next.map_err(|_| format!("it took longer than {TIME_MAX:?}"))?;
        let next = next.map_err(|why| why.to_string())?;
        self.bytes += next.as_ref().map_or(0, |piece| piece.len() as u64);
        Ok(next)
    }

    /// Counts the snapshot as complete.
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        let Measures { took, failures, last_unix_seconds, last_bytes } = &*self.measures;
        if self.is_complete {
            took.took(self.began.elapsed());
            last_unix_seconds.set(self.created_unix_micros / 1_000_000);
            last_bytes.set(i64::try_from(self.bytes).unwrap_or(i64::MAX));
        } else {
            failures.add(1);
        }
    }
}
