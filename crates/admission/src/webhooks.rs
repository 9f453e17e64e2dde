//! Admission webhooks: others change objects before they are validated, and refuse them after (WH-01 …
//! WH-05).
//!
//! Purpose: finds the webhooks that concern a write, asks them, and believes what can be believed. Those
//! that change objects are asked one after the other, those that only judge all at once.
//!
//! Must not know: how requests travel.
//!
//! Invariant: nobody is asked about webhooks and admission policies themselves, so that a wrong one can
//! always be taken away.

mod configuration;
mod hook;
mod review;
#[cfg(test)]
mod tests;
mod told;

use std::borrow::Cow;
use std::future::ready;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use parking_lot::Mutex;
use pintle_apply::PatchType;
use pintle_cel::Authorizer;
use pintle_meta::{GroupVersionResource, Status, field};
use pintle_registry::admission::{Admission, Attributes, Memory, Mutated, Waited};
use pintle_registry::request::Layer;
use pintle_registry::webhook::{Caller, Unanswered};
use pintle_registry::{Feed, News, Registry, Resource};
use pintle_value::{Path, Value};

use crate::Plugins;
use crate::annotations::annotate;
use crate::expressions::{Evaluation, Facts, Variables};
use crate::measured::Measured;
use crate::measures::{Asker, Measures, Rejection, Step};
use crate::permissions::{Permissions, resource_of, settled};
use crate::request::{returned, shown, taken};
use crate::rows;
pub(crate) use configuration::kubeconfig;
use hook::Hook;
use review::{Inquiry, Verdict, denial};
use told::Told;

const GROUP: &str = "admissionregistration.k8s.io";

/// The plugin.
pub struct Webhooks {
    callers: Callers,
    permissions: Arc<dyn Permissions>,
    measures: Arc<Measures>,
    /// `None` where nobody is to be asked.
    mutating: Option<Configurations>,
    validating: Option<Configurations>,
}

/// Who calls the webhooks of each plugin, with the credentials that it has for them.
pub struct Callers {
    /// Of MutatingAdmissionWebhook.
    pub mutating: Arc<dyn Caller>,
    /// Of ValidatingAdmissionWebhook.
    pub validating: Arc<dyn Caller>,
}

/// The webhooks of all configurations of a kind, as they are now.
struct Configurations {
    resource: &'static str,
    /// Follows the configurations; `None` before the first look.
    known: Mutex<Option<(Feed, Arc<[Hook]>)>>,
}

/// A webhook that is to be asked, about a version of the resource.
struct Concerned {
    hook: Hook,
    /// Its index among all of its sort.
    index: usize,
    resource: Arc<Resource>,
}

/// What came of asking a webhook.
enum Asked {
    /// It is not concerned after all.
    Unwanted,
    /// It could not be asked, and the write may pass without.
    FailedOpen,
    Said(Verdict),
    /// The write may not pass.
    Failed(Status),
}

pub(crate) const MUTATING: &str = "MutatingAdmissionWebhook";
pub(crate) const VALIDATING: &str = "ValidatingAdmissionWebhook";

impl Webhooks {
    /// All webhooks that there are of the plugins that run, to be called by `callers`; their conditions ask
    /// `permissions` what users may do.
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
    fn mutate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
        memory: &'a mut Memory,
    ) -> Option<Waited<'a, Mutated>> {
        let mut concerned = match self.mutating.as_ref()?.concerned(write, registry) {
            Ok(concerned) => concerned,
            Err(status) => return Some(Box::pin(ready(Err(status)))),
        };
        concerned.retain(|one| memory.is_due(&one.hook.key));
        (!concerned.is_empty()).then(|| self.change(write, concerned, memory))
    }

    fn validate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, Vec<String>>> {
        let concerned = match self.validating.as_ref()?.concerned(write, registry) {
            Ok(concerned) => concerned,
            Err(status) => return Some(Box::pin(ready(Err(status)))),
        };
        (!concerned.is_empty()).then(|| self.judge(write, concerned))
    }
}

/// Adds to what a write waited for webhooks.
fn timed<'a, T: Send>(
    write: &'a Attributes<'a>,
    layer: Layer,
    asked: impl Future<Output = Result<T, Status>> + Send + 'a,
) -> Waited<'a, T> {
    Box::pin(async move {
        let began = Instant::now();
        let result = asked.await;
        let took = began.elapsed();
        write.waited.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        write.recorder.iter().for_each(|recorder| recorder.spent(layer, took));
        result
    })
}

impl Webhooks {
    /// Has an object changed by one webhook after the other.
    fn change<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        concerned: Vec<Concerned>,
        memory: &'a mut Memory,
    ) -> Waited<'a, Mutated> {
        timed(write, Layer::MutatingWebhooks, async move {
            let mut mutated = Mutated::default();
            let mut object = write.object.map(Cow::Borrowed);
            let round = u8::from(memory.again);
            for one in concerned {
                if self.change_once(write, (&one, round), &mut object, &mut mutated).await? {
                    memory.wake();
                }
                if one.hook.again {
                    memory.note(one.hook.key);
                }
            }
            if let Some(Cow::Owned(object)) = object {
                mutated.object = Some(returned(object, write));
            }
            Ok(mutated)
        })
    }

    /// Asks one webhook about an object of the stored form; whether it changed it. The audit log is told.
    async fn change_once(
        &self,
        write: &Attributes<'_>,
        (one, round): (&Concerned, u8),
        object: &mut Option<Cow<'_, Value>>,
        mutated: &mut Mutated,
    ) -> Result<bool, Status> {
        let told = Told { write, hook: &one.hook, round, index: one.index };
        let changed = match self.ask(write, one, object.as_deref(), Step::Admit).await? {
            Asked::Unwanted => return Ok(false),
            Asked::FailedOpen => {
                told.failed_open(Step::Admit);
                Ok(false)
            }
            Asked::Failed(status) => Err(status),
            Asked::Said(verdict) => Self::changed_by(verdict, &told, one, object, mutated).await,
        };
        told.mutation(matches!(changed, Ok(true)));
        changed
    }

    /// Does to an object what a webhook says; whether that changed it.
    async fn changed_by(
        verdict: Verdict,
        told: &Told<'_>,
        one: &Concerned,
        object: &mut Option<Cow<'_, Value>>,
        mutated: &mut Mutated,
    ) -> Result<bool, Status> {
        let write = told.write;
        mutated.warnings.extend(verdict.warnings);
        if !verdict.allowed {
            return Err(denial(&one.hook.name, &verdict.result));
        }
        let (Some(patch), Some(current)) = (verdict.patch, object.as_deref()) else {
            return Ok(false);
        };
        let current = shown(current, write, &one.resource).await?;
        let (schema, ty) = (&one.resource.schema, one.resource.ty);
        let patched = pintle_apply::apply(PatchType::Json, schema, ty, &current, &patch);
        let mut patched = patched.map_err(|error| Status::internal(&error))?.value;
        told.patch(&patch);
        if patched == current {
            return Ok(false);
        }
        if write.kind.is_none() {
            one.resource.set_defaults(&mut patched);
        }
        *object = Some(Cow::Owned(taken(patched, write, &one.resource).await?));
        Ok(true)
    }

    /// Asks all at once; the first refusal counts.
    fn judge<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        concerned: Vec<Concerned>,
    ) -> Waited<'a, Vec<String>> {
        timed(write, Layer::ValidatingWebhooks, async move {
            let verdicts =
                concerned.iter().map(|one| self.ask(write, one, write.object, Step::Validate));
            let answers = join_all(verdicts).await;
            let wanted = concerned.iter().zip(&answers);
            let wanted = wanted.filter(|(_, asked)| !matches!(asked, Ok(Asked::Unwanted)));
            for (index, (one, asked)) in wanted.enumerate() {
                if matches!(asked, Ok(Asked::FailedOpen)) {
                    let told = Told { write, hook: &one.hook, round: 0, index };
                    told.failed_open(Step::Validate);
                }
            }
            let mut warnings = Vec::new();
            for (one, asked) in concerned.iter().zip(answers) {
                match asked? {
                    Asked::Unwanted | Asked::FailedOpen => {}
                    Asked::Failed(status) => return Err(status),
                    Asked::Said(verdict) if verdict.allowed => warnings.extend(verdict.warnings),
                    Asked::Said(verdict) => return Err(denial(&one.hook.name, &verdict.result)),
                }
            }
            Ok(warnings)
        })
    }

    /// Asks one webhook. An error is one of its conditions, or of a version of the object.
    async fn ask(
        &self,
        write: &Attributes<'_>,
        one: &Concerned,
        object: Option<&Value>,
        step: Step,
    ) -> Result<Asked, Status> {
        let hook = &one.hook;
        let caller = self.callers.at(step);
        let uid = caller.uid();
        let object = match object {
            Some(object) => Some(shown(object, write, &one.resource).await?),
            None => None,
        };
        let old = match write.old {
            Some(old) => Some(shown(old, write, &one.resource).await?),
            None => None,
        };
        let inquiry = Inquiry {
            uid: &uid,
            version: hook.version.unwrap_or_default(),
            write,
            resource: &one.resource,
            object: object.as_ref(),
            old: old.as_ref(),
        };
        if !self.is_wanted(hook, &inquiry, step).await? {
            return Ok(Asked::Unwanted);
        }
        let began = Instant::now();
        let count = |code, rejection| {
            let call = (&*hook.name, step, write.operation);
            self.measures.called(call, began.elapsed(), code, rejection);
        };
        if write.dry_run
            && let Err(status) = hook.supports_dry_run()
        {
            count(0, Some(Rejection::Internal));
            return Ok(Asked::Failed(status));
        }
        match call(caller, hook, &inquiry).await {
            Ok(verdict) => {
                match verdict.allowed {
                    true => count(200, None),
                    false => count(denial(&hook.name, &verdict.result).code, Some(Rejection::Said)),
                }
                for (key, value) in &verdict.annotations {
                    annotate(write, &format!("{}/{key}", hook.name), || value.clone());
                }
                Ok(Asked::Said(verdict))
            }
            Err(Unanswered { why, code, .. }) if hook.lenient => {
                tracing::warn!(webhook = %hook.name, %why, "failed calling a webhook, failing open");
                count(code, None);
                self.measures.failed_open(&hook.name, step);
                Ok(Asked::FailedOpen)
            }
            Err(Unanswered { why, code, .. }) => {
                count(code, Some(Rejection::NotAsked));
                let why = format_args!("failed calling webhook {:?}: {why}", hook.name);
                Ok(Asked::Failed(Status::internal(why)))
            }
        }
    }

    /// Whether a webhook's conditions hold; one that cannot be judged is a refusal, or none where failures
    /// are to be ignored.
    async fn is_wanted(
        &self,
        hook: &Hook,
        inquiry: &Inquiry<'_>,
        step: Step,
    ) -> Result<bool, Status> {
        if hook.conditions.is_empty() {
            return Ok(true);
        }
        let write = inquiry.write;
        let asked = self.permissions.of(write.user);
        let authorizer: Arc<dyn Authorizer> = asked.clone();
        let facts = Facts {
            object: inquiry.object.unwrap_or(&Value::Null),
            old: inquiry.old.unwrap_or(&Value::Null),
            request: &inquiry.request().into(),
            namespace: &Value::Null,
            params: None,
            authorizer: &authorizer,
            resource: &resource_of(write),
        };
        let began = Instant::now();
        let hold = || hook.conditions.hold(&Evaluation::new(facts, &Variables::default()));
        let judged = settled(&*asked, hold).await;
        let asker = Asker::Webhook(&hook.name, step);
        self.measures.judged(asker, write.operation, began.elapsed(), judged.is_err());
        if !matches!(judged, Ok(true)) && (judged.is_ok() || hook.lenient) {
            self.measures.excluded(&hook.name, step, write.operation);
        }
        match judged {
            Ok(wanted) => Ok(wanted),
            Err(why) if hook.lenient => {
                tracing::warn!(
                    webhook = %hook.name, %why,
                    "cannot judge a webhook's conditions, failing open"
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

async fn call(
    caller: &dyn Caller,
    hook: &Hook,
    inquiry: &Inquiry<'_>,
) -> Result<Verdict, Unanswered> {
    if hook.version.is_none() {
        let why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
        return Err(Unanswered { why: why.to_owned(), code: 400, is_transient: false });
    }
    let answer = caller.call(&hook.endpoint, inquiry.body(), hook.timeout).await;
    let answer = answer.map_err(|refusal| {
        let why = format!("failed to call webhook: {}", refusal.why);
        Unanswered { why, ..refusal }
    })?;
    inquiry.verdict(&answer).map_err(Unanswered::silent)
}

impl Callers {
    fn at(&self, step: Step) -> &dyn Caller {
        match step {
            Step::Admit => &*self.mutating,
            Step::Validate => &*self.validating,
        }
    }
}

/// What is wrong with the conditions of a configuration's webhooks.
pub(crate) fn problems(configuration: &Value) -> field::Errors {
    let mut problems = field::Errors::new();
    for (index, hook) in Hook::all(configuration).iter().enumerate() {
        let path = Path::new("webhooks").index(index).field("matchConditions");
        for (index, condition) in hook.conditions.expressions().enumerate() {
            let path = path.index(index).field("expression");
            let text = Value::from(condition.text.as_str());
            let wrong = condition.problem().map(|why| field::Error::invalid(&path, &text, why));
            problems.extend(wrong);
        }
    }
    problems
}

impl Configurations {
    /// The webhooks that concern a write, in the order of their configurations' names.
    fn concerned(
        &self,
        write: &Attributes<'_>,
        registry: &Registry,
    ) -> Result<Vec<Concerned>, Status> {
        if is_exempt(write.resource) {
            return Ok(Vec::new());
        }
        let hooks = self.hooks(registry)?;
        if hooks.is_empty() {
            return Ok(Vec::new());
        }
        let versions = registry.versions_of(write.resource);
        let mut concerned = Vec::new();
        for (index, hook) in hooks.iter().enumerate() {
            let resource = hook.matching.version(write, registry, &versions)?;
            let hook = || hook.clone();
            concerned.extend(resource.map(|resource| Concerned { hook: hook(), index, resource }));
        }
        Ok(concerned)
    }

    fn hooks(&self, registry: &Registry) -> Result<Arc<[Hook]>, Status> {
        let mut known = self.known.lock();
        if let Some((feed, hooks)) = &*known
            && feed.is_current()
        {
            return Ok(hooks.clone());
        }
        let name = GroupVersionResource::new(GROUP, "v1", self.resource);
        let Some(resource) = registry.resource(&name) else { return Ok(Arc::from([])) };
        let mut feed = registry.feed(&resource);
        let Ok(News::State(objects)) = feed.take() else { return Ok(Arc::from([])) };
        // Configurations come in the order of their names, in which their webhooks are called.
        let mut hooks = Vec::new();
        for object in &objects {
            // Writes are refused while a configuration cannot be read: its webhooks might refuse them.
            let unreadable = |why| Status::internal(format_args!("{}: {why}", self.resource));
            hooks.extend(Hook::all(&object.tree().map_err(unreadable)?));
        }
        let hooks: Arc<[Hook]> = hooks.into();
        *known = Some((feed, hooks.clone()));
        Ok(hooks)
    }
}

/// What can be registered here is registered without being asked about (WH-04).
fn is_exempt(resource: &Resource) -> bool {
    resource.resource.group == GROUP
}
