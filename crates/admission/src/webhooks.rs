//! Admission webhooks: mutating ones change or refuse writes before validation, and validating ones
//! refuse writes after it (WH-01 … WH-05).
//!
//! Finds the webhooks that match a write, calls them, and checks their responses. Mutating
//! webhooks are called one after the other, validating webhooks concurrently. Must not know how
//! requests travel.
//!
//! Invariant: writes of webhook configurations and admission policies are exempt, so that a wrong
//! one can always be deleted.

mod audit;
mod configuration;
mod review;
#[cfg(test)]
mod tests;
mod webhook;

use std::borrow::Cow;
use std::future::ready;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use parking_lot::Mutex;
use pintle_apply::PatchType;
use pintle_cel::Authorizer;
use pintle_meta::{GroupVersionResource, Status, field};
use pintle_registry::admission::{self, Admission, Attributes, Hooks, Memory, Mutated, Waited};
use pintle_registry::webhook::{CallError, Caller};
use pintle_registry::{Feed, FeedUpdate, Registry, Resource};
use pintle_trace::{Kind, Layer, Open, SpanContext};
use pintle_value::{Path, Value};

use crate::Plugins;
use crate::annotations::annotate;
use crate::expressions::{Evaluation, Inputs, Variables};
use crate::measured::Measured;
use crate::measures::{ConditionOwner, Measures, Rejection, Step};
use crate::permissions::{Permissions, evaluate_with_rulings, resource_of};
use crate::request::{to_stored_form, to_version, to_written_version};
use crate::rows;
use audit::AuditAnnotations;
pub(crate) use configuration::kubeconfig;
use review::{Review, Verdict, denial};
use webhook::Webhook;

const GROUP: &str = "admissionregistration.k8s.io";

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

/// The current webhooks of all configurations of a kind.
struct Configurations {
    resource: &'static str,
    /// Follows the configurations; `None` until they have been read.
    known: Mutex<Option<(Feed, Arc<[Webhook]>)>>,
}

/// A webhook that matches a write, with the version of the resource that it matches.
struct MatchedWebhook {
    webhook: Webhook,
    /// Its index among all webhooks of the kind.
    index: usize,
    resource: Arc<Resource>,
}

/// The outcome of a call.
enum Outcome {
    /// The match conditions exclude the write, so there was no call.
    Excluded,
    /// The call failed and the failure policy ignores failures.
    FailedOpen,
    Answered(Verdict),
    /// The write is refused without an answer of the webhook.
    Failed(Status),
}

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
            runs.then(|| Configurations { resource, known: Mutex::default() })
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
    ) -> Option<Waited<'a, Mutated>> {
        let mut matched = match self.mutating.as_ref()?.matched(write, registry) {
            Ok(matched) => matched,
            Err(status) => return Some(Box::pin(ready(Err(status)))),
        };
        matched.retain(|one| memory.is_due(&one.webhook.key));
        (!matched.is_empty()).then(|| self.mutate_in_order(write, matched, memory))
    }

    fn validate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, Vec<String>>> {
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
    ) -> Waited<'a, Mutated> {
        timed(write, Layer::MutatingWebhooks, async move {
            let mut mutated = Mutated::default();
            let mut object = write.object.map(Cow::Borrowed);
            let round = u8::from(memory.again);
            for one in matched {
                if self.mutate_by(write, (&one, round), &mut object, &mut mutated).await? {
                    memory.wake();
                }
                if one.webhook.wants_reinvocation {
                    memory.note(one.webhook.key);
                }
            }
            if let Some(Cow::Owned(object)) = object {
                mutated.object = Some(to_written_version(object, write));
            }
            Ok(mutated)
        })
    }

    /// Calls a mutating webhook for an object in the form that the write path works on, and
    /// annotates the audit event. Returns true if the webhook changed the object.
    async fn mutate_by(
        &self,
        write: &Attributes<'_>,
        (one, round): (&MatchedWebhook, u8),
        object: &mut Option<Cow<'_, Value>>,
        mutated: &mut Mutated,
    ) -> Result<bool, Status> {
        let audit = AuditAnnotations { write, webhook: &one.webhook, round, index: one.index };
        let changed = match self.call_one(write, one, object.as_deref(), Step::Admit).await? {
            Outcome::Excluded => return Ok(false),
            Outcome::FailedOpen => {
                audit.failed_open(Step::Admit);
                Ok(false)
            }
            Outcome::Failed(status) => Err(status),
            Outcome::Answered(verdict) => {
                Self::apply_verdict(verdict, &audit, one, object, mutated).await
            }
        };
        audit.mutation(matches!(changed, Ok(true)));
        changed
    }

    /// Applies a webhook's verdict to an object. Returns true if this changed the object.
    async fn apply_verdict(
        verdict: Verdict,
        audit: &AuditAnnotations<'_>,
        one: &MatchedWebhook,
        object: &mut Option<Cow<'_, Value>>,
        mutated: &mut Mutated,
    ) -> Result<bool, Status> {
        let write = audit.write;
        mutated.warnings.extend(verdict.warnings);
        if !verdict.allowed {
            return Err(denial(&one.webhook.name, &verdict.result));
        }
        let (Some(patch), Some(current)) = (verdict.patch, object.as_deref()) else {
            return Ok(false);
        };
        let current = to_version(current, write, &one.resource).await?;
        let (schema, ty) = (&one.resource.schema, one.resource.ty);
        let patched = pintle_apply::apply(PatchType::Json, schema, ty, &current, &patch);
        let mut patched = patched.map_err(|error| Status::internal(&error))?.value;
        audit.patch(&patch);
        if patched == current {
            return Ok(false);
        }
        if write.kind.is_none() {
            one.resource.set_defaults(&mut patched);
        }
        *object = Some(Cow::Owned(to_stored_form(patched, write, &one.resource).await?));
        Ok(true)
    }

    /// Calls the validating webhooks concurrently. The first refusal in their order is returned.
    fn call_all<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        matched: Vec<MatchedWebhook>,
    ) -> Waited<'a, Vec<String>> {
        timed(write, Layer::ValidatingWebhooks, async move {
            let calls =
                matched.iter().map(|one| self.call_one(write, one, write.object, Step::Validate));
            let outcomes = join_all(calls).await;
            let called = matched.iter().zip(&outcomes);
            let called = called.filter(|(_, outcome)| !matches!(outcome, Ok(Outcome::Excluded)));
            for (index, (one, outcome)) in called.enumerate() {
                if matches!(outcome, Ok(Outcome::FailedOpen)) {
                    let audit = AuditAnnotations { write, webhook: &one.webhook, round: 0, index };
                    audit.failed_open(Step::Validate);
                }
            }
            let mut warnings = Vec::new();
            for (one, outcome) in matched.iter().zip(outcomes) {
                match outcome? {
                    Outcome::Excluded | Outcome::FailedOpen => {}
                    Outcome::Failed(status) => return Err(status),
                    Outcome::Answered(verdict) if verdict.allowed => {
                        warnings.extend(verdict.warnings)
                    }
                    Outcome::Answered(verdict) => {
                        return Err(denial(&one.webhook.name, &verdict.result));
                    }
                }
            }
            Ok(warnings)
        })
    }

    /// Calls one webhook. An error comes from its match conditions or from the conversion of the
    /// object.
    async fn call_one(
        &self,
        write: &Attributes<'_>,
        one: &MatchedWebhook,
        object: Option<&Value>,
        step: Step,
    ) -> Result<Outcome, Status> {
        let webhook = &one.webhook;
        let caller = self.callers.at(step);
        let uid = caller.uid();
        let object = match object {
            Some(object) => Some(to_version(object, write, &one.resource).await?),
            None => None,
        };
        let old = match write.old() {
            Some(old) => Some(to_version(old, write, &one.resource).await?),
            None => None,
        };
        let review = Review {
            uid: &uid,
            version: webhook.version.unwrap_or_default(),
            write,
            resource: &one.resource,
            object: object.as_ref(),
            old: old.as_ref(),
        };
        if !self.conditions_match(webhook, &review, step).await? {
            return Ok(Outcome::Excluded);
        }
        let began = Instant::now();
        let count = |code, rejection| {
            let call = (&*webhook.name, step, write.operation);
            self.measures.called(call, began.elapsed(), code, rejection);
        };
        if write.dry_run
            && let Err(status) = webhook.supports_dry_run()
        {
            count(0, Some(Rejection::Internal));
            return Ok(Outcome::Failed(status));
        }
        match call(caller, webhook, &review, step).await {
            Ok(verdict) => {
                match verdict.allowed {
                    true => count(200, None),
                    false => count(
                        denial(&webhook.name, &verdict.result).code,
                        Some(Rejection::ByWebhook),
                    ),
                }
                for (key, value) in &verdict.annotations {
                    annotate(write, &format!("{}/{key}", webhook.name), || value.clone());
                }
                Ok(Outcome::Answered(verdict))
            }
            Err(CallError { why, code, .. }) if webhook.ignores_failures => {
                tracing::warn!(webhook = %webhook.name, %why, "failed calling a webhook, failing open");
                count(code, None);
                self.measures.failed_open(&webhook.name, step);
                Ok(Outcome::FailedOpen)
            }
            Err(CallError { why, code, .. }) => {
                count(code, Some(Rejection::CallFailed));
                let why = format_args!("failed calling webhook {:?}: {why}", webhook.name);
                Ok(Outcome::Failed(Status::internal(why)))
            }
        }
    }

    /// Evaluates a webhook's match conditions. An error refuses the write, or excludes the webhook
    /// if it ignores failures.
    async fn conditions_match(
        &self,
        webhook: &Webhook,
        review: &Review<'_>,
        step: Step,
    ) -> Result<bool, Status> {
        if webhook.conditions.is_empty() {
            return Ok(true);
        }
        let write = review.write;
        let authorizations = self.permissions.of(write.user);
        let authorizer: Arc<dyn Authorizer> = authorizations.clone();
        let inputs = Inputs {
            object: review.object.unwrap_or(&Value::Null),
            old: review.old.unwrap_or(&Value::Null),
            request: &review.request().into(),
            namespace: &Value::Null,
            params: None,
            authorizer: &authorizer,
            resource: &resource_of(write),
        };
        let began = Instant::now();
        let evaluate =
            || webhook.conditions.all_true(&Evaluation::new(inputs, &Variables::default()));
        let matched = evaluate_with_rulings(&*authorizations, evaluate).await;
        let owner = ConditionOwner::Webhook(&webhook.name, step);
        self.measures.conditions_evaluated(
            owner,
            write.operation,
            began.elapsed(),
            matched.is_err(),
        );
        if !matches!(matched, Ok(true)) && (matched.is_ok() || webhook.ignores_failures) {
            self.measures.excluded(&webhook.name, step, write.operation);
        }
        match matched {
            Ok(matches) => Ok(matches),
            Err(why) if webhook.ignores_failures => {
                tracing::warn!(
                    webhook = %webhook.name, %why,
                    "failed evaluating match conditions of a webhook, so it is not called"
                );
                Ok(false)
            }
            Err(why) => {
                let resource = write.resource.group_resource();
                Err(Status::forbidden(&resource, write.name, &why))
            }
        }
    }
}

/// Calls a webhook, as a span of the write's trace.
async fn call(
    caller: &dyn Caller,
    webhook: &Webhook,
    review: &Review<'_>,
    step: Step,
) -> Result<Verdict, CallError> {
    let (timing, began) = (review.write.timing, Instant::now());
    let mut span = timing.open(step.span(), Kind::Client, |it| review.span(webhook, it));
    let verdict = post(caller, webhook, review, timing.context(span.as_ref())).await;
    timing.called(&webhook.name, began.elapsed());
    if verdict.is_err() {
        span.iter_mut().for_each(Open::fail);
    }
    verdict
}

async fn post(
    caller: &dyn Caller,
    webhook: &Webhook,
    review: &Review<'_>,
    context: Option<SpanContext>,
) -> Result<Verdict, CallError> {
    if webhook.version.is_none() {
        let why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
        return Err(CallError { why: why.to_owned(), code: 400, is_transient: false });
    }
    let answer = caller.call(&webhook.endpoint, review.body(), webhook.timeout, context).await;
    let answer = answer.map_err(|refusal| {
        let why = format!("failed to call webhook: {}", refusal.why);
        CallError { why, ..refusal }
    })?;
    review.verdict(&answer).map_err(CallError::no_response)
}

impl Callers {
    fn at(&self, step: Step) -> &dyn Caller {
        match step {
            Step::Admit => &*self.mutating,
            Step::Validate => &*self.validating,
        }
    }
}

/// Returns the errors of the match conditions of a configuration's webhooks.
pub(crate) fn problems(configuration: &Value) -> field::Errors {
    let mut problems = field::Errors::new();
    for (index, webhook) in Webhook::all(configuration).iter().enumerate() {
        let path = Path::new("webhooks").index(index).field("matchConditions");
        for (index, condition) in webhook.conditions.expressions().enumerate() {
            let path = path.index(index).field("expression");
            let text = Value::from(condition.text.as_str());
            let error = condition.problem().map(|why| field::Error::invalid(&path, &text, why));
            problems.extend(error);
        }
    }
    problems
}

impl Configurations {
    /// Returns the webhooks that match a write, ordered by the names of their configurations.
    fn matched(
        &self,
        write: &Attributes<'_>,
        registry: &Registry,
    ) -> Result<Vec<MatchedWebhook>, Status> {
        if is_exempt(write.resource) {
            return Ok(Vec::new());
        }
        let webhooks = self.configured(registry)?;
        if webhooks.is_empty() {
            return Ok(Vec::new());
        }
        let versions = registry.versions_of(write.resource);
        let mut matched = Vec::new();
        for (index, webhook) in webhooks.iter().enumerate() {
            let resource = webhook.matching.version(write, registry, &versions)?;
            let webhook = || webhook.clone();
            matched.extend(resource.map(|resource| MatchedWebhook {
                webhook: webhook(),
                index,
                resource,
            }));
        }
        Ok(matched)
    }

    fn configured(&self, registry: &Registry) -> Result<Arc<[Webhook]>, Status> {
        let mut known = self.known.lock();
        if let Some((feed, webhooks)) = &*known
            && feed.is_current()
        {
            return Ok(webhooks.clone());
        }
        let name = GroupVersionResource::new(GROUP, "v1", self.resource);
        let Some(resource) = registry.resource(&name) else { return Ok(Arc::from([])) };
        let mut feed = registry.feed(&resource);
        let Ok(FeedUpdate::State(objects)) = feed.take() else { return Ok(Arc::from([])) };
        // Configurations come in the order of their names, in which their webhooks are called.
        let mut webhooks = Vec::new();
        for object in &objects {
            // Writes are refused while a configuration cannot be read: its webhooks might refuse
            // them.
            let unreadable = |why| Status::internal(format_args!("{}: {why}", self.resource));
            webhooks.extend(Webhook::all(&object.tree().map_err(unreadable)?));
        }
        let webhooks: Arc<[Webhook]> = webhooks.into();
        *known = Some((feed, webhooks.clone()));
        Ok(webhooks)
    }
}

/// Writes of webhooks and policies themselves are exempt (WH-04).
fn is_exempt(resource: &Resource) -> bool {
    resource.resource.group == GROUP
}
