//! Flags about the log and traces.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use pintle_server::Tracing;

use super::{duration, tracing};

#[derive(Args, Debug)]
#[command(next_help_heading = "Logs and traces")]
pub(super) struct LoggingFlags {
    /// The log level, as kube-apiserver counts it. 0 to 2: changes of the server's state; from 3:
    /// each request; from 5: the time that a request spent in each layer; from 6: everything.
    /// RUST_LOG replaces this level: pintle=info,pintle::requests=trace
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..=10))]
    verbosity: u8,
    /// The format of the log: lines of text, or a JSON object per line
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    logging_format: LogFormat,
    /// With --logging-format=json, write errors to standard error and everything else to standard
    /// output
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "BOOL",
          default_value = "false", default_missing_value = "true",
          value_parser = clap::builder::BoolishValueParser::new())]
    log_json_split_stream: bool,
    /// Log each request that takes longer than this, with the time that it spent in each layer; 0
    /// logs none. Watches, logs and streaming sessions are not logged
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = duration)]
    pub(super) slow_request_threshold: Duration,
    /// The file of a TracingConfiguration: the OTLP collector to which traces are exported, and the
    /// sampling rate
    #[arg(long, value_name = "FILE")]
    tracing_config_file: Option<PathBuf>,
}

/// The formats of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

/// How the program logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogOptions {
    pub(crate) verbosity: u8,
    pub(crate) format: LogFormat,
    /// Whether only errors go to standard error, and everything else to standard output.
    pub(crate) split: bool,
}

impl LoggingFlags {
    pub(super) const fn options(&self) -> LogOptions {
        LogOptions {
            verbosity: self.verbosity,
            format: self.logging_format,
            split: self.log_json_split_stream && matches!(self.logging_format, LogFormat::Json),
        }
    }

    /// The export of traces.
    pub(super) fn tracing(&self) -> anyhow::Result<Option<Tracing>> {
        let read = |path: &PathBuf| tracing::configuration(path).context("--tracing-config-file");
        self.tracing_config_file.as_ref().map(read).transpose()
    }
}
