//! NamespaceLifecycle: refuses creates in missing or terminating namespaces, and the deletion of
//! system namespaces.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use pintle_meta::{GroupResource, GroupVersionResource, Status, object};
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation};
use pintle_registry::allocation::Companion;
use pintle_registry::{Object, Registry, Resource};

/// The namespaces that cannot be deleted.
pub(crate) const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The state of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It does not exist.
    Missing,
    /// It exists, and is not being deleted.
    Active,
    /// It is being deleted.
    Terminating,
}

/// The properties of a write on which the decision depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// The operation.
    pub operation: Operation,
    /// The resource.
    pub resource: &'a GroupResource,
    /// The namespace; `""` for cluster-scoped resources.
    pub namespace: &'a str,
    /// The name, or its prefix if it will be generated.
    pub name: &'a str,
}

/// Decides about a write. `state` returns the state of a namespace, and is called only if the
/// decision depends on it.
pub(crate) fn decide(
    request: &Request<'_>,
    state: impl FnOnce(&str) -> Result<State, Status>,
) -> Result<(), Status> {
    let Request { operation, resource, namespace, name } = *request;
    let is = |group: &str, plural: &str| resource.group == group && resource.resource == plural;
    if is("", "namespaces") {
        if operation == Operation::Delete && IMMORTAL.contains(&name) {
            return Err(Status::forbidden(resource, name, "this namespace may not be deleted"));
        }
        return Ok(());
    }
    // A review must not disclose whether the namespace exists.
    let asks = is("authorization.k8s.io", "localsubjectaccessreviews");
    if operation != Operation::Create || namespace.is_empty() || asks {
        return Ok(());
    }
    match state(namespace)? {
        State::Active => Ok(()),
        State::Missing => Err(Status::not_found(&GroupResource::new("", "namespaces"), namespace)),
        State::Terminating => {
            let name = if name.is_empty() { "Unknown" } else { name };
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let cause = format!("namespace {namespace} is being terminated");
            Err(Status::forbidden(resource, name, &why).with_cause(
                "NamespaceTerminating",
                &cause,
                "metadata.namespace",
            ))
        }
    }
}

/// The plugin.
#[derive(Clone, Copy, Debug, Default)]
pub struct NamespaceLifecycle;

impl Admission for NamespaceLifecycle {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::BeforeMutation, Hook::BeforeCommit])
    }

    fn before_mutation(
        &self,
        attributes: &Attributes<'_>,
        registry: &Registry,
    ) -> Result<(), Status> {
        read_namespace_and_decide(attributes, registry).map(drop)
    }

    /// Webhooks may take long, so the namespace is checked again, and the commit requires that it
    /// is unchanged since. So no object remains in a deleted namespace.
    fn before_commit(
        &self,
        attributes: &Attributes<'_>,
        registry: &Registry,
    ) -> Result<Vec<Companion>, Status> {
        if attributes.operation != Operation::Create || !attributes.subresource.is_empty() {
            return Ok(Vec::new());
        }
        match read_namespace_and_decide(attributes, registry)? {
            Some((namespaces, namespace)) => {
                Ok(vec![Companion::unchanged(&namespaces, &namespace)?])
            }
            None => Ok(Vec::new()),
        }
    }
}

/// The resource of namespaces, and one namespace.
type FoundNamespace = (Arc<Resource>, Arc<Object>);

/// Decides about a write; returns the namespace that was read, if any.
fn read_namespace_and_decide(
    attributes: &Attributes<'_>,
    registry: &Registry,
) -> Result<Option<FoundNamespace>, Status> {
    let request = Request {
        operation: attributes.operation,
        resource: &attributes.resource.group_resource(),
        namespace: attributes.namespace,
        name: name(attributes),
    };
    let mut seen = None;
    decide(&request, |name| {
        // A server that does not serve namespaces refuses nothing.
        let Some(namespaces) = namespaces(registry) else { return Ok(State::Active) };
        let Some(namespace) = registry.peek(&namespaces, "", name) else {
            return Ok(State::Missing);
        };
        let is_terminating = is_terminating(&namespaces, &namespace)?;
        seen = Some((namespaces, namespace));
        Ok(if is_terminating { State::Terminating } else { State::Active })
    })?;
    Ok(seen)
}

fn namespaces(registry: &Registry) -> Option<Arc<Resource>> {
    registry.resource(&GroupVersionResource::new("", "v1", "namespaces"))
}

/// The object's name or its prefix.
fn name<'a>(attributes: &Attributes<'a>) -> &'a str {
    let given = |member| attributes.object.map_or("", |object| object::text(object, member));
    [attributes.name, given("name"), given("generateName")]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_default()
}

/// Whether the phase is `Terminating`. The phase is a selectable field, so the object need not be
/// decoded.
fn is_terminating(namespaces: &Resource, namespace: &Object) -> Result<bool, Status> {
    let fields = namespaces.strategy.fields();
    let phase = fields.iter().position(|field| field.label == "status.phase");
    let index = namespace.indexed(fields)?;
    let value = phase.and_then(|at| index.fields.get(at));
    Ok(value.is_some_and(|phase| phase == "Terminating"))
}
