//! PodSecurity: checks pods against the Pod Security Standards of their namespace's labels, and
//! warns about workloads whose pods would violate them (upstream: `k8s.io/pod-security-admission`).
//!
//! If a namespace has no such labels and the defaults are privileged, the plugin reads only the
//! cached labels of the namespace.

mod checks;
mod configuration;
mod measures;
mod offenders;
mod policy;
mod rules;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use pintle_meta::quote::quote;
use pintle_meta::{GroupVersionResource, Status, field, object};
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation};
use pintle_registry::{Object, Registry, Unreadable};
use pintle_value::Value;

use crate::Measures;
use crate::annotations::annotate;
use crate::pods::items;
use crate::{forbidden, is_of};
use checks::{Violations, violations};
pub(crate) use configuration::Configuration;
pub(crate) use measures::Measures as PodSecurityMeasures;
use measures::{Mode, Verdict, WriteLabels};
use policy::{Level, PREFIX, PRIVILEGED, Policies, Policy};

/// The annotations for the audit log.
const ENFORCED: &str = "pod-security.kubernetes.io/enforce-policy";
const VIOLATIONS: &str = "pod-security.kubernetes.io/audit-violations";
const EXEMPT: &str = "pod-security.kubernetes.io/exempt";
const ERROR: &str = "pod-security.kubernetes.io/error";

/// The most pods of a namespace that are checked when its enforced policy changes.
const PODS_MAX: usize = 3000;

/// The pod templates of workload resources.
const TEMPLATES: &[(&str, &str, &[&str])] = &[
    ("", "podtemplates", &["template"]),
    ("", "replicationcontrollers", &["spec", "template"]),
    ("apps", "daemonsets", &["spec", "template"]),
    ("apps", "deployments", &["spec", "template"]),
    ("apps", "replicasets", &["spec", "template"]),
    ("apps", "statefulsets", &["spec", "template"]),
    ("batch", "cronjobs", &["spec", "jobTemplate", "spec", "template"]),
    ("batch", "jobs", &["spec", "template"]),
];

/// The subresources of pods that change nothing that a check reads; all others are checked.
const HARMLESS_PARTS: &[&str] =
    &["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

/// The plugin.
pub(crate) struct PodSecurity {
    pub configuration: Configuration,
    pub measures: Arc<Measures>,
}

impl Admission for PodSecurity {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Validate])
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<Vec<String>, Status> {
        let Some(object) = write.object else { return Ok(Vec::new()) };
        let of = &write.resource.resource;
        if of.group.is_empty() && of.resource == "pods" {
            return self.check_pod(write, object, registry);
        }
        if is_of(write, "", "namespaces") {
            return self.check_namespace(write, object, registry);
        }
        let template = TEMPLATES.iter().find(|(group, plural, _)| is_of(write, group, plural));
        let template = template.and_then(|(_, _, path)| object.at(path));
        template.map_or(Ok(Vec::new()), |pod| self.check_template(write, pod, registry))
    }
}

impl PodSecurity {
    fn check_pod(
        &self,
        write: &Attributes<'_>,
        pod: &Value,
        registry: &Registry,
    ) -> Result<Vec<String>, Status> {
        if HARMLESS_PARTS.contains(&write.subresource) {
            return Ok(Vec::new());
        }
        let write_labels = WriteLabels::of(write);
        if self.is_exempt(write, pod, &write_labels) {
            return Ok(Vec::new());
        }
        let (policies, errors) = match self.policies(registry, write.namespace) {
            Ok(policies) => policies.unwrap_or_default(),
            Err(status) => {
                self.measures.pod_security.failed(true, &write_labels);
                return Err(status);
            }
        };
        if errors.is_empty() && policies.are_privileged() {
            self.count(Verdict::Allow, Mode::Enforce, policies.enforce, &write_labels);
            annotate(write, ENFORCED, || PRIVILEGED.to_string());
            return Ok(Vec::new());
        }
        if write.old().is_some_and(|old| !is_significant(pod, old)) {
            return Ok(Vec::new());
        }
        self.report_invalid_labels(write, &errors, &write_labels);
        let found = violations(policies.enforce, pod);
        let verdict = if found.is_empty() { Verdict::Allow } else { Verdict::Deny };
        self.count(verdict, Mode::Enforce, policies.enforce, &write_labels);
        annotate(write, ENFORCED, || policies.enforce.to_string());
        self.audit(write, policies.audit, pod, &write_labels);
        if !found.is_empty() {
            let why = format!("violates PodSecurity \"{}\": {found}", policies.enforce);
            return Err(forbidden(write, pod, &why));
        }
        Ok(self.warning(policies.warn, pod, &write_labels))
    }

    fn is_exempt(
        &self,
        write: &Attributes<'_>,
        pod: &Value,
        write_labels: &WriteLabels<'_>,
    ) -> bool {
        let exemption = self.configuration.exemption(write, pod);
        if let Some(why) = exemption {
            self.measures.pod_security.exempted(write_labels);
            annotate(write, EXEMPT, || why.to_owned());
        }
        exemption.is_some()
    }

    fn count(&self, verdict: Verdict, mode: Mode, policy: Policy, write_labels: &WriteLabels<'_>) {
        let [level, version] = policy.labels();
        self.measures.pod_security.evaluated(verdict, mode, [&level, &version], write_labels);
    }

    /// Annotates audit events with the errors of the namespace's labels. Such labels were written
    /// before the plugin was enabled, because the plugin refuses new ones.
    fn report_invalid_labels(
        &self,
        write: &Attributes<'_>,
        errors: &field::Errors,
        write_labels: &WriteLabels<'_>,
    ) {
        if !errors.is_empty() {
            self.measures.pod_security.failed(false, write_labels);
            let why = || format!("Failed to parse policy: {}", field::aggregate(errors));
            annotate(write, ERROR, why);
        }
    }

    /// Annotates audit events with a pod's violations.
    fn audit(
        &self,
        write: &Attributes<'_>,
        policy: Policy,
        pod: &Value,
        write_labels: &WriteLabels<'_>,
    ) {
        let found = violations(policy, pod);
        if !found.is_empty() {
            self.count(Verdict::Deny, Mode::Audit, policy, write_labels);
            annotate(write, VIOLATIONS, || would_violate(policy, &found));
        }
    }

    fn warning(&self, policy: Policy, pod: &Value, write_labels: &WriteLabels<'_>) -> Vec<String> {
        let found = violations(policy, pod);
        if found.is_empty() {
            return Vec::new();
        }
        self.count(Verdict::Deny, Mode::Warn, policy, write_labels);
        vec![would_violate(policy, &found)]
    }

    /// Warns about a template but never refuses it; the plugin refuses the template's pods instead.
    fn check_template(
        &self,
        write: &Attributes<'_>,
        pod: &Value,
        registry: &Registry,
    ) -> Result<Vec<String>, Status> {
        let write_labels = WriteLabels::of(write);
        if self.is_exempt(write, pod, &write_labels) {
            return Ok(Vec::new());
        }
        let (policies, errors) = self.policies(registry, write.namespace)?.unwrap_or_default();
        let is_privileged = policies.warn.is_privileged() && policies.audit.is_privileged();
        if errors.is_empty() && is_privileged {
            return Ok(Vec::new());
        }
        self.report_invalid_labels(write, &errors, &write_labels);
        self.audit(write, policies.audit, pod, &write_labels);
        Ok(self.warning(policies.warn, pod, &write_labels))
    }

    /// The policies of a namespace, and the errors of its labels. `None` if the namespace does not
    /// exist, or has no policy labels and the defaults are privileged. Reads the labels from the
    /// index of the namespace, without decoding it.
    fn policies(
        &self,
        registry: &Registry,
        namespace: &str,
    ) -> Result<Option<(Policies, field::Errors)>, Status> {
        let namespaces = registry.resource(&GroupVersionResource::new("", "v1", "namespaces"));
        let Some(namespaces) = namespaces else { return Ok(None) };
        let Some(namespace) = registry.peek(&namespaces, "", namespace) else { return Ok(None) };
        let index = namespace.indexed(namespaces.strategy.fields())?;
        let asks = index.labels.iter().any(|(key, _)| key.starts_with(PREFIX));
        let usual = self.configuration.usual;
        Ok(match asks {
            true => Some(Policies::of(usual, |key| index.label(key))),
            false => (!usual.are_privileged()).then(|| (usual, field::Errors::new())),
        })
    }

    /// Refuses new invalid labels. If an update makes the enforced policy stricter or changes its
    /// version, warns about the existing pods that the new policy would refuse.
    fn check_namespace(
        &self,
        write: &Attributes<'_>,
        namespace: &Value,
        registry: &Registry,
    ) -> Result<Vec<String>, Status> {
        let labelled = |namespace: &Value| {
            let labels = object::labels(namespace).cloned();
            let label = |key: &str| labels.as_ref()?.get(key)?.as_str();
            Policies::of(self.configuration.usual, label)
        };
        let (new, errors) = labelled(namespace);
        let before = write.old().map(labelled);
        let known = before.as_ref().is_some_and(|(_, before)| *before == errors);
        let name = object::name(namespace);
        if !errors.is_empty() && !known {
            return Err(Status::invalid(&write.resource.group_kind(), name, &errors));
        }
        let Some((old, _)) = before.filter(|_| write.operation == Operation::Update) else {
            return Ok(Vec::new());
        };
        let (new, old) = (new.enforce, old.enforce);
        let relaxed = new.version == old.version && new.level <= old.level;
        if relaxed || new.level == Level::Privileged || self.configuration.exempts_namespace(name) {
            return Ok(Vec::new());
        }
        warnings_about_pods(registry, name, new)
    }
}

fn would_violate(policy: Policy, found: &Violations) -> String {
    format!("would violate PodSecurity \"{policy}\": {found}")
}

/// True if an update changes the image of a container, or adds or changes an ephemeral container.
/// No check reads other mutable fields (upstream: `isSignificantPodUpdate`).
fn is_significant(pod: &Value, old: &Value) -> bool {
    let list = |pod, list| items(pod, &["spec", list]);
    let is_same = |member, a: &Value, b: &Value| a.str_at(&[member]) == b.str_at(&[member]);
    let runs_same = |which| {
        let (new, old) = (list(pod, which), list(old, which));
        new.len() == old.len() && new.iter().zip(old).all(|(a, b)| is_same("image", a, b))
    };
    // The first container of a name wins.
    let named = list(old, "ephemeralContainers").iter().rev();
    let named: BTreeMap<_, _> = named.map(|old| (old.str_at(&["name"]), old)).collect();
    let ran = |container: &Value| {
        let named = named.get(&container.str_at(&["name"]));
        named.is_some_and(|named| is_same("image", named, container))
    };
    !runs_same("containers")
        || !runs_same("initContainers")
        || !list(pod, "ephemeralContainers").iter().all(ran)
}

/// Warnings about a namespace's pods that a policy would refuse, grouped (upstream:
/// `EvaluatePodsInNamespace`). Upstream stops after a second; cached pods need no such limit.
fn warnings_about_pods(
    registry: &Registry,
    namespace: &str,
    policy: Policy,
) -> Result<Vec<String>, Status> {
    let pods = registry.resource(&GroupVersionResource::new("", "v1", "pods"));
    let pods = pods.map(|pods| registry.objects_in(&pods, namespace)).unwrap_or_default();
    let count = pods.len();
    let mut by_reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut looked_at = 0;
    for pod in in_turn(pods).take(PODS_MAX) {
        let pod = pod?;
        looked_at += 1;
        let found = violations(policy, &pod);
        if !found.is_empty() {
            by_reasons.entry(found.reasons()).or_default().push(object::name(&pod).to_owned());
        }
    }
    let mut warnings = Vec::new();
    if looked_at < count {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {looked_at} of {count} \
             existing pods"
        ));
    }
    if !by_reasons.is_empty() {
        let namespace = quote(namespace);
        warnings.push(format!(
            "existing pods in namespace {namespace} violate the new PodSecurity enforce level \
             \"{policy}\""
        ));
    }
    let mut groups: Vec<String> =
        by_reasons.into_iter().map(|(why, pods)| group_warning(&why, pods)).collect();
    groups.sort_unstable();
    warnings.extend(groups);
    Ok(warnings)
}

/// Returns the warning about pods that violate a policy for the same reason.
fn group_warning(why: &str, mut pods: Vec<String>) -> String {
    pods.sort_unstable();
    let first = pods.first().map_or("", String::as_str);
    match pods.len() {
        1 => format!("{first}: {why}"),
        2 => format!("{first} (and 1 other pod): {why}"),
        count => format!("{first} (and {} other pods): {why}", count - 1),
    }
}

/// Returns the pods without a controller and one pod of each controller first, and then the others.
fn in_turn(pods: Vec<Arc<Object>>) -> impl Iterator<Item = Result<Value, Unreadable>> {
    let mut controllers = HashSet::new();
    let mut later = Vec::new();
    let mut pods = pods.into_iter();
    std::iter::from_fn(move || {
        for object in pods.by_ref() {
            let pod = match object.tree() {
                Ok(pod) => pod,
                Err(why) => return Some(Err(why)),
            };
            let controller = items(&pod, &["metadata", "ownerReferences"])
                .iter()
                .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true));
            let uid = controller.and_then(|owner| owner.str_at(&["uid"]));
            if uid.is_none_or(|uid| controllers.insert(uid.to_owned())) {
                return Some(Ok(pod));
            }
            later.push(object);
        }
        later.pop().map(|object| object.tree())
    })
}
