//! Admission webhooks: mutating ones change or refuse writes before validation, and validating ones
//! refuse writes after it (WH-01 … WH-05).
//!
//! Finds the webhooks that match a write, calls them, and checks their responses. Mutating
//! webhooks are called one after the other, validating webhooks concurrently. Must not know how
//! requests travel. `matched` has the webhooks that match a write, `calling` makes one call.
//!
//! Invariant: writes of webhook configurations and admission policies are exempt, so that a wrong
//! one can always be deleted.

mod answer;
mod audit;
mod calling;
#[cfg(test)]
mod calls;
mod configuration;
mod matched;
mod review;
#[cfg(test)]
mod tests;
mod webhook;

use std::borrow::Cow;
use std::future::ready;
use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{self, StreamExt as _};
use pintle_apply::PatchType;
use pintle_meta::{Status, field};
use pintle_registry::Registry;
use pintle_registry::admission::{self, Admission, Attributes, Hooks, Memory, Waited};
use pintle_registry::webhook::Caller;
use pintle_trace::Layer;
use pintle_value::{Path, Value};

use crate::Plugins;
use crate::measured::Measured;
use crate::measures::{Measures, Step};
use crate::permissions::Permissions;
use crate::request::{check_kind, to_stored_form, to_written_version};
use crate::rows;
use audit::AuditAnnotations;
use calling::{Outcome, View};
pub(crate) use configuration::kubeconfig;
use matched::{Configurations, MatchedWebhook};
use review::{Verdict, denial};
use webhook::Webhook;

/// The plugins MutatingAdmissionWebhook and ValidatingAdmissionWebhook.
pub struct Webhooks {
    callers: Callers,
    permissions: Arc<dyn Permissions>,
    measures: Arc<Measures>,
    /// `None` if the plugin is disabled.
    mutating: Option<Configurations>,
    validating: Option<Configurations>,
}

/// The callers of the webhooks, one per plugin, with its credentials.
pub struct Callers {
    /// The caller of mutating webhooks.
    pub mutating: Arc<dyn Caller>,
    /// The caller of validating webhooks.
    pub validating: Arc<dyn Caller>,
}

/// The largest number of webhooks that are called at once for one write. Each call has a copy of the
/// objects.
const CALLS_MAX: usize = 64;

pub(crate) const MUTATING: &str = "MutatingAdmissionWebhook";
pub(crate) const VALIDATING: &str = "ValidatingAdmissionWebhook";

impl Webhooks {
    /// Returns both plugins, as far as `plugins` enables them. `permissions` authorizes users for
    /// the `authorizer` of match conditions.
    pub fn measured(
        callers: Callers,
        permissions: Arc<dyn Permissions>,
        plugins: &Plugins,
        measures: Arc<Measures>,
    ) -> Box<dyn Admission> {
        let rows = [MUTATING, VALIDATING].map(|name| rows::row(name).filter(|_| plugins.has(name)));
        let timed = measures.clone();
        let of = |resource, plugin| {
            let runs = plugins.has(plugin);
            runs.then(|| Configurations::new(resource))
        };
        let webhooks = Self {
            callers,
            permissions,
            measures,
            mutating: of("mutatingwebhookconfigurations", MUTATING),
            validating: of("validatingwebhookconfigurations", VALIDATING),
        };
        Box::new(Measured::of_two(rows, Box::new(webhooks), &timed))
    }
}

impl Admission for Webhooks {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[admission::Hook::MutateRegistered, admission::Hook::ValidateRegistered])
    }

    fn mutate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
        memory: &'a mut Memory,
    ) -> Option<Waited<'a, Option<Value>>> {
        let matched = match self.mutating.as_ref()?.matched(write, registry) {
            Ok(matched) => matched,
            Err(status) => return Some(Box::pin(ready(Err(status)))),
        };
        (!matched.is_empty()).then(|| self.mutate_in_order(write, matched, memory))
    }

    fn validate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        let matched = match self.validating.as_ref()?.matched(write, registry) {
            Ok(matched) => matched,
            Err(status) => return Some(Box::pin(ready(Err(status)))),
        };
        (!matched.is_empty()).then(|| self.call_all(write, matched))
    }
}

/// Runs `calls` and measures their time as that of a layer.
fn timed<'a, T: Send>(
    write: &'a Attributes<'a>,
    layer: Layer,
    calls: impl Future<Output = Result<T, Status>> + Send + 'a,
) -> Waited<'a, T> {
    Box::pin(async move {
        let began = Instant::now();
        let result = calls.await;
        write.timing.spent(layer, began);
        result
    })
}

impl Webhooks {
    /// Calls the mutating webhooks one after the other.
    fn mutate_in_order<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        matched: Vec<MatchedWebhook>,
        memory: &'a mut Memory,
    ) -> Waited<'a, Option<Value>> {
        timed(write, Layer::MutatingWebhooks, async move {
            let mut object = write.object.map(Cow::Borrowed);
            let round = u8::from(memory.again);
            // The objects are converted again only for another version, or after a change.
            let mut last: Option<View> = None;
            for one in matched {
                // Asked at its turn: one before it may have made it due in this round.
                if !memory.is_due(&one.webhook.key) {
                    continue;
                }
                let view = match last.take().filter(|view| view.is_for(&one)) {
                    Some(view) => view,
                    None => View::of(write, object.as_deref(), &one.resource).await?,
                };
                if self.mutate_by(write, (&one, &view, round), &mut object).await? {
                    memory.wake();
                } else {
                    last = Some(view);
                }
                if one.webhook.wants_reinvocation {
                    memory.note(one.webhook.key.clone());
                }
            }
            Ok(match object {
                Some(Cow::Owned(object)) => Some(to_written_version(object, write)),
                _ => None,
            })
        })
    }

    /// Calls a mutating webhook for an object in the form that the write path works on, and
    /// annotates the audit event. Returns true if the webhook changed the object.
    async fn mutate_by(
        &self,
        write: &Attributes<'_>,
        (one, view, round): (&MatchedWebhook, &View, u8),
        object: &mut Option<Cow<'_, Value>>,
    ) -> Result<bool, Status> {
        let audit = AuditAnnotations { write, webhook: &one.webhook, round, index: one.index };
        let changed = match self.call_one(write, one, view, Step::Admit).await? {
            Outcome::Excluded => return Ok(false),
            Outcome::FailedOpen => {
                audit.failed_open(Step::Admit);
                Ok(false)
            }
            Outcome::Failed(status) => Err(status),
            Outcome::Answered(verdict) => Self::apply_verdict(verdict, &audit, view, object).await,
        };
        audit.mutation(matches!(changed, Ok(true)));
        changed
    }

    /// Applies a webhook's verdict to an object. Returns true if this changed the object.
    async fn apply_verdict(
        verdict: Verdict,
        audit: &AuditAnnotations<'_>,
        View { resource, object: current, .. }: &View,
        object: &mut Option<Cow<'_, Value>>,
    ) -> Result<bool, Status> {
        let write = audit.write;
        write.warnings.extend(verdict.warnings);
        if !verdict.allowed {
            return Err(denial(&audit.webhook.name, &verdict.result));
        }
        let Some(patch) = verdict.patch else { return Ok(false) };
        let Some(current) = current else {
            return Err(Status::internal(format_args!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this \
                 operation",
                audit.webhook.name
            )));
        };
        let (schema, ty) = (&resource.schema, resource.ty);
        let patched = pintle_apply::apply(PatchType::Json, schema, ty, current, &patch);
        let mut patched = patched.map_err(|error| Status::internal(&error))?.value;
        if !schema.is_structural(ty) {
            check_kind(&patched, current)?;
            if write.kind.is_none() {
                // Unknown members are dropped.
                pintle_schema::conform(schema, ty, &mut patched).map_err(Status::internal)?;
            }
        }
        audit.patch(&patch);
        if patched == *current {
            return Ok(false);
        }
        if write.kind.is_none() {
            resource.set_defaults(&mut patched);
        }
        *object = Some(Cow::Owned(to_stored_form(patched, write, resource).await?));
        Ok(true)
    }

    /// Calls the validating webhooks concurrently, at most [`CALLS_MAX`] at once. The first refusal in their order is returned.
    fn call_all<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        matched: Vec<MatchedWebhook>,
    ) -> Waited<'a, ()> {
        timed(write, Layer::ValidatingWebhooks, async move {
            // Webhooks match few versions of a resource, and the objects are converted once for each.
            let mut views: Vec<View> = Vec::new();
            for one in &matched {
                if !views.iter().any(|view| view.is_for(one)) {
                    views.push(View::of(write, write.object, &one.resource).await?);
                }
            }
            let mut calls = Vec::new();
            for one in &matched {
                let view = views.iter().find(|view| view.is_for(one));
                calls.extend(view.map(|view| self.call_one(write, one, view, Step::Validate)));
            }
            let outcomes: Vec<_> = stream::iter(calls).buffered(CALLS_MAX).collect().await;
            let called = matched.iter().zip(&outcomes);
            let called = called.filter(|(_, outcome)| !matches!(outcome, Ok(Outcome::Excluded)));
            for (index, (one, outcome)) in called.enumerate() {
                match outcome {
                    Ok(Outcome::FailedOpen) => {
                        let webhook = &one.webhook;
                        let audit = AuditAnnotations { write, webhook, round: 0, index };
                        audit.failed_open(Step::Validate);
                    }
                    Ok(Outcome::Answered(verdict)) => {
                        write.warnings.extend(verdict.warnings.iter().cloned());
                    }
                    _ => {}
                }
            }
            for (one, outcome) in matched.iter().zip(outcomes) {
                match outcome? {
                    Outcome::Failed(status) => return Err(status),
                    Outcome::Answered(verdict) if !verdict.allowed => {
                        return Err(denial(&one.webhook.name, &verdict.result));
                    }
                    _ => {}
                }
            }
            Ok(())
        })
    }
}

/// Returns the errors of the match conditions of a configuration's webhooks.
pub(crate) fn problems(configuration: &Value) -> field::Errors {
    let mut problems = field::Errors::new();
    for (index, webhook) in Webhook::all(configuration).iter().enumerate() {
        let path = Path::new("webhooks").index(index).field("matchConditions");
        let conditions = webhook.conditions.iter().flat_map(|all| all.expressions());
        for (index, condition) in conditions.enumerate() {
            problems.extend(condition.error(&path.index(index).field("expression")));
        }
    }
    problems
}
