//! `apps/v1`: the workloads.

mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;

use pintle_value::Value;

use crate::{
    checks::{frozen, unchanged},
    defaults::{
        Constant::{Int, Text},
        Row,
        Row::{Empty, In, Unset},
    },
    field::{Errors, Field},
    kind::{Kind, kind},
    pods,
    rules::{Rule::NotNegative, check},
    strategy::{PLAIN, Strategy},
};

const APPS: &str = "apps";

pub(crate) use daemon_set::ROLLING_NUMBERS;
pub(crate) use stateful_set::{CLAIM_TEMPLATES, PARTITION};

pub(crate) const KINDS: &[Kind] = &[
    kind(APPS, "controllerrevisions", REVISION),
    kind(APPS, "daemonsets", daemon_set::DAEMON_SET),
    kind(APPS, "deployments", deployment::DEPLOYMENT),
    kind(APPS, "replicasets", replica_set::REPLICA_SET),
    kind(APPS, "statefulsets", stateful_set::STATEFUL_SET),
];

const REVISION: Strategy = Strategy {
    validate: |new, old| {
        let mut errors = Errors::new();
        let revision = Field::root(new);
        check(&revision, &[NotNegative("revision")], &mut errors);
        if old.is_none() {
            check_data(&revision.get("data"), &mut errors);
        }
        errors.extend(unchanged(new, old, &[frozen(&["data"])]));
        errors
    },
    declared_rules: false,
    ..PLAIN
};

/// Checks that the data of a revision is an object.
fn check_data(data: &Field<'_>, errors: &mut Errors) {
    if !data.is_set() {
        errors.push(data.required("data is mandatory"));
    } else if data.value().as_object().is_none() {
        errors.push(data.required("data must be a valid JSON object"));
    }
}

const REPLICAS: Row = Unset("replicas", Int(1));
const HISTORY: Row = Unset("revisionHistoryLimit", Int(10));
pub(crate) const TEMPLATE: Row = In("template", pods::POD_TEMPLATE);
const ROLLING: Row = Empty("type", Text("RollingUpdate"));

/// A strategy of unknown type as upstream's error shows it: with Go's names of members.
fn shown_strategy(strategy: &Field<'_>, rolling: &[(&str, &str)]) -> String {
    let json = |value: &Value| pintle_value::json::to_string(value);
    let rolling = strategy.find("rollingUpdate").map(|update| {
        let members = rolling.iter().map(|(name, member)| {
            format!("{}:{}", json(&(*name).into()), json(update.get(member).value()))
        });
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    });
    let kind = json(&strategy.str("type").into());
    format!(r#"{{"Type":{kind},"RollingUpdate":{}}}"#, rolling.as_deref().unwrap_or("null"))
}
