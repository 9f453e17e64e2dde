//! `apps/v1`: the workloads.

use pintle_meta::{field::Error, labels::Selector, validation};
use pintle_registry::{Generation, NameRule, Owned};
use pintle_value::{Path, Value};

use crate::{
    checks::{Frozen, frozen, members, not_negative, one_of, same, spec_not_negative, unchanged},
    defaults::{
        Condition::{Is, NotFilled},
        Constant::{Int, Text},
        Defaults, Row,
        Row::{At, Each, Empty, In, Unset, When},
        set,
    },
    kind::{Kind, kind},
    pods,
    strategy::{COUNTED_WITH_STATUS, PLAIN, Strategy},
};

const APPS: &str = "apps";

pub(crate) const KINDS: &[Kind] = &[
    kind(APPS, "controllerrevisions", REVISION),
    kind(APPS, "daemonsets", DAEMON_SET),
    kind(APPS, "deployments", DEPLOYMENT),
    kind(APPS, "replicasets", REPLICA_SET),
    kind(APPS, "statefulsets", STATEFUL_SET),
];

const REVISION: Strategy = Strategy {
    validate: |new, old| {
        let mut errors = Vec::new();
        if new.get("data").is_none_or(Value::is_null) {
            errors.push(Error::required(&Path::new("data"), "data is mandatory"));
        }
        not_negative(new, &["revision"], &mut errors);
        errors.extend(unchanged(new, old, &[frozen(&["data"])]));
        errors
    },
    ..PLAIN
};

const DAEMON_SET: Strategy = Strategy {
    default: |object| set(object, DAEMON_SET_DEFAULTS),
    validate: |new, old| {
        let mut errors = Vec::new();
        check_selector(new, "empty selector is invalid for daemonset", &mut errors);
        check_template(new, pods::validate_template, &mut errors);
        spec_not_negative(new, &["minReadySeconds", "revisionHistoryLimit"], &mut errors);
        errors.extend(unchanged(new, old, SELECTOR));
        errors
    },
    ..COUNTED_WITH_STATUS
};

const DEPLOYMENT: Strategy = Strategy {
    owned: &[("status", Owned::Except(&[&["metadata", "labels"], &["spec"]]))],
    generation: Generation::SpecAnd("annotations"),
    default: |object| set(object, DEPLOYMENT_DEFAULTS),
    validate: |new, old| {
        let mut errors = Vec::new();
        spec_not_negative(new, &["replicas"], &mut errors);
        check_selector(new, "empty selector is invalid for deployment", &mut errors);
        check_template(new, pods::validate_template, &mut errors);
        check_recreate(new, &mut errors);
        spec_not_negative(new, &["minReadySeconds", "revisionHistoryLimit"], &mut errors);
        check_deadline(new, &mut errors);
        errors.extend(unchanged(new, old, SELECTOR));
        errors
    },
    ..COUNTED_WITH_STATUS
};

const REPLICA_SET: Strategy = Strategy {
    default: |object| set(object, REPLICA_SET_DEFAULTS),
    validate: |new, old| {
        let mut errors = Vec::new();
        spec_not_negative(new, &["replicas", "minReadySeconds"], &mut errors);
        // Upstream says "deployment" here too.
        check_selector(new, "empty selector is invalid for deployment", &mut errors);
        check_template(new, pods::validate_template, &mut errors);
        errors.extend(unchanged(new, old, SELECTOR));
        errors
    },
    ..COUNTED_WITH_STATUS
};

const STATEFUL_SET: Strategy = Strategy {
    name: NameRule::DnsLabel,
    default: |object| set(object, STATEFUL_SET_DEFAULTS),
    validate: |new, old| {
        let mut errors = Vec::new();
        let counts = ["replicas", "minReadySeconds", "revisionHistoryLimit"];
        spec_not_negative(new, &counts, &mut errors);
        check_selector(new, "empty selector is invalid for statefulset", &mut errors);
        // The pods have more volumes than their template says, and upstream leaves it unread.
        check_template(new, pods::validate_template_metadata, &mut errors);
        if old.is_some_and(|old| !same_but_for(new, old, STATEFUL_SET_MAY_CHANGE)) {
            errors.push(Error::forbidden(&Path::new("spec"), STATEFUL_SET_FROZEN));
        }
        errors
    },
    ..COUNTED_WITH_STATUS
};

const DAEMON_SET_DEFAULTS: Defaults = &[In(
    "spec",
    &[
        In(
            "updateStrategy",
            &[
                ROLLING,
                When(
                    Is("type", "RollingUpdate"),
                    &[In(
                        "rollingUpdate",
                        &[Unset("maxUnavailable", Int(1)), Unset("maxSurge", Int(0))],
                    )],
                ),
            ],
        ),
        HISTORY,
        TEMPLATE,
    ],
)];

const DEPLOYMENT_DEFAULTS: Defaults = &[In(
    "spec",
    &[
        REPLICAS,
        In(
            "strategy",
            &[
                ROLLING,
                When(
                    Is("type", "RollingUpdate"),
                    &[In(
                        "rollingUpdate",
                        &[Unset("maxUnavailable", Text("25%")), Unset("maxSurge", Text("25%"))],
                    )],
                ),
            ],
        ),
        HISTORY,
        Unset("progressDeadlineSeconds", Int(600)),
        TEMPLATE,
    ],
)];

const REPLICA_SET_DEFAULTS: Defaults = &[In("spec", &[REPLICAS, TEMPLATE])];

const STATEFUL_SET_DEFAULTS: Defaults = &[In(
    "spec",
    &[
        Empty("podManagementPolicy", Text("OrderedReady")),
        In(
            "updateStrategy",
            &[
                // Only where the type is left out too is an absent `rollingUpdate` made.
                When(NotFilled("type"), &[In("rollingUpdate", &[PARTITION])]),
                ROLLING,
                When(Is("type", "RollingUpdate"), &[At("rollingUpdate", &[PARTITION])]),
            ],
        ),
        In(
            "persistentVolumeClaimRetentionPolicy",
            &[Empty("whenDeleted", Text("Retain")), Empty("whenScaled", Text("Retain"))],
        ),
        REPLICAS,
        HISTORY,
        TEMPLATE,
        Each(
            "volumeClaimTemplates",
            &[
                Empty("apiVersion", Text("v1")),
                Empty("kind", Text("PersistentVolumeClaim")),
                In("status", &[Empty("phase", Text("Pending"))]),
                In("spec", pods::CLAIM_SPEC),
            ],
        ),
    ],
)];

const REPLICAS: Row = Unset("replicas", Int(1));
const HISTORY: Row = Unset("revisionHistoryLimit", Int(10));
const TEMPLATE: Row = In("template", pods::POD_TEMPLATE);
const ROLLING: Row = Empty("type", Text("RollingUpdate"));
const PARTITION: Row = Unset("partition", Int(0));

const SELECTOR: &[Frozen] = &[frozen(&["spec", "selector"])];

const STATEFUL_SET_MAY_CHANGE: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];
const STATEFUL_SET_FROZEN: &str = "updates to statefulset spec for fields other than 'replicas', \
    'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', \
    'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

/// Whether two specs are the same but for these members.
fn same_but_for(new: &Value, old: &Value, members: &[&str]) -> bool {
    let rest = |object: &Value| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        spec.make_object().retain(|member, _| !members.contains(&member.as_str()));
        spec
    };
    rest(new) == rest(old)
}

/// A workload has a selector, and it says something.
fn check_selector(workload: &Value, empty: &str, errors: &mut Vec<Error>) {
    let path = Path::new("spec").field("selector");
    let Some(selector) = workload.at(&["spec", "selector"]).filter(|s| !s.is_null()) else {
        errors.push(Error::required(&path, ""));
        return;
    };
    errors.extend(validation::label_selector(selector, &path));
    if same(selector.get("matchLabels"), None) && same(selector.get("matchExpressions"), None) {
        errors.push(Error::invalid(&path, selector, empty));
    }
}

/// A workload's selector selects the pods of its template, which run for ever.
fn check_template(
    workload: &Value,
    validate: fn(&Value, &Path, &mut Vec<Error>),
    errors: &mut Vec<Error>,
) {
    let path = Path::new("spec").field("template");
    let template = workload.at(&["spec", "template"]).unwrap_or(&Value::Null);
    let labels = members(template, &["metadata", "labels"]);
    let selector = Selector::from_label_selector(workload.at(&["spec", "selector"]));
    if selector.is_ok_and(|s| !s.is_nothing() && !s.matches_map(Some(labels))) {
        let path = path.field("metadata").field("labels");
        errors.push(Error::invalid(&path, &Value::from(labels.clone()), pods::LABELS_MISMATCH));
    }
    validate(template, &path, errors);
    let restart = template.at(&["spec", "restartPolicy"]);
    one_of(restart, &path.field("spec").field("restartPolicy"), &["Always"], errors);
}

fn check_recreate(deployment: &Value, errors: &mut Vec<Error>) {
    let strategy = |member| deployment.at(&["spec", "strategy", member]);
    let is_recreate = strategy("type").and_then(Value::as_str) == Some("Recreate");
    if is_recreate && strategy("rollingUpdate").is_some_and(|rolling| !rolling.is_null()) {
        let path = Path::new("spec").field("strategy").field("rollingUpdate");
        let words = "may not be specified when strategy `type` is 'Recreate'";
        errors.push(Error::forbidden(&path, words));
    }
}

fn check_deadline(deployment: &Value, errors: &mut Vec<Error>) {
    let of = |member| deployment.at(&["spec", member]).and_then(Value::as_int);
    spec_not_negative(deployment, &["progressDeadlineSeconds"], errors);
    if let Some(deadline) = of("progressDeadlineSeconds")
        && deadline <= of("minReadySeconds").unwrap_or(0)
    {
        let path = Path::new("spec").field("progressDeadlineSeconds");
        errors.push(Error::invalid(
            &path,
            &deadline.into(),
            "must be greater than minReadySeconds",
        ));
    }
}
