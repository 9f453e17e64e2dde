//! Decides which writes a webhook or a policy matches, by rules, selectors, and the versions of a
//! resource.

use std::sync::Arc;

use pintle_meta::labels::Selector;
use pintle_meta::{GroupVersionResource, Status, object};
use pintle_registry::admission::Attributes;
use pintle_registry::{Registry, Resource, Scope};
use pintle_value::{Str, Value};

/// The matching criteria of a webhook, a policy or a binding.
#[derive(Clone, Debug)]
pub(crate) struct Matching {
    /// Whether a rule for one version of a resource also matches writes of its other versions.
    equivalent: bool,
    /// `None` matches every write.
    rules: Option<Vec<Rule>>,
    excluded: Vec<Rule>,
    /// `None` for an invalid selector, which selects nothing.
    namespaces: Option<Selector>,
    objects: Option<Selector>,
}

/// A rule: the operations, resources, scope and names that match.
#[derive(Clone, Debug)]
struct Rule {
    operations: Vec<Str>,
    groups: Vec<Str>,
    versions: Vec<Str>,
    resources: Vec<Str>,
    scope: Str,
    /// Empty if objects of any name match.
    names: Vec<Str>,
}

impl Matching {
    /// Reads the criteria of a webhook; without rules it matches nothing.
    pub(crate) fn of_webhook(hook: &Value) -> Self {
        Self::read(hook, Some(Rule::all(hook, "rules")), Vec::new())
    }

    /// Reads the `matchConstraints` of a policy or the `matchResources` of a binding; without
    /// rules they match every write.
    pub(crate) fn of_policy(constraints: &Value) -> Self {
        let rules = Some(Rule::all(constraints, "resourceRules")).filter(|rules| !rules.is_empty());
        Self::read(constraints, rules, Rule::all(constraints, "excludeResourceRules"))
    }

    fn read(criteria: &Value, rules: Option<Vec<Rule>>, excluded: Vec<Rule>) -> Self {
        Self {
            equivalent: criteria.str_at(&["matchPolicy"]) != Some("Exact"),
            rules,
            excluded,
            namespaces: Selector::from_label_selector(criteria.get("namespaceSelector")).ok(),
            objects: Selector::from_label_selector(criteria.get("objectSelector")).ok(),
        }
    }

    /// Returns the version of the resource in which a matching write is presented: the written
    /// version if a rule names it or there are no rules, else another version that a rule names,
    /// unless `matchPolicy` is `Exact`. `versions` are all versions of the resource. `None` if the
    /// write does not match.
    pub(crate) fn version(
        &self,
        write: &Attributes<'_>,
        registry: &Registry,
        versions: &[Arc<Resource>],
    ) -> Result<Option<Arc<Resource>>, Status> {
        if matched_version(&self.excluded, self.equivalent, write, versions).is_some() {
            return Ok(None);
        }
        let version = match &self.rules {
            Some(rules) => matched_version(rules, self.equivalent, write, versions),
            None => Some(write.resource),
        };
        let version = version
            .and_then(|version| versions.iter().find(|one| one.resource == version.resource));
        let matches = version.is_some()
            && self.selects_object(write)
            && (!has_namespace(write) || self.selects_namespace(write, registry)?);
        Ok(version.filter(|_| matches).cloned())
    }

    /// Whether the object selector matches the new or the old object.
    fn selects_object(&self, write: &Attributes<'_>) -> bool {
        let Some(selector) = &self.objects else { return false };
        let selected = |object: &Value| selector.matches_map(object::labels(object));
        selector.is_everything() || [write.object, write.old()].into_iter().flatten().any(selected)
    }

    /// Whether the namespace selector matches the namespace of the write; for a write of a
    /// Namespace, the selector is compared with its own labels.
    fn selects_namespace(
        &self,
        write: &Attributes<'_>,
        registry: &Registry,
    ) -> Result<bool, Status> {
        let Some(selector) = &self.namespaces else { return Ok(false) };
        if selector.is_everything() {
            return Ok(true);
        }
        if is_namespace(write.resource) {
            let written = write.object.or(write.old());
            return Ok(selector.matches_map(written.and_then(object::labels)));
        }
        // The index has the labels, so the namespace is not decoded for each webhook and policy.
        let namespaces = registry.resource(&GroupVersionResource::new("", "v1", "namespaces"));
        let namespace = namespaces.as_ref().map(|all| registry.peek(all, "", write.namespace));
        let index = match (&namespaces, &namespace) {
            (Some(all), Some(Some(one))) => Some(one.indexed(all.strategy.fields())?),
            _ => None,
        };
        Ok(selector.matches(|key| index?.label(key)))
    }
}

/// Returns the first version of the written resource that a rule matches, the written version
/// before all others.
fn matched_version<'r>(
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
    fn all(criteria: &Value, member: &str) -> Vec<Self> {
        let rules = criteria.get(member).and_then(Value::as_array).unwrap_or_default();
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
        matches_any(&self.operations, write.operation.name())
            && matches_any(&self.groups, &name.group)
            && matches_any(&self.versions, &name.version)
            && (self.scope == "*" || self.scope == scope)
            && (self.names.is_empty() || self.names.iter().any(|name| name == write.name))
            && self.resources.iter().any(|pattern| {
                let (resource, part) = pattern.split_once('/').unwrap_or((pattern, ""));
                (resource == "*" || resource == name.resource.as_str())
                    && (part == "*" || part == write.subresource)
            })
    }
}

/// Whether a list has the text or `*`.
fn matches_any(patterns: &[Str], text: &str) -> bool {
    patterns.iter().any(|pattern| pattern == "*" || pattern == text)
}

/// Returns the strings of a list.
pub(crate) fn texts(object: &Value, member: &str) -> Vec<Str> {
    let list = object.get(member).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(Str::from).collect()
}

/// Whether the written object is in a namespace or is a Namespace.
fn has_namespace(write: &Attributes<'_>) -> bool {
    !write.namespace.is_empty() || is_namespace(write.resource)
}

/// True for the resource `namespaces`.
pub(crate) fn is_namespace(resource: &Resource) -> bool {
    resource.resource.group.is_empty() && resource.resource.resource == "namespaces"
}
