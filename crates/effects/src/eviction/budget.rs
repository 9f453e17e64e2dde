//! Decisions about disruption budgets, without side effects.

use pintle_meta::{GroupResource, Reason, Status, labels, object, time};
use pintle_registry::request::{DeleteOptions, Now};
use pintle_value::Value;

use crate::pods;

/// The maximum number of evicted pods that the controller has not seen yet.
const DISRUPTED_MAX: usize = 2000;
const CAUSE: &str = "DisruptionBudget";
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// The member of a budget that decides which pods it guards.
pub(super) const SELECTOR: &[&str] = &["spec", "selector"];

/// Whether an eviction spends a disruption of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// One disruption is spent.
    Spend,
    /// The pod is unhealthy, so nothing is spent.
    Unhealthy,
}

/// Whether the pod needs no budget, because it does not run or is being deleted.
pub(super) fn is_unguarded(pod: &Value) -> bool {
    let phase = pod.str_at(&["status", "phase"]).unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed" | "Pending") || object::is_terminating(pod)
}

/// Whether a budget applies to a pod of its namespace. An empty selector matches all pods, an
/// absent one none.
pub(super) fn guards(budget: &Value, pod: &Value) -> bool {
    let selector = labels::Selector::from_label_selector(budget.at(SELECTOR));
    selector.is_ok_and(|selector| selector.matches_map(object::labels(pod)))
}

pub(super) fn verdict(budget: &Value, pod: &Value) -> Verdict {
    if pods::has_condition(pod, "Ready") {
        return Verdict::Spend;
    }
    let always = budget.str_at(&["spec", "unhealthyPodEvictionPolicy"]) == Some("AlwaysAllow");
    let (healthy, wanted) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    if always || (healthy >= wanted && wanted > 0) { Verdict::Unhealthy } else { Verdict::Spend }
}

/// Takes one disruption from the budget and records the pod.
pub(super) fn spend(budget: &mut Value, pod: &str, now: Now) -> Result<(), Status> {
    let name = object::name(budget).to_owned();
    if count(budget, "observedGeneration") < object::generation(budget) {
        return Err(too_many_requests(&name));
    }
    let forbidden = |why: &str| {
        Err(Status::forbidden(&GroupResource::new("policy", "poddisruptionbudget"), &name, why))
    };
    let allowed = count(budget, "disruptionsAllowed");
    if allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    let disrupted = budget.at(&["status", "disruptedPods"]).and_then(Value::as_object);
    if disrupted.is_some_and(|pods| pods.len() > DISRUPTED_MAX) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return forbidden(why);
    }
    if allowed == 0 {
        return Err(refusal(&denial(budget), 0));
    }
    let status = budget.object_entry("status");
    status.insert("disruptionsAllowed", allowed - 1);
    let time = time::format(now.unix_micros);
    status.entry_object("disruptedPods").insert(pod, time.as_str());
    if allowed == 1 {
        exhaust(budget, &time);
    }
    Ok(())
}

/// Reports in the conditions that the budget is exhausted.
fn exhaust(budget: &mut Value, time: &str) {
    let generation = count(budget, "observedGeneration");
    let status = budget.object_entry("status");
    let conditions = status.entry_or("conditions", || Value::Array(Vec::new()));
    let Some(conditions) = conditions.as_array_mut() else { return };
    let at = conditions.iter().position(|c| c.str_at(&["type"]) == Some("DisruptionAllowed"));
    let since = at.map(|at| &conditions[at]).filter(|c| c.str_at(&["status"]) == Some("False"));
    let since = since.and_then(|c| c.str_at(&["lastTransitionTime"])).unwrap_or(time).to_owned();
    let condition = Value::from([
        ("type", Value::from("DisruptionAllowed")),
        ("status", Value::from("False")),
        ("observedGeneration", Value::Int(generation)),
        ("lastTransitionTime", Value::from(since)),
        ("reason", Value::from("InsufficientPods")),
        ("message", Value::from("")),
    ]);
    match at {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
}

/// Why an exhausted budget does not allow the eviction.
fn denial(budget: &Value) -> String {
    let name = object::name(budget);
    let conditions = budget.at(&["status", "conditions"]).and_then(Value::as_array);
    let failed = conditions.unwrap_or_default().iter().find(|c| {
        c.str_at(&["type"]) == Some("DisruptionAllowed") && c.str_at(&["status"]) == Some("False")
    });
    let of = |member| failed.and_then(|c| c.str_at(&[member])).unwrap_or_default();
    let (reason, message) = (of("reason"), of("message"));
    let head = format!("The disruption budget {name} does not allow evicting pods currently");
    let (healthy, wanted) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    if !message.is_empty() && reason == "SyncFailed" {
        format!("{head} because it failed sync: {message}")
    } else if healthy <= wanted {
        format!(
            "The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
        )
    } else if !message.is_empty() {
        format!("{head} ({reason}): {message}")
    } else {
        head
    }
}

/// The refusal while the budget's controller lags behind, or if an unhealthy pod changed meanwhile.
pub(super) fn too_many_requests(budget: &str) -> Status {
    refusal(&format!("The disruption budget {budget} is still being processed by the server."), 10)
}

fn refusal(why: &str, retry_after_seconds: u32) -> Status {
    Status::too_many_requests(REFUSED, retry_after_seconds).with_cause(CAUSE, why, "")
}

/// The refusal for a pod with several budgets, which upstream does not support.
pub(super) fn more_than_one() -> Status {
    let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not \
               support.";
    Status::failure(Reason::Unknown, why)
}

/// Checks the preconditions of the eviction: the pod's UID and resource version.
pub(super) fn check_preconditions(pod: &Value, options: &DeleteOptions) -> Result<(), Status> {
    let rows = [
        (
            "UID",
            &options.uid,
            object::uid(pod),
            "The object might have been deleted and then recreated",
        ),
        (
            "ResourceVersion",
            &options.resource_version,
            object::resource_version(pod),
            "The object might have been modified",
        ),
    ];
    for (what, required, stored, hint) in rows {
        if let Some(required) =
            required.as_deref().filter(|required| !required.is_empty() && *required != stored)
        {
            let why = format!(
                "the {what} in the precondition ({required}) does not match the {what} in record \
                 ({stored}). {hint}"
            );
            return Err(Status::conflict(&GroupResource::new("", "Pod"), object::name(pod), &why));
        }
    }
    Ok(())
}

fn count(budget: &Value, member: &str) -> i64 {
    budget.at(&["status", member]).and_then(Value::as_int).unwrap_or(0)
}
