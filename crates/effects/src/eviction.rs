//! Evictions delete a pod if its disruption budget permits it (upstream: `EvictionREST`).

mod budget;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use pintle_meta::{Status, object};
use pintle_registry::action::{Action, Performed, Request};
use pintle_registry::request::{Context, DeleteOptions, Propagation, Target};
use pintle_registry::results::ResponseBody;
use pintle_registry::{Object, Registry, Resource, work};
use pintle_value::Value;

use self::budget::{Verdict, too_many_requests};
use crate::pods;

/// The maximum number of attempts to delete a pod that other writes change meanwhile.
const ATTEMPTS_MAX: usize = 20;

/// Evicts a pod: `pods/eviction`.
pub(crate) struct Evict;

impl Action for Evict {
    fn type_name(&self) -> &'static str {
        "io.k8s.api.policy.v1.Eviction"
    }

    fn old_versions(&self) -> &'static [&'static str] {
        &["policy/v1beta1"]
    }

    fn perform<'a>(&'a self, request: Request<'a>) -> Performed<'a> {
        Box::pin(async move {
            let Request { registry, target, posted, options, context } = request;
            pods::same_name(target, &posted, "Eviction")?;
            let options = delete_options(&posted, options.dry_run)?;
            let pod = pods::pod(&target.resource, &target.namespace, &target.name);
            let eviction = Eviction { registry, pod, options, context };
            if !eviction.delete_unguarded().await? {
                eviction.delete_guarded().await?;
            }
            Ok(ResponseBody::Status(Status::success(201)))
        })
    }
}

/// An eviction in progress.
struct Eviction<'a> {
    registry: &'a Registry,
    pod: Target,
    options: DeleteOptions,
    context: &'a Context,
}

impl Eviction<'_> {
    /// Deletes a pod that needs no budget; returns `false` if the pod needs one.
    async fn delete_unguarded(&self) -> Result<bool, Status> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let pod = self.current().await?;
            if !budget::is_unguarded(&pod) {
                return Ok(false);
            }
            // A pending pod could become ready; if it does, the deletion must fail.
            let pending = pod.str_at(&["status", "phase"]) == Some("Pending");
            let fix = pending && !object::is_terminating(&pod);
            match self.delete(fix.then_some(&pod)).await {
                Err(status)
                    if status.code == 409
                        && self.options.resource_version.is_none()
                        && attempt < ATTEMPTS_MAX => {}
                outcome => return outcome.map(|()| true),
            }
        }
    }

    /// Deletes a running pod if its budget permits it.
    async fn delete_guarded(&self) -> Result<(), Status> {
        let pod = self.current().await?;
        let budgets = pods::resource(self.registry, "policy", "poddisruptionbudgets")?;
        let Some(guard) = &self.guard(&budgets, &pod).await? else {
            return self.delete(None).await;
        };
        let name = object::name(guard);
        if budget::verdict(guard, &pod) == Verdict::Unhealthy {
            // The deletion of an unhealthy pod costs no disruption, provided that the pod has not
            // changed since it was read.
            let deleted = self.delete(Some(&pod)).await;
            return deleted.map_err(|status| {
                let conflicts = status.code == 409 && self.options.resource_version.is_none();
                if conflicts { too_many_requests(name) } else { status }
            });
        }
        let guard = Target { resource: budgets, name: name.into(), ..self.pod.clone() };
        let spend = |guard: &mut Value| budget::spend(guard, &self.pod.name, self.context.now);
        self.registry.amend(&guard, self.options.dry_run, self.context, spend).await?;
        self.delete(None).await
    }

    /// The budget that guards a pod, if one does. Selectors may be long, so only one is held at a
    /// time.
    async fn guard(&self, budgets: &Resource, pod: &Value) -> Result<Option<Value>, Status> {
        let mut guard: Option<Arc<Object>> = None;
        let mut read = 0_usize;
        for budget in self.registry.objects_in(budgets, &self.pod.namespace) {
            work::ahead(budget.size()).await;
            if read > work::YIELD_BYTES {
                read = 0;
                work::pause().await;
            }
            read = read.saturating_add(budget.size());
            // A budget that cannot be read could guard any pod, so nothing is evicted.
            if !budget::guards(&budget.excerpt(&[budget::SELECTOR])?, pod) {
                continue;
            }
            if guard.replace(budget).is_some() {
                return Err(budget::more_than_one());
            }
        }
        Ok(guard.map(|guard| guard.tree()).transpose()?)
    }

    async fn current(&self) -> Result<Value, Status> {
        let Target { resource, namespace, name, .. } = &self.pod;
        let found = self.registry.peek(resource, namespace, name);
        let found = found.ok_or_else(|| Status::not_found(&resource.group_resource(), name))?;
        work::ahead(found.size()).await;
        Ok(found.tree()?)
    }

    /// Adds the condition [`DISRUPTED`] to the pod, except in a dry run, and deletes the pod. If
    /// `fixed` is given and the options name no resource version, the deletion fails if the pod is
    /// no longer in this state.
    async fn delete(&self, fixed: Option<&Value>) -> Result<(), Status> {
        let mut options = self.options.clone();
        if let Some(pod) = fixed
            && options.resource_version.is_none()
        {
            options.resource_version = Some(object::resource_version(pod).into());
        }
        if !options.dry_run {
            let mark = |pod: &mut Value| {
                budget::check_preconditions(pod, &options)?;
                pods::set_condition(pod, DISRUPTED, self.context.now);
                Ok(())
            };
            let pod = self.registry.amend(&self.pod, false, self.context, mark).await?;
            if options.resource_version.is_some() {
                options.resource_version = Some(object::resource_version(&pod).into());
            }
        }
        // As in upstream, admission decides about the eviction and not about the deletion: a policy
        // that forbids users to delete pods does not forbid evictions.
        self.registry.delete_admitted(&self.pod, &options, self.context).await
    }
}

/// The condition of an evicted pod.
const DISRUPTED: &[(&str, &str)] = &[
    ("type", "DisruptionTarget"),
    ("status", "True"),
    ("reason", "EvictionByEvictionAPI"),
    ("message", "Eviction API: evicting"),
];

/// The deletion options of an eviction. The request and the options can each ask for a dry run.
fn delete_options(eviction: &Value, dry_run: bool) -> Result<DeleteOptions, Status> {
    let options = eviction.get("deleteOptions").unwrap_or(&Value::Null);
    let text = |path: &[&str]| options.str_at(path).map(Into::into);
    let dry_runs = options.get("dryRun").and_then(Value::as_array).unwrap_or_default();
    if let Some(other) = dry_runs.iter().find(|value| value.as_str() != Some("All")) {
        let shown = other.as_str().unwrap_or_default();
        return Err(Status::bad_request(format!("invalid dryRun value {shown:?}")));
    }
    Ok(DeleteOptions {
        dry_run: dry_run || !dry_runs.is_empty(),
        grace_period_seconds: options.get("gracePeriodSeconds").and_then(Value::as_int),
        uid: text(&["preconditions", "uid"]),
        resource_version: text(&["preconditions", "resourceVersion"]),
        propagation: match options.str_at(&["propagationPolicy"]) {
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            _ => None,
        },
        orphan_dependents: options.get("orphanDependents").and_then(Value::as_bool),
        ignore_read_errors: false,
    })
}
