//! The flags about the limits of requests, under kube-apiserver's names.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use clap::builder::BoolishValueParser;

use super::duration;

#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitFlags {
    /// Limit the requests in progress by flow schemas and priority levels. Their seats are the sum
    /// of the next two limits
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    pub(super) enable_priority_and_fairness: bool,
    /// The largest number of non-mutating requests in progress; 0 is no limit
    #[arg(long, value_name = "COUNT", default_value_t = 400)]
    pub(super) max_requests_inflight: usize,
    /// The largest number of mutating requests in progress; 0 is no limit
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    pub(super) max_mutating_requests_inflight: usize,
    /// How long a request other than a watch may take
    #[arg(long, value_name = "DURATION", default_value = "1m0s", value_parser = duration)]
    pub(super) request_timeout: Duration,
    /// The shortest duration of a watch in seconds. The server ends a watch at a random time
    /// between this and twice this duration
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    pub(super) min_request_timeout: u32,
}

impl LimitFlags {
    /// Refuses limits with which the server could serve no request.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if self.request_timeout.is_zero() {
            bail!("--request-timeout: must be longer than zero");
        }
        Ok(())
    }
}
