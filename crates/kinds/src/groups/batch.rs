//! `batch/v1`: Jobs and CronJobs.

mod cron_job;
mod job;

use crate::kind::{Kind, kind};

const BATCH: &str = "batch";

pub(crate) const KINDS: &[Kind] =
    &[kind(BATCH, "cronjobs", cron_job::CRON_JOB), kind(BATCH, "jobs", job::JOB)];
