//! batch.

use pintle_meta::duration;
use pintle_registry::table::Cell;
use pintle_value::Value;

use super::column::Cell::{AgeOr, By, ByTime, Count, Text, TextOr};
use super::column::Description::{Field, Words};
use super::column::{AGE, NAME, boolean, containers, images, integer, selector, string};
use super::read::{at, bool_at, deleting, holds, int_at, time_at};
use super::{Columns, Kind};

const GROUP: &str = "batch";

pub(super) const KINDS: &[Kind] =
    &[Kind::new(GROUP, "CronJob", CRON_JOB), Kind::new(GROUP, "Job", JOB)];

const CRON_JOB: Columns = &[
    NAME,
    string("Schedule", Text("spec.schedule"), Field("batch.v1.CronJobSpec", "schedule")),
    string(
        "Timezone",
        TextOr("spec.timeZone", "<none>"),
        Field("batch.v1.CronJobSpec", "timeZone"),
    ),
    boolean("Suspend", By(suspend), Field("batch.v1.CronJobSpec", "suspend")),
    integer("Active", Count("status.active"), Field("batch.v1.CronJobStatus", "active")),
    string(
        "Last Schedule",
        AgeOr("status.lastScheduleTime", "<none>"),
        Field("batch.v1.CronJobStatus", "lastScheduleTime"),
    ),
    AGE,
    containers("spec.jobTemplate.spec.template.spec.containers").wide(),
    images("spec.jobTemplate.spec.template.spec.containers").wide(),
    selector("spec.jobTemplate.spec.selector", Field("batch.v1.JobSpec", "selector")).wide(),
];

const JOB: Columns = &[
    NAME,
    string("Status", By(status), Words("Status of the job.")),
    string("Completions", By(completions), Field("batch.v1.JobStatus", "succeeded")),
    string("Duration", ByTime(duration), Words("Time required to complete the job.")),
    AGE,
    containers("spec.template.spec.containers").wide(),
    images("spec.template.spec.containers").wide(),
    selector("spec.selector", Field("batch.v1.JobSpec", "selector")).wide(),
];

fn suspend(cron_job: &Value) -> Value {
    match bool_at(cron_job, "spec.suspend") {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    }
    .into()
}

fn status(job: &Value) -> Value {
    let first_true =
        |statuses: &[&'static str]| statuses.iter().find(|status| holds(job, status)).copied();
    first_true(&["Complete", "Failed"])
        .or_else(|| deleting(job).then_some("Terminating"))
        .or_else(|| first_true(&["Suspended", "FailureTarget", "SuccessCriteriaMet"]))
        .unwrap_or("Running")
        .into()
}

fn completions(job: &Value) -> Value {
    let succeeded = int_at(job, "status.succeeded");
    match (at(job, "spec.completions"), int_at(job, "spec.parallelism")) {
        (Some(_), _) => format!("{succeeded}/{}", int_at(job, "spec.completions")),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
    .into()
}

fn duration(job: &Value) -> Cell {
    let Some(start) = time_at(job, "status.startTime") else { return "".into() };
    match time_at(job, "status.completionTime") {
        Some(end) => duration::human(end.saturating_sub(start)).into(),
        None => Cell::since(start),
    }
}
