//! Configuration of auditing: `--audit-…`.

use std::path::PathBuf;
use std::time::Duration;

/// The audit policy and backends. Nothing is audited without a policy and a backend.
#[derive(Clone, Debug, Default)]
pub struct AuditOptions {
    /// The policy file.
    pub policy_file: Option<PathBuf>,
    /// The log.
    pub log: Option<AuditLog>,
    /// The webhook.
    pub webhook: Option<AuditWebhook>,
}

/// The log backend: a line for each event.
#[derive(Clone, Debug)]
pub struct AuditLog {
    /// The file; `None` is standard output.
    pub path: Option<PathBuf>,
    /// The format of lines.
    pub format: AuditFormat,
    /// The days after which rotated files are removed; 0 is never.
    pub max_age_days: u32,
    /// The number of rotated files to retain; 0 is all.
    pub max_backups: u32,
    /// The size at which the file is rotated, in MiB; 0 is never.
    pub max_size_mebibytes: u32,
    /// Compresses rotated files.
    pub compress: bool,
    /// Batching and blocking.
    pub delivery: AuditDelivery,
    /// The limits of event sizes.
    pub truncation: Option<AuditTruncation>,
}

/// The webhook backend: events are sent in batches.
#[derive(Clone, Debug)]
pub struct AuditWebhook {
    /// The kubeconfig of the webhook.
    pub kubeconfig: PathBuf,
    /// The delay before the first retry of a failed batch.
    pub initial_backoff: Duration,
    /// When events are sent.
    pub delivery: AuditDelivery,
    /// The limits of event sizes.
    pub truncation: Option<AuditTruncation>,
}

/// The formats of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditFormat {
    /// A JSON object.
    Json,
    /// Upstream's text format.
    Legacy,
}

/// How events reach a backend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AuditDelivery {
    /// How requests wait for the backend.
    pub mode: AuditMode,
    /// The number of buffered events; this and the following members are for batch mode only.
    pub buffer_size: usize,
    /// The largest number of events in a batch.
    pub batch_size: usize,
    /// The time after which an incomplete batch is sent.
    pub batch_wait: Duration,
    /// The average number of batches per second, and the largest burst of batches.
    pub throttle: Option<(f64, u32)>,
}

/// How requests wait for a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditMode {
    /// Requests do not wait: events are buffered.
    Batch,
    /// Requests wait until their events are written or have failed.
    Blocking,
    /// Like `Blocking`, and a request is refused if its first event cannot be written.
    BlockingStrict,
}

/// The limits of event sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditTruncation {
    /// An event with this many bytes or more loses its objects; one that still has so many is
    /// dropped.
    pub event_bytes_max: usize,
    /// A batch with more bytes is split.
    pub batch_bytes_max: usize,
}
