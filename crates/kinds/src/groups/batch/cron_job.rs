//! CronJobs.

mod schedule;
mod time_zone;

use pintle_meta::object;
use pintle_value::Value;

use super::{super::workload, job};
use crate::{
    defaults::{
        Constant::{Bool, Int, Text},
        Defaults,
        Row::{Empty, In, Unset},
        set,
    },
    field::{Errors, Field},
    pods,
    rules::{
        Rule::{Choice, NotNegative},
        Rules, check,
    },
    strategy::{AS_UPDATE, COUNTED_WITH_STATUS, NOT_CHECKED, Part, Strategy, part},
};

/// The controller adds eleven characters to the names of jobs.
const NAME_LENGTH_MAX: usize = 63 - 11;

const TEMPLATE: &[&str] = &["spec", "jobTemplate", "spec", "template"];

pub(super) const CRON_JOB: Strategy = Strategy {
    metadata: AS_UPDATE,
    gated: &[(&["spec", "jobTemplate", "spec", "template", "spec"], pods::GATED)],
    default: |object| set(object, DEFAULTS),
    validate,
    declared_rules: false,
    warnings: |new, old| {
        let mut warnings = workload::warn(new, old, TEMPLATE, Some(workload::NAME_WORDS));
        if old.is_some() && has_zone(new) {
            // Upstream's path is `spec.spec.schedule`.
            warnings.push(
                "CRON_TZ or TZ used in spec.spec.schedule is not officially supported, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more \
                 details"
                    .to_owned(),
            );
        }
        warnings
    },
    parts: &[Part { metadata: Some(NOT_CHECKED), ..part("status") }],
    ..COUNTED_WITH_STATUS
};

/// Of a Job's defaults, the template gets only those of pods and of failure conditions.
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

fn validate(new: &Value, old: Option<&Value>) -> Errors {
    let cron_job = Field::root(new);
    let spec = cron_job.get("spec");
    let mut errors = Errors::new();
    check_schedule(&spec, old, &mut errors);
    check(&spec, &[NotNegative("startingDeadlineSeconds")], &mut errors);
    let zone = spec.get("timeZone");
    let is_new = old.is_none_or(|old| old.at(&["spec", "timeZone"]) != zone.some());
    if is_new && zone.is_set() {
        time_zone::check(&zone, &mut errors);
    }
    check(&spec, &[Choice("concurrencyPolicy", &["Allow", "Forbid", "Replace"])], &mut errors);
    let job = spec.at(&["jobTemplate", "spec"]);
    let old_job = old.and_then(|old| old.at(&["spec", "jobTemplate", "spec"]));
    job::check_spec(&job, old_job, &mut errors);
    check_generated(&job, &mut errors);
    check(&spec, HISTORY, &mut errors);
    let name = object::name(new);
    if old.is_none() && name.len() > NAME_LENGTH_MAX {
        let words = format!("must be no more than {NAME_LENGTH_MAX} characters");
        errors.push(cron_job.at(&["metadata", "name"]).invalid(words));
    }
    errors
}

const HISTORY: Rules =
    &[NotNegative("successfulJobsHistoryLimit"), NotNegative("failedJobsHistoryLimit")];

fn has_zone(cron_job: &Value) -> bool {
    cron_job.str_at(&["spec", "schedule"]).is_some_and(|schedule| schedule.contains("TZ"))
}

/// Checks the schedule, which may have a time zone only if the stored schedule has one.
fn check_schedule(spec: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let schedule = spec.get("schedule");
    if schedule.is_empty() {
        errors.push(schedule.required(""));
        return;
    }
    errors.extend(schedule::wrong(schedule.text()).map(|words| schedule.invalid(words)));
    if !schedule.text().contains("TZ") {
        return;
    }
    if !old.is_some_and(has_zone) {
        let words = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(schedule.invalid(words));
    } else if spec.has("timeZone") {
        let words = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        errors.push(schedule.invalid(words));
    }
}

/// Checks that the template has no selector of its own, because each job gets a generated one.
fn check_generated(job: &Field<'_>, errors: &mut Errors) {
    if let Some(selector) = job.find("selector") {
        errors.push(selector.invalid("`selector` will be auto-generated"));
    }
    let manual = job.get("manualSelector");
    if manual.is_true() {
        errors.push(manual.not_supported(&["nil", "false"]));
    }
}
