//! Jobs.

mod failure;
mod indexes;
mod status;
mod success;
mod template;

use pintle_meta::{field::Error, labels::Selector, names, object, validation};
use pintle_registry::Dependents;
use pintle_value::{Map, Value};

use super::super::workload;
use crate::{
    checks::IMMUTABLE,
    defaults::{
        Condition::{NotSet, Set},
        Constant::{Bool, Int, Text},
        Defaults, Row,
        Row::{At, Do, Each, Empty, In, Unset, When},
        is_filled, set,
    },
    field::{Errors, Field},
    pods,
    rules::{Rule, Rules, check},
    strategy::{COUNTED_WITH_STATUS, Part, Strategy, count, part, selectable},
};

const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
const NAME_LABEL: &str = "batch.kubernetes.io/job-name";
const OLD_UID_LABEL: &str = "controller-uid";
const OLD_NAME_LABEL: &str = "job-name";

pub(super) const JOB: Strategy = Strategy {
    gated: pods::GATED_TEMPLATE,
    dependents: Dependents::Orphaned,
    dependents_warning: Some(
        "child pods are preserved by default when jobs are deleted; set \
         propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress \
         this warning",
    ),
    fields: &[selectable!(
        "status.successful" by |job| count(job, &["status", "succeeded"]), of "status"."succeeded"
    )],
    unknown_label: Some(|_, label| format!("field label {label:?} not supported for Job")),
    default: |object| set(object, DEFAULTS),
    note_origin: |job, origin| {
        // In upstream the default shares the template's own map: labels that the server adds to the
        // template are added to the job, too. So they are copied again after the template has them.
        let of_template = job.at(&["spec", "template", "metadata", "labels"]);
        if !origin.is_labelled && job.at(&["metadata", "labels"]) == of_template {
            job.object_entry("metadata").remove("labels");
        }
    },
    prepare_create: |job| {
        select_own_pods(job);
        labels_from_template(job.make_object());
    },
    validate,
    declared_rules: false,
    warnings: |new, old| {
        let mut warnings = workload::warn(new, old, workload::TEMPLATE, Some(workload::NAME_WORDS));
        warnings.extend(warn_of_size(new));
        warnings
    },
    parts: &[Part { validate: status::validate, ..part("status") }],
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

/// The default of conditions in specs of jobs, also within CronJobs.
pub(super) const ON_CONDITIONS: Row = At(
    "podFailurePolicy",
    &[Each("rules", &[Each("onPodConditions", &[Empty("status", Text("True"))])])],
);

/// A job without labels gets those of its pod template.
fn labels_from_template(job: &mut Map) {
    if let Some(labels) = pods::template_labels(job) {
        let metadata = job.entry_object("metadata");
        if !is_filled(metadata, "labels") {
            metadata.insert("labels", labels);
        }
    }
}

/// A job selects its pods by its own uid, unless it has its own selector (META-34). Contradicting
/// labels are left for validation to refuse.
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
    for (label, value) in own_labels(&name, &uid) {
        labels.entry_or(label, || value.into());
    }
    let selector = spec.entry_object("selector").entry_object("matchLabels");
    selector.entry_or(UID_LABEL, || uid.into());
}

/// The labels that identify a job's pods.
fn own_labels<'a>(name: &'a str, uid: &'a str) -> [(&'static str, &'a str); 4] {
    [(OLD_UID_LABEL, uid), (OLD_NAME_LABEL, name), (UID_LABEL, uid), (NAME_LABEL, name)]
}

fn validate(new: &Value, old: Option<&Value>) -> Errors {
    let job = Field::root(new);
    let spec = job.get("spec");
    let mut errors = Errors::new();
    check_generated(&job, old, &mut errors);
    check_selecting_spec(&spec, old, &mut errors);
    check_hostname(&job, &mut errors);
    if let Some(old) = old {
        // Upstream checks the spec of an update twice, and reports its errors twice.
        check_selecting_spec(&spec, Some(old), &mut errors);
        check_changes(&spec, old, &mut errors);
    }
    errors
}

/// Checks the spec and its selector, which the spec in a CronJob does not have; `old` is the job
/// that is replaced.
fn check_selecting_spec(spec: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    check_spec(spec, old.and_then(|old| old.get("spec")), errors);
    let selector = spec.get("selector");
    if selector.is_set() {
        errors.extend(validation::label_selector(selector.value(), &selector.path()));
    } else {
        errors.push(selector.required(""));
    }
    if let Ok(labels) = Selector::from_label_selector(selector.some()) {
        workload::check_labels(spec, &labels, errors);
    }
}

/// Checks that the labels and the selector are the generated ones, unless the job has its own
/// selector.
fn check_generated(job: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let spec = job.get("spec");
    let selector = spec.get("selector");
    if spec.get("manualSelector").is_true() || !selector.is_set() {
        return;
    }
    let (name, uid) = (object::name(job.value()), object::uid(job.value()));
    if uid.is_empty() {
        errors.push(job.at(&["metadata", "uid"]).required(""));
    }
    let mut expected = own_labels(name, uid).to_vec();
    // Older jobs have no labels with a prefix.
    let had = |label| {
        old.is_none_or(|old| old.at(&["spec", "template", "metadata", "labels", label]).is_some())
    };
    if !had(UID_LABEL) || !had(NAME_LABEL) {
        expected.truncate(2);
    }
    let labels = spec.at(&["template", "metadata", "labels"]);
    for (label, value) in &expected {
        match labels.value().str_at(&[label]) {
            Some(found) if found == *value => {}
            None => errors.push(labels.key(label).required(&format!("must be '{value}'"))),
            Some(_) => errors.push(labels.key(label).invalid(format!("must be '{value}'"))),
        }
    }
    let expected: Map = expected.iter().map(|(l, v)| ((*l).into(), Value::from(*v))).collect();
    let own = Selector::from_label_selector(selector.some());
    if own.is_ok_and(|own| !own.matches_map(Some(&expected))) {
        errors.push(selector.invalid("`selector` not auto-generated"));
    }
}

/// Checks the hostname of the last pod of an indexed job: the job's name and the pod's index.
fn check_hostname(job: &Field<'_>, errors: &mut Errors) {
    let spec = job.get("spec");
    if let Some(completions @ 1..) = spec.get("completions").int()
        && is_indexed(&spec)
    {
        let hostname = format!("{}-{}", object::name(job.value()), completions - 1);
        if !names::dns1123_label(&hostname).is_empty() {
            let words = format!("will not able to create pod with invalid DNS label: {hostname}");
            let name = object::name(job.value());
            errors.push(job.at(&["metadata", "name"]).invalid_as(name, words));
        }
    }
}

fn is_indexed(spec: &Field<'_>) -> bool {
    spec.str("completionMode") == "Indexed"
}

const NUMBERS: Rules = &[
    Rule::NotNegative("parallelism"),
    Rule::NotNegative("completions"),
    Rule::NotNegative("activeDeadlineSeconds"),
    Rule::NotNegative("backoffLimit"),
    Rule::NotNegative("ttlSecondsAfterFinished"),
    Rule::NotNegative("backoffLimitPerIndex"),
    Rule::NotNegative("maxFailedIndexes"),
    Rule::Do(|spec, errors| {
        let limit = spec.get("backoffLimitPerIndex");
        if spec.has("maxFailedIndexes") && !limit.is_set() {
            errors.push(limit.required("when maxFailedIndexes is specified"));
        }
    }),
    Rule::Do(managed_by),
    Rule::OneOf("completionMode", &["NonIndexed", "Indexed"]),
    Rule::Do(indexes::check_numbers),
    Rule::Do(failure::check_policy),
    Rule::Do(success::check_policy),
    Rule::Do(replacement),
];

/// Validates a JobSpec, except its selector; `old` is the stored one.
pub(super) fn check_spec(spec: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    check(spec, NUMBERS, errors);
    let old = old.and_then(|old| old.get("template"));
    pods::check_template(&spec.get("template"), old, errors);
    let policy = spec.at(&["template", "spec", "restartPolicy"]);
    match policy.text() {
        "" | "Always" => {
            errors.push(policy.required(r#"valid values: "OnFailure", "Never""#));
        }
        "Never" => {}
        "OnFailure" if spec.has("podFailurePolicy") => {
            let words = r#"only "Never" is supported when podFailurePolicy is specified"#;
            errors.push(policy.invalid(words));
        }
        "OnFailure" => {}
        _ => errors.push(policy.not_supported(&["OnFailure", "Never"])),
    }
}

const MANAGER_LENGTH_MAX: usize = 63;

/// Checks the controller of the job, a path with a domain.
fn managed_by(spec: &Field<'_>, errors: &mut Errors) {
    let Some(manager) = spec.find("managedBy") else { return };
    errors.extend(validation::domain_prefixed_path(manager.text(), &manager.path()));
    if manager.text().len() > MANAGER_LENGTH_MAX {
        errors.push(Error::too_long(&manager.path(), MANAGER_LENGTH_MAX));
    }
}

fn replacement(spec: &Field<'_>, errors: &mut Errors) {
    let allowed: &[&str] = match spec.has("podFailurePolicy") {
        true => &["Failed"],
        false => &["Failed", "TerminatingOrFailed"],
    };
    let policy = spec.get("podReplacementPolicy");
    if policy.is_set() && !allowed.contains(&policy.text()) {
        errors.push(policy.not_supported(allowed));
    }
}

/// Checks the immutable members.
fn check_changes(spec: &Field<'_>, old: &Value, errors: &mut Errors) {
    let old_spec = old.get("spec").unwrap_or(&Value::Null);
    let same = |member: &str, errors: &mut Errors| {
        let field = spec.get(member);
        if field.some() != old_spec.get(member).filter(|value| !value.is_null()) {
            errors.push(field.invalid(IMMUTABLE));
        }
    };
    let completions = spec.get("completions");
    if !is_indexed(spec) {
        same("completions", errors);
    } else if completions.some() != old_spec.get("completions")
        && completions.is_set()
        && completions.int() != spec.get("parallelism").int()
    {
        // As in upstream, the error names `completions`.
        errors.push(completions.invalid("can only be modified in tandem with spec.parallelism"));
    }
    same("selector", errors);
    template::check_change(spec, old, errors);
    for member in
        ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        same(member, errors);
    }
}

/// Upstream warns of jobs that are too large to be tracked.
fn warn_of_size(job: &Value) -> Option<String> {
    let job = Field::root(job);
    let spec = job.get("spec");
    let number = |member: &str| spec.get(member).int().unwrap_or(0);
    let is_large = number("completions") > indexes::COMPLETIONS_HIGH
        && number("parallelism") > indexes::PARALLELISM_HIGH;
    (is_indexed(&spec) && is_large).then(|| {
        "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism \
         higher than 10^4, Kubernetes might not be able to track completedIndexes when a big \
         number of indexes fail"
            .to_owned()
    })
}
