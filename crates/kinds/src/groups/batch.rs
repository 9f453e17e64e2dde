//! `batch/v1`: Jobs and CronJobs.

mod job;

use pintle_meta::{field::Error, names};
use pintle_registry::NameRule;
use pintle_value::{Path, Value};

use crate::{
    checks::spec_not_negative,
    defaults::{
        Constant::{Bool, Int, Text},
        Defaults,
        Row::{Empty, In, Unset},
        set,
    },
    kind::{Kind, kind},
    pods,
    strategy::{COUNTED_WITH_STATUS, Strategy},
};

const BATCH: &str = "batch";

pub(crate) const KINDS: &[Kind] =
    &[kind(BATCH, "cronjobs", CRON_JOB), kind(BATCH, "jobs", job::JOB)];

/// The controller adds eleven characters to the names of jobs.
const NAME_LENGTH_MAX: usize = 63 - 11;

const CRON_JOB: Strategy = Strategy {
    name: NameRule::Custom(|name, prefix| {
        let mut wrong = names::subdomain_rule(name, prefix);
        if name.len() > NAME_LENGTH_MAX {
            wrong.push(format!("must be no more than {NAME_LENGTH_MAX} characters"));
        }
        wrong
    }),
    default: |object| set(object, DEFAULTS),
    validate: |new, _| {
        let mut errors = Vec::new();
        let counts =
            ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
        spec_not_negative(new, &counts, &mut errors);
        let path = Path::new("spec").field("jobTemplate").field("spec");
        let job = new.at(&["spec", "jobTemplate", "spec"]).unwrap_or(&Value::Null);
        job::check_spec(job, &path, &mut errors);
        if let Some(zone) = new.at(&["spec", "timeZone"])
            && zone.as_str() == Some("")
        {
            let path = Path::new("spec").field("timeZone");
            errors.push(Error::invalid(&path, zone, "timeZone must be nil or non-empty string"));
        }
        errors
    },
    ..COUNTED_WITH_STATUS
};

/// Of the Job's own defaults its template gets none but those of pods.
const DEFAULTS: Defaults = &[In(
    "spec",
    &[
        Empty("concurrencyPolicy", Text("Allow")),
        Unset("suspend", Bool(false)),
        Unset("successfulJobsHistoryLimit", Int(3)),
        Unset("failedJobsHistoryLimit", Int(1)),
        In("jobTemplate", &[In("spec", &[In("template", pods::POD_TEMPLATE), job::ON_CONDITIONS])]),
    ],
)];
