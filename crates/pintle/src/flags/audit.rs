//! Flags about what is recorded of requests, and where.

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
/// The modes that upstream knows.
const MODES: &str = "batch,blocking,blocking-strict";

#[derive(Args, Debug)]
#[command(next_help_heading = "Audit")]
pub(super) struct AuditFlags {
    /// The audit policy: which requests are recorded, and how much of them; nothing is without one
    #[arg(long, value_name = "FILE")]
    audit_policy_file: Option<PathBuf>,
    #[command(flatten)]
    log: LogFlags,
    #[command(flatten)]
    webhook: WebhookFlags,
}

#[derive(Args, Debug)]
struct LogFlags {
    /// Compress files that are no longer written to
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    audit_log_compress: bool,
    /// Bound the batches of the log
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    audit_log_batch_throttle_enable: bool,
    /// Leave out of the log what makes an event too large
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    audit_log_truncate_enabled: bool,
    /// Where events are written, a line each; - is standard output
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
    /// The form of a line: json or legacy
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    audit_log_format: String,
    /// The version of events in the log
    #[arg(long, value_name = "VERSION", default_value = VERSION)]
    audit_log_version: String,
    /// After how many days old files go; 0 is never
    #[arg(long, value_name = "DAYS", default_value_t = 366, allow_negative_numbers = true)]
    audit_log_maxage: i64,
    /// How many old files stay; 0 is all of them
    #[arg(long, value_name = "COUNT", default_value_t = 100, allow_negative_numbers = true)]
    audit_log_maxbackup: i64,
    /// From how many mebibytes on another file is begun; 0 is never
    #[arg(long, value_name = "MIB", default_value_t = 100, allow_negative_numbers = true)]
    audit_log_maxsize: i64,
    /// Whether requests wait until they are recorded: batch (no), blocking, or blocking-strict, which
    /// refuses those that cannot be recorded when they come
    #[arg(long, value_name = "MODE", default_value = "blocking")]
    audit_log_mode: String,
    /// How many events may wait for the log in batch mode; more are lost
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, allow_negative_numbers = true)]
    audit_log_batch_buffer_size: i64,
    /// How many events are written at a time in batch mode
    #[arg(long, value_name = "COUNT", default_value_t = 1, allow_negative_numbers = true)]
    audit_log_batch_max_size: i64,
    /// How long a batch waits until it is full
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    audit_log_batch_max_wait: Duration,
    /// How many batches a second are written in the long run
    #[arg(long, value_name = "RATE", default_value_t = 0.0, allow_negative_numbers = true)]
    audit_log_batch_throttle_qps: f64,
    /// How many batches are written at once
    #[arg(long, value_name = "COUNT", default_value_t = 0, allow_negative_numbers = true)]
    audit_log_batch_throttle_burst: i64,
    /// How many bytes a batch may have
    #[arg(long, value_name = "BYTES", default_value_t = 10_485_760, allow_negative_numbers = true)]
    audit_log_truncate_max_batch_size: i64,
    /// How many bytes an event may have
    #[arg(long, value_name = "BYTES", default_value_t = 102_400, allow_negative_numbers = true)]
    audit_log_truncate_max_event_size: i64,
}

#[derive(Args, Debug)]
struct WebhookFlags {
    /// Bound the batches to the webhook
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    audit_webhook_batch_throttle_enable: bool,
    /// Leave out what makes an event too large for the webhook
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    audit_webhook_truncate_enabled: bool,
    /// The kubeconfig that says where the webhook is that events are sent to
    #[arg(long, value_name = "FILE")]
    audit_webhook_config_file: Option<PathBuf>,
    /// How long to wait before events that could not be sent are sent again
    #[arg(long, alias = "audit-webhook-batch-initial-backoff", value_name = "DURATION",
          default_value = "10s", value_parser = duration)]
    audit_webhook_initial_backoff: Duration,
    /// The version of events that are sent
    #[arg(long, value_name = "VERSION", default_value = VERSION)]
    audit_webhook_version: String,
    /// Whether requests wait until their events are sent: batch (no), blocking, or blocking-strict
    #[arg(long, value_name = "MODE", default_value = "batch")]
    audit_webhook_mode: String,
    /// How many events may wait for the webhook in batch mode; more are lost
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, allow_negative_numbers = true)]
    audit_webhook_batch_buffer_size: i64,
    /// How many events are sent at a time in batch mode
    #[arg(long, value_name = "COUNT", default_value_t = 400, allow_negative_numbers = true)]
    audit_webhook_batch_max_size: i64,
    /// How long a batch waits until it is full
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    audit_webhook_batch_max_wait: Duration,
    /// How many batches a second are sent in the long run
    #[arg(long, value_name = "RATE", default_value_t = 10.0, allow_negative_numbers = true)]
    audit_webhook_batch_throttle_qps: f64,
    /// How many batches are sent at once
    #[arg(long, value_name = "COUNT", default_value_t = 15, allow_negative_numbers = true)]
    audit_webhook_batch_throttle_burst: i64,
    /// How many bytes a batch may have
    #[arg(long, value_name = "BYTES", default_value_t = 10_485_760, allow_negative_numbers = true)]
    audit_webhook_truncate_max_batch_size: i64,
    /// How many bytes an event may have
    #[arg(long, value_name = "BYTES", default_value_t = 102_400, allow_negative_numbers = true)]
    audit_webhook_truncate_max_event_size: i64,
}

impl AuditFlags {
    /// What is recorded, and where. As upstream has it, flags of a backend that is off are not looked at.
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

/// What the flags say about when a backend is given events.
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

/// A number that is not negative; what is too large to matter is as good as the largest.
fn natural(flag: &str, value: i64) -> anyhow::Result<u32> {
    ensure!(value >= 0, "--audit-log-{flag} {value} can't be a negative number");
    Ok(u32::try_from(value).unwrap_or(u32::MAX))
}
