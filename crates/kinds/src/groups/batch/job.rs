//! Jobs.

use pintle_meta::{field::Error, labels::Selector, object};
use pintle_value::{Map, Path, Value};

use crate::{
    checks::{Frozen, frozen, members, unchanged},
    defaults::{
        Condition::{NotSet, Set},
        Constant::{Bool, Int, Text},
        Defaults, Row,
        Row::{At, Do, Each, Empty, In, Unset, When},
        is_filled, set,
    },
    pods,
    strategy::{COUNTED_WITH_STATUS, Strategy, count, selectable},
};

const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
const NAME_LABEL: &str = "batch.kubernetes.io/job-name";
const OLD_UID_LABEL: &str = "controller-uid";
const OLD_NAME_LABEL: &str = "job-name";

pub(super) const JOB: Strategy = Strategy {
    fields: &[selectable!("status.successful" by |job| count(job, &["status", "succeeded"]))],
    default: |object| set(object, DEFAULTS),
    prepare_create: select_own_pods,
    validate: |new, old| {
        let spec = new.get("spec").unwrap_or(&Value::Null);
        let path = Path::new("spec");
        let mut errors = Vec::new();
        if spec.get("selector").is_none_or(Value::is_null) {
            errors.push(Error::required(&path.field("selector"), ""));
        } else {
            check_selector(spec, &path, &mut errors);
        }
        check_spec(spec, &path, &mut errors);
        errors.extend(unchanged(new, old, FROZEN));
        if old.is_some_and(|old| !may_change_template(old)) {
            errors.extend(unchanged(new, old, &[frozen(&["spec", "template"])]));
        }
        errors
    },
    ..COUNTED_WITH_STATUS
};

const DEFAULTS: Defaults = &[
    Do(labels_from_template),
    In(
        "spec",
        &[
            When(NotSet("parallelism"), &[Unset("completions", Int(1))]),
            Unset("parallelism", Int(1)),
            When(Set("backoffLimitPerIndex"), &[Unset("backoffLimit", Int(i32::MAX as i64))]),
            Unset("backoffLimit", Int(6)),
            Unset("completionMode", Text("NonIndexed")),
            Unset("suspend", Bool(false)),
            When(Set("podFailurePolicy"), &[Unset("podReplacementPolicy", Text("Failed"))]),
            Unset("podReplacementPolicy", Text("TerminatingOrFailed")),
            Unset("manualSelector", Bool(false)),
            In("template", pods::POD_TEMPLATE),
            ON_CONDITIONS,
        ],
    ),
];

/// In specs of jobs, also within CronJobs.
pub(super) const ON_CONDITIONS: Row = At(
    "podFailurePolicy",
    &[Each("rules", &[Each("onPodConditions", &[Empty("status", Text("True"))])])],
);

const FROZEN: &[Frozen] = &[
    frozen(&["spec", "selector"]),
    frozen(&["spec", "completionMode"]),
    frozen(&["spec", "podFailurePolicy"]),
    frozen(&["spec", "backoffLimitPerIndex"]),
    frozen(&["spec", "managedBy"]),
    frozen(&["spec", "successPolicy"]),
];

/// A job without labels takes those of its pods.
fn labels_from_template(job: &mut Map) {
    if let Some(labels) = pods::template_labels(job) {
        let metadata = job.entry_object("metadata");
        if !is_filled(metadata, "labels") {
            metadata.insert("labels", labels);
        }
    }
}

/// A job tells its pods by its own uid, unless it has a selector of its own (META-34).
fn select_own_pods(job: &mut Value) {
    if job.at(&["spec", "manualSelector"]).and_then(Value::as_bool) == Some(true) {
        return;
    }
    let (name, uid) = (object::name(job).to_owned(), object::uid(job).to_owned());
    if uid.is_empty() {
        return;
    }
    let spec = job.object_entry("spec");
    let labels = spec.entry_object("template").entry_object("metadata").entry_object("labels");
    let own =
        [(UID_LABEL, &uid), (OLD_UID_LABEL, &uid), (NAME_LABEL, &name), (OLD_NAME_LABEL, &name)];
    for (label, value) in own {
        labels.insert(label, value.as_str());
    }
    spec.entry_object("selector").entry_object("matchLabels").insert(UID_LABEL, uid);
}

/// While a job is suspended and has not run, its pods may still be changed.
fn may_change_template(job: &Value) -> bool {
    let is_suspended = job.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
    is_suspended && job.at(&["status", "startTime"]).is_none_or(Value::is_null)
}

fn check_selector(spec: &Value, path: &Path, errors: &mut Vec<Error>) {
    let labels = members(spec, &["template", "metadata", "labels"]);
    let selector = Selector::from_label_selector(spec.get("selector"));
    if selector.is_ok_and(|selector| !selector.matches_map(Some(labels))) {
        let path = path.field("template").field("metadata").field("labels");
        errors.push(Error::invalid(&path, &Value::from(labels.clone()), pods::LABELS_MISMATCH));
    }
}

/// What is wrong with a JobSpec, apart from its selector.
pub(super) fn check_spec(spec: &Value, path: &Path, errors: &mut Vec<Error>) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    for member in counts {
        if let Some(value @ Value::Int(..0)) = spec.get(member) {
            let words = "must be greater than or equal to 0";
            errors.push(Error::invalid(&path.field(member), value, words));
        }
    }
    let template = spec.get("template").unwrap_or(&Value::Null);
    let path = path.field("template");
    pods::validate_template(template, &path, errors);
    let restart = template.str_at(&["spec", "restartPolicy"]);
    if !matches!(restart, Some("OnFailure" | "Never")) {
        let path = path.field("spec").field("restartPolicy");
        errors.push(Error::required(&path, r#"valid values: "OnFailure", "Never""#));
    }
}
