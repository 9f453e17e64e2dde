//! One call of a webhook: its match conditions, the review that it gets, and the outcome.

use std::sync::Arc;
use std::time::Instant;

use pintle_cel::Authorizer;
use pintle_meta::Status;
use pintle_registry::admission::Attributes;
use pintle_registry::webhook::{CallError, Caller};
use pintle_registry::{Resource, work};
use pintle_trace::{Kind, Open, SpanContext};
use pintle_value::Value;

use super::matched::MatchedWebhook;
use super::review::{Review, Verdict, denial};
use super::webhook::Webhook;
use super::{Callers, Webhooks};
use crate::annotations::annotate;
use crate::expressions::{Evaluation, Inputs, Variables};
use crate::measures::{ConditionOwner, Rejection, Step};
use crate::permissions::{evaluate_with_rulings, resource_of};
use crate::request::to_version;

/// The outcome of a call.
pub(super) enum Outcome {
    /// The match conditions exclude the write, so there was no call.
    Excluded,
    /// The call failed and the failure policy ignores failures.
    FailedOpen,
    Answered(Verdict),
    /// The write is refused without an answer of the webhook.
    Failed(Status),
}

/// The objects of a write in a version of its resource.
pub(super) struct View {
    pub(super) resource: Arc<Resource>,
    pub(super) object: Option<Value>,
    old: Option<Value>,
}

impl View {
    /// Converts the objects of a write to a version.
    pub(super) async fn of(
        write: &Attributes<'_>,
        object: Option<&Value>,
        resource: &Arc<Resource>,
    ) -> Result<Self, Status> {
        let object = match object {
            Some(object) => Some(to_version(object, write, resource).await?),
            None => None,
        };
        let old = match write.old() {
            Some(old) => Some(to_version(old, write, resource).await?),
            None => None,
        };
        Ok(Self { resource: Arc::clone(resource), object, old })
    }

    /// Whether the objects are in the version that a webhook gets.
    pub(super) fn is_for(&self, one: &MatchedWebhook) -> bool {
        self.resource.resource == one.resource.resource
    }
}

impl Webhooks {
    /// Calls one webhook with the objects in its version. An error comes from its match conditions.
    pub(super) async fn call_one(
        &self,
        write: &Attributes<'_>,
        one: &MatchedWebhook,
        view: &View,
        step: Step,
    ) -> Result<Outcome, Status> {
        let webhook = &one.webhook;
        let caller = self.callers.at(step);
        let uid = caller.uid();
        let review = Review {
            uid: &uid,
            version: webhook.version.unwrap_or_default(),
            write,
            resource: &one.resource,
            object: view.object.as_ref(),
            old: view.old.as_ref(),
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
        let answered = call(caller, webhook, &review, step).await.and_then(|mut verdict| {
            for (key, value) in &verdict.annotations {
                annotate(write, &format!("{}/{key}", webhook.name), || value.clone());
            }
            let Some(why) = verdict.unusable.take() else { return Ok(verdict) };
            write.warnings.extend(verdict.warnings);
            Err(CallError::no_response(why))
        });
        match answered {
            Ok(verdict) => {
                match verdict.allowed {
                    true => count(200, None),
                    false => count(
                        denial(&webhook.name, &verdict.result).code,
                        Some(Rejection::ByWebhook),
                    ),
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
        let Some(conditions) = &webhook.conditions else { return Ok(true) };
        work::ahead_of_expressions().await;
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
        let evaluate = || conditions.all_true(&Evaluation::new(inputs, &Variables::default()));
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
    let verdict = post(caller, webhook, (review, step), timing.context(span.as_ref())).await;
    timing.called(&webhook.name, began.elapsed());
    if verdict.is_err() {
        span.iter_mut().for_each(Open::fail);
    }
    verdict
}

async fn post(
    caller: &dyn Caller,
    webhook: &Webhook,
    (review, step): (&Review<'_>, Step),
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
    review.verdict(&answer, step).map_err(CallError::no_response)
}

impl Callers {
    fn at(&self, step: Step) -> &dyn Caller {
        match step {
            Step::Admit => &*self.mutating,
            Step::Validate => &*self.validating,
        }
    }
}
