//! Aggregated cluster roles: collects the rules of other roles (`aggregationRule`, AUTHZ-04).
//!
//! A cluster has few roles, and no index tells which roles select a changed one, so every change
//! aggregates all roles again, as upstream does.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pintle_meta::{Status, labels, object};
use pintle_registry::Resource;
use pintle_registry::request::{ListOptions, WriteOptions, granted};
use pintle_registry::results::Event;
use pintle_registry::watch::Watch;
use pintle_value::order::Ordered;
use pintle_value::{Str, Value};

use crate::{Environment, body, target, until};

const USER: &str = "system:serviceaccount:kube-system:clusterrole-aggregation-controller";
/// The pause before a failed watch or write is retried.
const DELAY: Duration = Duration::from_secs(1);

/// Keeps aggregated rules up to date until shutdown.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    until(shutdown, work(&environment)).await;
}

async fn work(environment: &Environment) {
    let resource = environment.resource("rbac.authorization.k8s.io", "v1", "clusterroles");
    let Some(resource) = resource else { return std::future::pending().await };
    let all = target(&resource, "", "", "");
    loop {
        match environment.registry.watch(&all, &ListOptions::default()).await {
            Ok(watch) => follow(environment, &resource, watch).await,
            Err(status) => tracing::warn!(%status, "cannot watch cluster roles; will try again"),
        }
        tokio::time::sleep(DELAY).await;
    }
}

/// Aggregates after each change, until the watch ends.
async fn follow(environment: &Environment, resource: &Arc<Resource>, mut watch: Watch) {
    let mut roles: BTreeMap<Str, Value> = BTreeMap::new();
    let mut unreadable = BTreeSet::new();
    let mut is_behind = false;
    loop {
        let events = tokio::select! {
            events = watch.next() => events,
            () = tokio::time::sleep(DELAY), if is_behind => Some(Vec::new()),
        };
        let Some(events) = events else { return };
        for event in events {
            match event {
                Event::Added(object) | Event::Modified(object) => match resource.tree(&object) {
                    Ok(tree) => {
                        unreadable.remove(object.name());
                        roles.insert(object.name().into(), tree);
                    }
                    Err(_) => drop(unreadable.insert(Str::from(object.name()))),
                },
                Event::Deleted(object) => {
                    unreadable.remove(object.name());
                    roles.remove(object.name());
                }
                Event::Bookmark { .. } => {}
                Event::Error(status) => {
                    tracing::debug!(%status, "the watch of cluster roles is started again");
                    return;
                }
            }
        }
        // The rules of an unreadable role are unknown: no role loses or gains rules until it is
        // readable.
        if unreadable.is_empty() {
            is_behind = !aggregate(environment, resource, &roles).await;
        }
    }
}

/// Writes roles whose rules are outdated; returns whether all writes succeeded.
async fn aggregate(
    environment: &Environment,
    resource: &Arc<Resource>,
    roles: &BTreeMap<Str, Value>,
) -> bool {
    let mut went_well = true;
    for (name, role) in roles {
        tokio::task::yield_now().await; // other controllers run on this thread
        let Some(rules) = aggregated_rules(name, role, roles) else { continue };
        if role.get("rules").and_then(Value::as_array).unwrap_or_default() == rules {
            continue;
        }
        let mut updated = role.clone();
        updated.make_object().insert("rules", rules);
        match write(environment, resource, name, &updated).await {
            // The watch reports a conflicting change, and a deletion.
            Err(status) if matches!(status.code, 404 | 409) => {}
            Err(status) => {
                tracing::warn!(%name, %status, "cannot write the aggregated rules of a cluster role");
                went_well = false;
            }
            Ok(()) => {}
        }
    }
    went_well
}

async fn write(
    environment: &Environment,
    resource: &Arc<Resource>,
    name: &str,
    role: &Value,
) -> Result<(), Status> {
    let one = target(resource, "", name, "");
    let options = WriteOptions {
        field_manager: Str::const_new("clusterrole-aggregation-controller"),
        ..WriteOptions::default()
    };
    let context = environment.context(USER);
    environment.registry.update(&one, &body(role), &options, &context, &granted).await.map(|_| ())
}

/// Returns the rules that a role aggregates from the others, each once; `None` if it does not
/// aggregate, or one of its selectors is invalid.
fn aggregated_rules(name: &str, role: &Value, roles: &BTreeMap<Str, Value>) -> Option<Vec<Value>> {
    let rule = role.get("aggregationRule").filter(|rule| **rule != Value::Null)?;
    let selectors = rule.get("clusterRoleSelectors").and_then(Value::as_array).unwrap_or_default();
    let (mut rules, mut known) = (Vec::new(), BTreeSet::new());
    for selector in selectors {
        let Ok(selector) = labels::Selector::from_label_selector(Some(selector)) else {
            return None;
        };
        let others = roles.iter().filter(|(other, _)| *other != name);
        for (_, other) in others.filter(|(_, other)| selector.matches_map(object::labels(other))) {
            for rule in other.get("rules").and_then(Value::as_array).unwrap_or_default() {
                if known.insert(Ordered(rule)) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    Some(rules)
}
