//! StatefulSets.

use std::collections::BTreeSet;

use pintle_meta::{field::Error, labels::Selector, names};
use pintle_registry::NameRule;
use pintle_value::{Map, Value};

use super::{
    super::workload::{self, Counts},
    HISTORY, REPLICAS, ROLLING, TEMPLATE, shown_strategy,
};
use crate::{
    checks::WARNINGS_MAX,
    defaults::{
        Condition::NotFilled,
        Constant::{Int, Text},
        Defaults, Row,
        Row::{At, Each, Empty, Fixed, In, Unset, When},
        set,
    },
    field::{Errors, Field},
    gates, pods,
    rules::{self, Rule, Rules, check, not_negative},
    strategy::{AS_UPDATE, COUNTED_WITH_STATUS, Part, Strategy, part},
};

pub(super) const STATEFUL_SET: Strategy = Strategy {
    metadata: AS_UPDATE,
    // MaxUnavailableStatefulSet is off.
    gated: &[
        (&["spec", "template", "spec"], pods::GATED),
        (&["spec", "updateStrategy"], &[gates::off(&[&["rollingUpdate", "maxUnavailable"]])]),
    ],
    name: NameRule::DnsLabel,
    default: |object| set(object, DEFAULTS),
    validate,
    declared_rules: false,
    warnings: warn,
    parts: &[Part {
        validate: |new, old| workload::check_counts(new, old, COUNTS),
        ..part("status")
    }],
    zeros: &[&["spec", "replicas"]],
    ..COUNTED_WITH_STATUS
};

const DEFAULTS: Defaults = &[In(
    "spec",
    &[
        Empty("podManagementPolicy", Text("OrderedReady")),
        In(
            "updateStrategy",
            &[
                // An absent `rollingUpdate` is created only if the type is absent, too.
                When(NotFilled("type"), &[In("rollingUpdate", &[])]),
                ROLLING,
                PARTITION,
            ],
        ),
        In(
            "persistentVolumeClaimRetentionPolicy",
            &[Empty("whenDeleted", Text("Retain")), Empty("whenScaled", Text("Retain"))],
        ),
        REPLICAS,
        HISTORY,
        TEMPLATE,
        CLAIM_TEMPLATES,
    ],
)];

pub(crate) const CLAIM_TEMPLATES: Row = Each(
    "volumeClaimTemplates",
    &[
        Fixed("apiVersion", "v1"),
        Fixed("kind", "PersistentVolumeClaim"),
        In("status", &[Empty("phase", Text("Pending"))]),
        In("spec", pods::CLAIM_SPEC),
        pods::CLAIM_STATUS,
    ],
);

/// Upstream's internal form does not distinguish an absent value from zero, whatever the type.
pub(crate) const PARTITION: Row = At("rollingUpdate", &[Unset("partition", Int(0))]);

fn validate(new: &Value, old: Option<&Value>) -> Errors {
    let object = Field::root(new);
    let spec = object.get("spec");
    let mut errors = Errors::new();
    check(&spec, RULES, &mut errors);
    let is_new = old.is_none();
    if is_new {
        check(&spec, CLAIMS, &mut errors);
    }
    check(&spec, NUMBERS, &mut errors);
    if is_new {
        check(&spec, SERVICE, &mut errors);
    }
    workload::check_selector(&spec, "empty selector is invalid for statefulset", &mut errors);
    check_template(&spec, old, &mut errors);
    if old.is_some_and(|old| !same_but_for(new, old, MAY_CHANGE)) {
        errors.push(spec.forbidden(FROZEN));
    }
    errors
}

const RULES: Rules = &[
    Rule::Do(management),
    Rule::Do(strategy),
    Rule::At(
        "persistentVolumeClaimRetentionPolicy",
        &[
            Rule::OneOf("whenDeleted", &["Retain", "Delete"]),
            Rule::OneOf("whenScaled", &["Retain", "Delete"]),
        ],
    ),
];

const NUMBERS: Rules = &[
    Rule::NotNegative("replicas"),
    Rule::NotNegative("minReadySeconds"),
    Rule::Do(|spec, errors| not_negative(&spec.get("ordinals.start").of(start(spec)), errors)),
];

fn start<'a>(spec: &Field<'a>) -> &'a Value {
    spec.value().at(&["ordinals", "start"]).unwrap_or(&Value::Null)
}

/// Claim templates are immutable, so they are checked once.
const CLAIMS: Rules = &[Rule::Each("volumeClaimTemplates", &[Rule::At("spec", pods::CLAIM_RULES)])];
const SERVICE: Rules = &[Rule::Formatted("serviceName", names::dns1123_label)];

fn management(spec: &Field<'_>, errors: &mut Errors) {
    let policy = spec.get("podManagementPolicy");
    rules::required(&policy, "", errors);
    if !matches!(policy.text(), "" | "OrderedReady" | "Parallel") {
        errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'"));
    }
}

const ROLLING_MEMBERS: &[(&str, &str)] =
    &[("Partition", "partition"), ("MaxUnavailable", "maxUnavailable")];

fn strategy(spec: &Field<'_>, errors: &mut Errors) {
    let strategy = spec.get("updateStrategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.str("type") {
        "" => errors.push(strategy.required("")),
        "OnDelete" if rolling.is_set() => {
            errors.push(rolling.invalid("only allowed for updateStrategy 'RollingUpdate'"));
        }
        "OnDelete" => {}
        "RollingUpdate" => check_rolling(&rolling, errors),
        _ => errors.push(Error::invalid_shown(
            &strategy.path(),
            shown_strategy(&strategy, ROLLING_MEMBERS),
            "must be 'RollingUpdate' or 'OnDelete'",
        )),
    }
}

fn check_rolling(rolling: &Field<'_>, errors: &mut Errors) {
    not_negative(&rolling.get("partition"), errors);
    if let Some(unavailable) = rolling.find("maxUnavailable") {
        workload::check_share(&unavailable, errors);
        if workload::is_zero(&unavailable) {
            errors.push(unavailable.invalid("cannot be 0"));
        }
        workload::check_not_above_all(&unavailable, errors);
    }
}

/// Checks the template. If the stored template has errors, only the metadata of the new one and the
/// rules for pods that run forever are checked.
fn check_template(spec: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let selector = spec.get("selector");
    let Ok(labels) = Selector::from_label_selector(selector.some()) else {
        errors.push(selector.invalid(""));
        return;
    };
    if !labels.is_everything() {
        workload::check_labels(spec, &labels, errors);
    }
    let old_template = workload::old_template(old);
    let was_wrong = old.is_some_and(|old| {
        let mut wrong = Errors::new();
        check_pods(&Field::root(old).get("spec"), old_template, &mut wrong);
        !wrong.is_empty()
    });
    if !was_wrong {
        check_pods(spec, old_template, errors);
    }
    // Upstream checks the metadata once more.
    let options = pods::Options::of_template(old_template);
    pods::check_template_metadata(&spec.get("template"), options, errors);
    workload::check_lasting(spec, "StatefulSet", errors);
}

/// Checks the pod template. The controller gives each pod its own host name and a volume for each
/// claim template, so the template is checked without `hostname` and `subdomain`, and with these
/// volumes.
fn check_pods(spec: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let template = spec.get("template");
    let claims: BTreeSet<&str> =
        spec.items("volumeClaimTemplates").map(|claim| claim_name(claim.value())).collect();
    let is_renamed = ["hostname", "subdomain"].iter().any(|m| template.get("spec").has(m));
    if claims.is_empty() && !is_renamed {
        return pods::check_template(&template, old, errors);
    }
    let mut whole = template.value().clone();
    let pod = whole.object_entry("spec");
    pod.remove("hostname");
    pod.remove("subdomain");
    let volumes = pod.entry_or("volumes", || Value::Array(Vec::new()));
    if let Value::Array(volumes) = volumes {
        let is_own =
            |volume: &Value| !claims.contains(volume.str_at(&["name"]).unwrap_or_default());
        volumes.retain(is_own);
        volumes.splice(0..0, claims.iter().map(|name| claimed_volume(name)));
    }
    pods::check_template(&template.of(&whole), old, errors);
}

fn claim_name(claim: &Value) -> &str {
    claim.str_at(&["metadata", "name"]).unwrap_or_default()
}

fn claimed_volume(name: &str) -> Value {
    let mut volume = Map::new();
    volume.insert("name", name);
    volume.insert("persistentVolumeClaim", Value::from([("claimName", name)]));
    volume.into()
}

const MAY_CHANGE: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];
const FROZEN: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
    'template', 'updateStrategy', 'revisionHistoryLimit', \
    'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

/// Whether two specs are equal except for these members.
fn same_but_for(new: &Value, old: &Value, members: &[&str]) -> bool {
    let rest = |object: &Value| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        spec.make_object().retain(|member, _| !members.contains(&member.as_str()));
        spec
    };
    rest(new) == rest(old)
}

fn warn(new: &Value, old: Option<&Value>) -> Vec<String> {
    let object = Field::root(new);
    let spec = object.get("spec");
    let mut warnings = pods::warn_of_template(&spec.get("template"));
    for claim in spec.items("volumeClaimTemplates") {
        // Upstream's path differs between updates and creates.
        let part = claim.get("spec");
        let part = part.called(if old.is_some() { "Spec" } else { "spec" });
        let room = WARNINGS_MAX.saturating_sub(warnings.len());
        warnings.extend(pods::warn_of_claim(&part).into_iter().take(room));
    }
    let history = spec.get("revisionHistoryLimit");
    if history.int().is_some_and(|limit| limit < 0) {
        let words =
            "a negative value retains all historical revisions; a value >= 0 is recommended";
        warnings.push(format!("{}: {words}", history.path()));
    }
    warnings
}

const COUNTS: &Counts = &Counts {
    members: &[
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
    ],
    within: &[
        ("readyReplicas", "replicas", "cannot be greater than status.replicas"),
        ("currentReplicas", "replicas", "cannot be greater than status.replicas"),
        ("updatedReplicas", "replicas", "cannot be greater than status.replicas"),
        ("availableReplicas", "replicas", "cannot be greater than status.replicas"),
        ("availableReplicas", "readyReplicas", "cannot be greater than status.readyReplicas"),
    ],
    collisions: true,
};
