//! Which writes a webhook or a policy is about: rules, selectors, and the versions of a resource.

use std::sync::Arc;

use pintle_meta::labels::Selector;
use pintle_meta::{GroupVersionResource, Status, object};
use pintle_registry::admission::Attributes;
use pintle_registry::{Registry, Resource, Scope};
use pintle_value::{Map, Str, Value};

/// What somebody is to be asked about.
#[derive(Clone, Debug)]
pub(crate) struct Matching {
    /// Rules speak also for the other versions of a resource.
    equivalent: bool,
    /// `None` for everything.
    rules: Option<Vec<Rule>>,
    excluded: Vec<Rule>,
    namespaces: Option<Selector>,
    objects: Option<Selector>,
}

/// Which requests are meant.
#[derive(Clone, Debug)]
struct Rule {
    operations: Vec<Str>,
    groups: Vec<Str>,
    versions: Vec<Str>,
    resources: Vec<Str>,
    scope: Str,
    /// The names of objects; none for all.
    names: Vec<Str>,
}

impl Matching {
    /// As a webhook says: without rules it is about nothing.
    pub(crate) fn of_webhook(hook: &Value) -> Self {
        Self::read(hook, Some(Rule::all(hook, "rules")), Vec::new())
    }

    /// As the constraints of a policy, or the `matchResources` of a binding say: without rules they are
    /// about everything.
    pub(crate) fn of_policy(constraints: &Value) -> Self {
        let rules = Some(Rule::all(constraints, "resourceRules")).filter(|rules| !rules.is_empty());
        Self::read(constraints, rules, Rule::all(constraints, "excludeResourceRules"))
    }

    fn read(said: &Value, rules: Option<Vec<Rule>>, excluded: Vec<Rule>) -> Self {
        Self {
            equivalent: said.str_at(&["matchPolicy"]) != Some("Exact"),
            rules,
            excluded,
            namespaces: Selector::from_label_selector(said.get("namespaceSelector")).ok(),
            objects: Selector::from_label_selector(said.get("objectSelector")).ok(),
        }
    }

    /// The version of the resource to be asked about, where a write is meant: the one that is written if
    /// a rule names it, else one that a rule names (`versions` are all there are).
    pub(crate) fn version(
        &self,
        write: &Attributes<'_>,
        registry: &Registry,
        versions: &[Arc<Resource>],
    ) -> Result<Option<Arc<Resource>>, Status> {
        if named(&self.excluded, self.equivalent, write, versions).is_some() {
            return Ok(None);
        }
        let version = match &self.rules {
            Some(rules) => named(rules, self.equivalent, write, versions),
            None => Some(write.resource),
        };
        let version = version
            .and_then(|version| versions.iter().find(|one| one.resource == version.resource));
        let wanted = version.is_some()
            && self.wants_object(write)
            && (!has_namespace(write) || self.wants_namespace(write, registry)?);
        Ok(version.filter(|_| wanted).cloned())
    }

    /// Whether the labels of the object, before or after, are those that are wanted.
    fn wants_object(&self, write: &Attributes<'_>) -> bool {
        let Some(selector) = &self.objects else { return false };
        let wanted = |object: &Value| selector.matches_map(object::labels(object));
        selector.is_everything() || [write.object, write.old].into_iter().flatten().any(wanted)
    }

    fn wants_namespace(&self, write: &Attributes<'_>, registry: &Registry) -> Result<bool, Status> {
        let Some(selector) = &self.namespaces else { return Ok(false) };
        Ok(selector.is_everything()
            || selector.matches_map(namespace_labels(write, registry)?.as_object()))
    }
}

/// The version of the written resource that rules name, if they mean the write.
fn named<'r>(
    rules: &[Rule],
    equivalent: bool,
    write: &Attributes<'r>,
    versions: &'r [Arc<Resource>],
) -> Option<&'r Resource> {
    let matches = |resource: &Resource| rules.iter().any(|rule| rule.matches(write, resource));
    if matches(write.resource) {
        return Some(write.resource);
    }
    versions.iter().map(|one| &**one).filter(|_| equivalent).find(|resource| matches(resource))
}

impl Rule {
    fn all(said: &Value, member: &str) -> Vec<Self> {
        let rules = said.get(member).and_then(Value::as_array).unwrap_or_default();
        rules.iter().map(Self::of).collect()
    }

    fn of(rule: &Value) -> Self {
        Self {
            operations: texts(rule, "operations"),
            groups: texts(rule, "apiGroups"),
            versions: texts(rule, "apiVersions"),
            resources: texts(rule, "resources"),
            scope: rule.str_at(&["scope"]).unwrap_or("*").into(),
            names: texts(rule, "resourceNames"),
        }
    }

    fn matches(&self, write: &Attributes<'_>, resource: &Resource) -> bool {
        let name = &resource.resource;
        let scope = match resource.scope {
            Scope::Namespaced => "Namespaced",
            Scope::Cluster => "Cluster",
        };
        any(&self.operations, write.operation.name())
            && any(&self.groups, &name.group)
            && any(&self.versions, &name.version)
            && (self.scope == "*" || self.scope == scope)
            && (self.names.is_empty() || self.names.iter().any(|name| name == write.name))
            && self.resources.iter().any(|pattern| {
                let (resource, part) = pattern.split_once('/').unwrap_or((pattern, ""));
                (resource == "*" || resource == name.resource.as_str())
                    && (part == "*" || part == write.subresource)
            })
    }
}

/// Whether a list of patterns has a text, or everything.
fn any(patterns: &[Str], text: &str) -> bool {
    patterns.iter().any(|pattern| pattern == "*" || pattern == text)
}

/// The texts of a list.
pub(crate) fn texts(object: &Value, member: &str) -> Vec<Str> {
    let list = object.get(member).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(Str::from).collect()
}

/// Whether a write is in a namespace, or of one.
fn has_namespace(write: &Attributes<'_>) -> bool {
    !write.namespace.is_empty() || is_namespace(write.resource)
}

/// Whether a resource is that of namespaces.
pub(crate) fn is_namespace(resource: &Resource) -> bool {
    resource.resource.group.is_empty() && resource.resource.resource == "namespaces"
}

/// The labels of the namespace that a write is in; of a namespace its own.
fn namespace_labels(write: &Attributes<'_>, registry: &Registry) -> Result<Value, Status> {
    let labels = |object: &Value| object::labels(object).cloned().unwrap_or_default();
    if is_namespace(write.resource) {
        return Ok(write.object.or(write.old).map(labels).unwrap_or_default().into());
    }
    let namespaces = registry.resource(&GroupVersionResource::new("", "v1", "namespaces"));
    let namespace = namespaces.and_then(|all| registry.peek(&all, "", write.namespace));
    match namespace {
        Some(namespace) => Ok(labels(&namespace.tree()?).into()),
        None => Ok(Map::new().into()),
    }
}
