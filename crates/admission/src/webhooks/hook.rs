//! One webhook as its configuration says, and which writes concern it.

use std::time::Duration;

use pintle_meta::{Status, labels::Selector};
use pintle_registry::admission::Operation;
use pintle_registry::webhook::Endpoint;
use pintle_registry::{Resource, Scope};
use pintle_value::{Str, Value};

use super::condition::Conditions;

/// A webhook of a configuration.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    pub(super) name: Str,
    pub(super) endpoint: Endpoint,
    pub(super) timeout: Duration,
    /// A call that fails lets the write pass.
    pub(super) lenient: bool,
    /// It does nothing besides, or nothing where nothing is to come of the write.
    dry_runs: bool,
    /// It is to be asked again if others changed the object after it.
    pub(super) again: bool,
    /// `v1` or `v1beta1`; `None` where it knows neither.
    pub(super) version: Option<&'static str>,
    /// Rules speak also for the other versions of a resource.
    equivalent: bool,
    rules: Vec<Rule>,
    namespaces: Option<Selector>,
    objects: Option<Selector>,
    pub(super) conditions: Conditions,
}

/// Which requests a webhook is for.
#[derive(Clone, Debug)]
struct Rule {
    operations: Vec<Str>,
    groups: Vec<Str>,
    versions: Vec<Str>,
    resources: Vec<Str>,
    scope: Str,
}

/// What a rule looks at.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) operation: Operation,
    pub(super) resource: &'a Resource,
    pub(super) subresource: &'a str,
}

impl Hook {
    /// The webhooks of a configuration, in order.
    pub(super) fn all(configuration: &Value) -> Vec<Self> {
        let hooks = configuration.get("webhooks").and_then(Value::as_array).unwrap_or_default();
        hooks.iter().map(Self::of).collect()
    }

    fn of(hook: &Value) -> Self {
        let text = |member| hook.str_at(&[member]).unwrap_or_default();
        let seconds = hook.get("timeoutSeconds").and_then(Value::as_int).unwrap_or(10);
        let versions = texts(hook, "admissionReviewVersions");
        let known = |said: &Str| ["v1", "v1beta1"].into_iter().find(|version| *said == *version);
        let seconds = u64::try_from(seconds).unwrap_or(10);
        let endpoint = Endpoint::of(hook.get("clientConfig").unwrap_or(&Value::Null));
        let rules = hook.get("rules").and_then(Value::as_array).unwrap_or_default();
        Self {
            name: text("name").into(),
            endpoint: endpoint.within(seconds),
            timeout: Duration::from_secs(seconds),
            lenient: text("failurePolicy") == "Ignore",
            dry_runs: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            again: text("reinvocationPolicy") == "IfNeeded",
            version: versions.iter().find_map(known),
            equivalent: text("matchPolicy") != "Exact",
            rules: rules.iter().map(Rule::of).collect(),
            namespaces: Selector::from_label_selector(hook.get("namespaceSelector")).ok(),
            objects: Selector::from_label_selector(hook.get("objectSelector")).ok(),
            conditions: Conditions::of(hook),
        }
    }

    /// Refuses a dry run if the webhook might do something all the same (DRY-07).
    pub(super) fn supports_dry_run(&self) -> Result<(), Status> {
        if self.dry_runs {
            return Ok(());
        }
        let why = format!("admission webhook {:?} does not support dry run", self.name);
        Err(Status::bad_request(why))
    }

    /// The version of the resource that the webhook is to be asked about, if any: the one that is
    /// written where a rule names it, else one that a rule names (`versions` are all there are).
    pub(super) fn concerned<'r>(
        &self,
        question: Question<'r>,
        versions: impl Iterator<Item = &'r Resource>,
    ) -> Option<&'r Resource> {
        let matches = |resource| {
            let question = Question { resource, ..question };
            self.rules.iter().any(|rule| rule.matches(&question))
        };
        if matches(question.resource) {
            return Some(question.resource);
        }
        versions.filter(|_| self.equivalent).find(|resource| matches(resource))
    }

    /// Whether the labels of an object, before or after, are those that the webhook wants.
    pub(super) fn wants_object(&self, object: Option<&Value>, old: Option<&Value>) -> bool {
        let Some(selector) = &self.objects else { return false };
        let wanted = |object: &Value| selector.matches_map(pintle_meta::object::labels(object));
        selector.is_everything() || [object, old].into_iter().flatten().any(wanted)
    }

    /// Whether a namespace is one that the webhook wants; `labels` is asked only if it matters.
    pub(super) fn wants_namespace(&self, labels: impl FnOnce() -> Value) -> bool {
        let Some(selector) = &self.namespaces else { return false };
        selector.is_everything() || selector.matches_map(labels().as_object())
    }
}

impl Rule {
    fn of(rule: &Value) -> Self {
        Self {
            operations: texts(rule, "operations"),
            groups: texts(rule, "apiGroups"),
            versions: texts(rule, "apiVersions"),
            resources: texts(rule, "resources"),
            scope: rule.str_at(&["scope"]).unwrap_or("*").into(),
        }
    }

    fn matches(&self, question: &Question<'_>) -> bool {
        let name = &question.resource.resource;
        let operation = match question.operation {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        };
        let scope = match question.resource.scope {
            Scope::Namespaced => "Namespaced",
            Scope::Cluster => "Cluster",
        };
        any(&self.operations, operation)
            && any(&self.groups, &name.group)
            && any(&self.versions, &name.version)
            && (self.scope == "*" || self.scope == scope)
            && self.resources.iter().any(|pattern| {
                let (resource, part) = pattern.split_once('/').unwrap_or((pattern, ""));
                (resource == "*" || resource == name.resource.as_str())
                    && (part == "*" || part == question.subresource)
            })
    }
}

/// Whether a list of patterns has a text, or everything.
fn any(patterns: &[Str], text: &str) -> bool {
    patterns.iter().any(|pattern| pattern == "*" || pattern == text)
}

fn texts(object: &Value, member: &str) -> Vec<Str> {
    let list = object.get(member).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(Str::from).collect()
}
