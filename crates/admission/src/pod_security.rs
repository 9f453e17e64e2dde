//! PodSecurity: checks pods against the Pod Security Standards of their namespace's labels, and
//! warns about workloads whose pods would violate them (upstream: `k8s.io/pod-security-admission`).
//!
//! If a namespace has no such labels and the defaults are privileged, the plugin reads only the
//! cached labels of the namespace.

mod checks;
mod configuration;
mod measures;
mod offenders;
mod pods;
mod policy;
mod rules;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_meta::quote::quote;
use pintle_meta::{GroupVersionResource, Status, field, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation, Waited};
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
        Hooks::of(&[Hook::Validate, Hook::ValidateRegistered])
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        let Some(object) = write.object else { return Ok(()) };
        let of = &write.resource.resource;
        if of.group.is_empty() && of.resource == "pods" {
            return self.check_pod(write, object, registry);
        }
        if is_of(write, "", "namespaces") {
            return self.check_labels(write, object);
        }
        let template = TEMPLATES.iter().find(|(group, plural, _)| is_of(write, group, plural));
        let template = template.and_then(|(_, _, path)| object.at(path));
        template.map_or(Ok(()), |pod| self.check_template(write, pod, registry))
    }

    /// Warns about the existing pods that a new policy of a namespace would refuse. This hook can
    /// wait, so other requests are served in between.
    fn validate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        let namespace = write.object.filter(|_| is_of(write, "", "namespaces"))?;
        let policy = self.tightened(write, namespace)?;
        let name = object::name(namespace);
        Some(Box::pin(async move {
            write.warnings.extend(pods::warnings(registry, name, policy).await?);
            Ok(())
        }))
    }
}

impl PodSecurity {
    fn check_pod(
        &self,
        write: &Attributes<'_>,
        pod: &Value,
        registry: &Registry,
    ) -> Result<(), Status> {
        if HARMLESS_PARTS.contains(&write.subresource) {
            return Ok(());
        }
        let write_labels = WriteLabels::of(write);
        if self.is_exempt(write, pod, &write_labels) {
            return Ok(());
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
            return Ok(());
        }
        if write.old().is_some_and(|old| !is_significant(pod, old)) {
            return Ok(());
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
        self.warn(write, policies.warn, pod, &write_labels);
        Ok(())
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

    fn warn(
        &self,
        write: &Attributes<'_>,
        policy: Policy,
        pod: &Value,
        write_labels: &WriteLabels<'_>,
    ) {
        let found = violations(policy, pod);
        if !found.is_empty() {
            self.count(Verdict::Deny, Mode::Warn, policy, write_labels);
            write.warnings.add(would_violate(policy, &found));
        }
    }

    /// Warns about a template but never refuses it; the plugin refuses the template's pods instead.
    fn check_template(
        &self,
        write: &Attributes<'_>,
        pod: &Value,
        registry: &Registry,
    ) -> Result<(), Status> {
        let write_labels = WriteLabels::of(write);
        if self.is_exempt(write, pod, &write_labels) {
            return Ok(());
        }
        let (policies, errors) = self.policies(registry, write.namespace)?.unwrap_or_default();
        let is_privileged = policies.warn.is_privileged() && policies.audit.is_privileged();
        if errors.is_empty() && is_privileged {
            return Ok(());
        }
        self.report_invalid_labels(write, &errors, &write_labels);
        self.audit(write, policies.audit, pod, &write_labels);
        self.warn(write, policies.warn, pod, &write_labels);
        Ok(())
    }

    /// The policies of a namespace, and the errors of its labels. `None` if the namespace has no
    /// policy labels and the defaults are privileged. Reads the labels from the index of the
    /// namespace, without decoding it.
    ///
    /// # Errors
    /// If the namespace does not exist, as in upstream: its policies are unknown.
    fn policies(
        &self,
        registry: &Registry,
        namespace: &str,
    ) -> Result<Option<(Policies, field::Errors)>, Status> {
        let namespaces = registry.resource(&GroupVersionResource::new("", "v1", "namespaces"));
        let found = namespaces
            .and_then(|namespaces| Some((registry.peek(&namespaces, "", namespace)?, namespaces)));
        let Some((namespace, namespaces)) = found else {
            let why = format_args!("failed to lookup namespace {}", quote(namespace));
            return Err(Status::internal(why));
        };
        let index = namespace.indexed(namespaces.strategy.fields())?;
        let asks = index.labels.iter().any(|(key, _)| key.starts_with(PREFIX));
        let usual = self.configuration.usual;
        Ok(match asks {
            true => Some(Policies::of(usual, |key| index.label(key))),
            false => (!usual.are_privileged()).then(|| (usual, field::Errors::new())),
        })
    }

    /// Refuses new invalid labels of a namespace.
    fn check_labels(&self, write: &Attributes<'_>, namespace: &Value) -> Result<(), Status> {
        let (_, errors) = self.labelled(namespace);
        let is_known = || write.old().is_some_and(|old| self.labelled(old).1 == errors);
        if errors.is_empty() || is_known() {
            return Ok(());
        }
        let kind = write.resource.group_kind();
        Err(Status::invalid(&kind, object::name(namespace), &errors))
    }

    /// The new enforced policy of a namespace, if an update makes it stricter or changes its
    /// version.
    fn tightened(&self, write: &Attributes<'_>, namespace: &Value) -> Option<Policy> {
        let old = write.old().filter(|_| write.operation == Operation::Update)?;
        let [new, old] = [namespace, old].map(|one| self.labelled(one).0.enforce);
        let relaxed = new.version == old.version && new.level <= old.level;
        let is_exempt = || self.configuration.exempts_namespace(object::name(namespace));
        let is_tightened = !relaxed && new.level != Level::Privileged && !is_exempt();
        is_tightened.then_some(new)
    }

    /// The policies of a namespace by its labels, and their errors.
    fn labelled(&self, namespace: &Value) -> (Policies, field::Errors) {
        let labels = object::labels(namespace);
        Policies::of(self.configuration.usual, |key| labels?.get(key)?.as_str())
    }
}

fn would_violate(policy: Policy, found: &Violations) -> String {
    format!("would violate PodSecurity \"{policy}\": {found}")
}

/// Whether an update changes the image of a container, or adds or changes an ephemeral container.
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
