//! Flags about the audit log.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{bail, ensure};
use clap::Args;
use clap::builder::BoolishValueParser;
use pintle_server::{
    AuditDelivery, AuditFormat, AuditLog, AuditMode, AuditOptions, AuditTruncation, AuditWebhook,
};

use super::duration;

/// The only version in which events are written.
const VERSION: &str = "audit.k8s.io/v1";
/// The modes, as upstream's error lists them.
const MODES: &str = "batch,blocking,blocking-strict";

#[derive(Args, Debug)]
#[command(next_help_heading = "Audit")]
pub(super) struct AuditFlags {
    /// The file of the audit policy: which requests are recorded, and with which content. Without
    /// it nothing is recorded
    #[arg(long, value_name = "FILE")]
    audit_policy_file: Option<PathBuf>,
    #[command(flatten)]
    log: LogFlags,
    #[command(flatten)]
    webhook: WebhookFlags,
}

#[derive(Args, Debug)]
struct LogFlags {
    /// Compress rotated log files with gzip
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    audit_log_compress: bool,
    /// Limit the rate of batches that are written to the log
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    audit_log_batch_throttle_enable: bool,
    /// Remove the bodies from events in the log that are too large
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    audit_log_truncate_enabled: bool,
    /// The log file, to which an event per line is appended; - is standard output
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
    /// The format of an event in the log: json or legacy
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    audit_log_format: String,
    /// The API version of events in the log
    #[arg(long, value_name = "VERSION", default_value = VERSION)]
    audit_log_version: String,
    /// Delete rotated log files that are older than this number of days; 0 deletes none
    #[arg(long, value_name = "DAYS", default_value_t = 366, allow_negative_numbers = true)]
    audit_log_maxage: i64,
    /// The largest number of rotated log files; 0 is no limit
    #[arg(long, value_name = "COUNT", default_value_t = 100, allow_negative_numbers = true)]
    audit_log_maxbackup: i64,
    /// Rotate the log file before it exceeds this number of mebibytes; 0 never rotates it
    #[arg(long, value_name = "MIB", default_value_t = 100, allow_negative_numbers = true)]
    audit_log_maxsize: i64,
    /// batch: a request does not wait for the log. blocking: a request waits until its events are
    /// written. blocking-strict: in addition, a request fails if its first event cannot be written
    #[arg(long, value_name = "MODE", default_value = "blocking")]
    audit_log_mode: String,
    /// The largest number of events that wait to be written in batch mode; further events are lost
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, allow_negative_numbers = true)]
    audit_log_batch_buffer_size: i64,
    /// The largest number of events in a batch
    #[arg(long, value_name = "COUNT", default_value_t = 1, allow_negative_numbers = true)]
    audit_log_batch_max_size: i64,
    /// How long an incomplete batch waits for further events
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    audit_log_batch_max_wait: Duration,
    /// The average number of batches that are written per second
    #[arg(long, value_name = "RATE", default_value_t = 0.0, allow_negative_numbers = true)]
    audit_log_batch_throttle_qps: f64,
    /// The number of batches that may be written at once before the average rate applies
    #[arg(long, value_name = "COUNT", default_value_t = 0, allow_negative_numbers = true)]
    audit_log_batch_throttle_burst: i64,
    /// The largest size of a batch in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 10_485_760, allow_negative_numbers = true)]
    audit_log_truncate_max_batch_size: i64,
    /// The largest size of an event in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 102_400, allow_negative_numbers = true)]
    audit_log_truncate_max_event_size: i64,
}

#[derive(Args, Debug)]
struct WebhookFlags {
    /// Limit the rate of batches that are sent to the webhook
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    audit_webhook_batch_throttle_enable: bool,
    /// Remove the bodies from events for the webhook that are too large
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    audit_webhook_truncate_enabled: bool,
    /// A kubeconfig with the address and the credentials of the webhook that receives events
    #[arg(long, value_name = "FILE")]
    audit_webhook_config_file: Option<PathBuf>,
    /// How long to wait before a failed batch is sent again the first time
    #[arg(long, alias = "audit-webhook-batch-initial-backoff", value_name = "DURATION",
          default_value = "10s", value_parser = duration)]
    audit_webhook_initial_backoff: Duration,
    /// The API version of events that are sent
    #[arg(long, value_name = "VERSION", default_value = VERSION)]
    audit_webhook_version: String,
    /// batch: a request does not wait for the webhook. blocking: a request waits until its events
    /// are sent. blocking-strict: in addition, a request fails if its first event cannot be sent
    #[arg(long, value_name = "MODE", default_value = "batch")]
    audit_webhook_mode: String,
    /// The largest number of events that wait to be sent in batch mode; further events are lost
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, allow_negative_numbers = true)]
    audit_webhook_batch_buffer_size: i64,
    /// The largest number of events in a batch
    #[arg(long, value_name = "COUNT", default_value_t = 400, allow_negative_numbers = true)]
    audit_webhook_batch_max_size: i64,
    /// How long an incomplete batch waits for further events
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    audit_webhook_batch_max_wait: Duration,
    /// The average number of batches that are sent per second
    #[arg(long, value_name = "RATE", default_value_t = 10.0, allow_negative_numbers = true)]
    audit_webhook_batch_throttle_qps: f64,
    /// The number of batches that may be sent at once before the average rate applies
    #[arg(long, value_name = "COUNT", default_value_t = 15, allow_negative_numbers = true)]
    audit_webhook_batch_throttle_burst: i64,
    /// The largest size of a batch in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 10_485_760, allow_negative_numbers = true)]
    audit_webhook_truncate_max_batch_size: i64,
    /// The largest size of an event in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 102_400, allow_negative_numbers = true)]
    audit_webhook_truncate_max_event_size: i64,
}

impl AuditFlags {
    /// The audit configuration. As upstream, the flags of a backend that is off are not checked.
    pub(super) fn options(self) -> anyhow::Result<AuditOptions> {
        Ok(AuditOptions {
            policy_file: self.audit_policy_file,
            log: self.log.options()?,
            webhook: self.webhook.options()?,
        })
    }
}

impl LogFlags {
    fn options(self) -> anyhow::Result<Option<AuditLog>> {
        let Some(path) = self.audit_log_path.filter(|path| !path.as_os_str().is_empty()) else {
            return Ok(None);
        };
        let delivery = Delivery {
            backend: "log",
            mode: &self.audit_log_mode,
            buffer_size: self.audit_log_batch_buffer_size,
            batch_size: self.audit_log_batch_max_size,
            batch_wait: self.audit_log_batch_max_wait,
            throttles: self.audit_log_batch_throttle_enable,
            throttle_qps: self.audit_log_batch_throttle_qps,
            throttle_burst: self.audit_log_batch_throttle_burst,
        };
        let (event_max, batch_max) =
            (self.audit_log_truncate_max_event_size, self.audit_log_truncate_max_batch_size);
        let truncation = truncation("log", event_max, batch_max)?;
        let delivery = delivery.check()?;
        check_version("log", &self.audit_log_version)?;
        let format = match self.audit_log_format.as_str() {
            "json" => AuditFormat::Json,
            "legacy" => AuditFormat::Legacy,
            other => bail!(
                "--audit-log-format: invalid audit log format {other}, allowed formats are \"legacy,json\""
            ),
        };
        Ok(Some(AuditLog {
            path: (path.as_os_str() != "-").then_some(path),
            format,
            max_age_days: natural("maxage", self.audit_log_maxage)?,
            max_backups: natural("maxbackup", self.audit_log_maxbackup)?,
            max_size_mebibytes: natural("maxsize", self.audit_log_maxsize)?,
            compress: self.audit_log_compress,
            delivery,
            truncation: self.audit_log_truncate_enabled.then_some(truncation),
        }))
    }
}

impl WebhookFlags {
    fn options(self) -> anyhow::Result<Option<AuditWebhook>> {
        let kubeconfig = self.audit_webhook_config_file;
        let Some(kubeconfig) = kubeconfig.filter(|path| !path.as_os_str().is_empty()) else {
            return Ok(None);
        };
        let delivery = Delivery {
            backend: "webhook",
            mode: &self.audit_webhook_mode,
            buffer_size: self.audit_webhook_batch_buffer_size,
            batch_size: self.audit_webhook_batch_max_size,
            batch_wait: self.audit_webhook_batch_max_wait,
            throttles: self.audit_webhook_batch_throttle_enable,
            throttle_qps: self.audit_webhook_batch_throttle_qps,
            throttle_burst: self.audit_webhook_batch_throttle_burst,
        };
        let (event_max, batch_max) = (
            self.audit_webhook_truncate_max_event_size,
            self.audit_webhook_truncate_max_batch_size,
        );
        let truncation = truncation("webhook", event_max, batch_max)?;
        let delivery = delivery.check()?;
        check_version("webhook", &self.audit_webhook_version)?;
        Ok(Some(AuditWebhook {
            kubeconfig,
            initial_backoff: self.audit_webhook_initial_backoff,
            delivery,
            truncation: self.audit_webhook_truncate_enabled.then_some(truncation),
        }))
    }
}

/// The flags about when events are given to a backend.
struct Delivery<'a> {
    backend: &'static str,
    mode: &'a str,
    buffer_size: i64,
    batch_size: i64,
    batch_wait: Duration,
    throttles: bool,
    throttle_qps: f64,
    throttle_burst: i64,
}

impl Delivery<'_> {
    fn check(self) -> anyhow::Result<AuditDelivery> {
        let Delivery {
            backend, mode, buffer_size, batch_size, throttle_qps, throttle_burst, ..
        } = self;
        let mode = match mode {
            "batch" => AuditMode::Batch,
            "blocking" => AuditMode::Blocking,
            "blocking-strict" => AuditMode::BlockingStrict,
            other => bail!(
                "--audit-{backend}-mode: invalid audit {backend} mode {other}, allowed modes are {MODES:?}"
            ),
        };
        let mut throttle = None;
        if mode == AuditMode::Batch {
            let invalid = |flag: &str, what: &str, value: &dyn std::fmt::Display| {
                format!(
                    "--audit-{backend}-batch-{flag}: invalid audit batch {backend} {what} {value}, must be \
                     a positive number"
                )
            };
            ensure!(buffer_size > 0, invalid("buffer-size", "buffer size", &buffer_size));
            ensure!(batch_size > 0, invalid("max-size", "max batch size", &batch_size));
            if self.throttles {
                let (qps, burst) = (throttle_qps, throttle_burst);
                ensure!(qps > 0.0, invalid("throttle-qps", "throttle QPS", &qps));
                ensure!(burst > 0, invalid("throttle-burst", "throttle burst", &burst));
                throttle = Some((qps, u32::try_from(burst).unwrap_or(u32::MAX)));
            }
        }
        Ok(AuditDelivery {
            mode,
            buffer_size: usize::try_from(buffer_size).unwrap_or_default(),
            batch_size: usize::try_from(batch_size).unwrap_or_default(),
            batch_wait: self.batch_wait,
            throttle,
        })
    }
}

fn truncation(backend: &str, event_max: i64, batch_max: i64) -> anyhow::Result<AuditTruncation> {
    ensure!(
        event_max > 0,
        "--audit-{backend}-truncate-max-event-size: invalid audit truncate {backend} max event size \
         {event_max}, must be a positive number"
    );
    ensure!(
        batch_max >= event_max,
        "--audit-{backend}-truncate-max-batch-size: invalid audit truncate {backend} max batch size \
         {batch_max}, must be greater than max event size ({event_max})"
    );
    Ok(AuditTruncation {
        event_bytes_max: usize::try_from(event_max).unwrap_or(usize::MAX),
        batch_bytes_max: usize::try_from(batch_max).unwrap_or(usize::MAX),
    })
}

fn check_version(backend: &str, version: &str) -> anyhow::Result<()> {
    ensure!(
        version == VERSION,
        "--audit-{backend}-version: invalid group version, allowed versions are [{VERSION:?}]"
    );
    Ok(())
}

/// A number that must not be negative; one above `u32::MAX` becomes `u32::MAX`.
fn natural(flag: &str, value: i64) -> anyhow::Result<u32> {
    ensure!(value >= 0, "--audit-log-{flag} {value} can't be a negative number");
    Ok(u32::try_from(value).unwrap_or(u32::MAX))
}
