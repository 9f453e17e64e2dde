//! What can be told a server about its audit log: `--audit-…`.

use std::path::PathBuf;
use std::time::Duration;

/// Which requests are recorded, and where. Nothing is without a policy and a backend.
#[derive(Clone, Debug, Default)]
pub struct AuditOptions {
    /// The file with the policy.
    pub policy_file: Option<PathBuf>,
    /// The log.
    pub log: Option<AuditLog>,
    /// The webhook.
    pub webhook: Option<AuditWebhook>,
}

/// Events are written to a file, a line each.
#[derive(Clone, Debug)]
pub struct AuditLog {
    /// The file; `None` is standard output.
    pub path: Option<PathBuf>,
    /// How a line says what happened.
    pub format: AuditFormat,
    /// After so many days old files are removed; 0 is never.
    pub max_age_days: u32,
    /// How many old files there may be; 0 is any number.
    pub max_backups: u32,
    /// From so many mebibytes on another file is begun; 0 is never.
    pub max_size_mebibytes: u32,
    /// Whether old files are compressed.
    pub compress: bool,
    /// When events are written.
    pub delivery: AuditDelivery,
    /// Which events are too large.
    pub truncation: Option<AuditTruncation>,
}

/// Events are sent to a server, many at a time.
#[derive(Clone, Debug)]
pub struct AuditWebhook {
    /// The kubeconfig that says where the server is.
    pub kubeconfig: PathBuf,
    /// How long to wait before a failed request is sent again for the first time.
    pub initial_backoff: Duration,
    /// When events are sent.
    pub delivery: AuditDelivery,
    /// Which events are too large.
    pub truncation: Option<AuditTruncation>,
}

/// The forms of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditFormat {
    /// An object of JSON.
    Json,
    /// A text.
    Legacy,
}

/// When a backend is given events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AuditDelivery {
    /// Whether requests wait for it.
    pub mode: AuditMode,
    /// How many events may wait; only in batch mode, as are all of these.
    pub buffer_size: usize,
    /// How many events there are in a batch at most.
    pub batch_size: usize,
    /// How long a batch waits until it is full.
    pub batch_wait: Duration,
    /// How many batches a second there may be in the long run, and how many at once.
    pub throttle: Option<(f64, u32)>,
}

/// Whether requests wait for a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditMode {
    /// They do not: events wait in a buffer.
    Batch,
    /// They wait until their events are written, or could not be.
    Blocking,
    /// They wait, and are refused where they cannot be recorded when they come.
    BlockingStrict,
}

/// What becomes of large events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditTruncation {
    /// The objects of events with more bytes than these are left out; events that are still larger are, too.
    pub event_bytes_max: usize,
    /// Batches with more bytes are sent in several parts.
    pub batch_bytes_max: usize,
}
