//! Namespace lifecycle: nothing is made in a namespace that is missing or on its way out, and some
//! namespaces stay for good (upstream: `NamespaceLifecycle`).

#[cfg(test)]
mod tests;

use pintle_meta::{GroupResource, GroupVersionResource, Status, object};
use pintle_registry::admission::{Admission, Attributes, Operation};
use pintle_registry::{Object, Registry, Resource};

/// The namespaces that cannot be deleted.
pub(crate) const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// What a namespace is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// There is none of that name.
    Missing,
    /// It is there.
    Active,
    /// It is being deleted.
    Terminating,
}

/// A write as far as namespaces are concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// What it does.
    pub operation: Operation,
    /// On which resource.
    pub resource: &'a GroupResource,
    /// In which namespace, `""` for cluster-scoped resources.
    pub namespace: &'a str,
    /// On which object; where the name is yet to be generated, how it begins.
    pub name: &'a str,
}

/// Refuses what must not be; `state` is asked only if it matters.
pub(crate) fn decide(
    request: &Request<'_>,
    state: impl FnOnce(&str) -> State,
) -> Result<(), Status> {
    let Request { operation, resource, namespace, name } = *request;
    let is = |group: &str, plural: &str| resource.group == group && resource.resource == plural;
    if is("", "namespaces") {
        if operation == Operation::Delete && IMMORTAL.contains(&name) {
            return Err(Status::forbidden(resource, name, "this namespace may not be deleted"));
        }
        return Ok(());
    }
    // Asking for access says nothing of the namespace, least of all whether it is there.
    let asks = is("authorization.k8s.io", "localsubjectaccessreviews");
    if operation != Operation::Create || namespace.is_empty() || asks {
        return Ok(());
    }
    match state(namespace) {
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
    fn admit(&self, attributes: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        let request = Request {
            operation: attributes.operation,
            resource: &attributes.resource.group_resource(),
            namespace: attributes.namespace,
            name: name(attributes),
        };
        decide(&request, |namespace| state(registry, namespace))
    }
}

/// The object's name, or how it begins.
fn name<'a>(attributes: &Attributes<'a>) -> &'a str {
    let given = |member| attributes.object.map_or("", |object| object::text(object, member));
    [attributes.name, given("name"), given("generateName")]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_default()
}

fn state(registry: &Registry, name: &str) -> State {
    let Some(namespaces) = registry.resource(&GroupVersionResource::new("", "v1", "namespaces"))
    else {
        // A server that has no namespaces has nothing to say about them.
        return State::Active;
    };
    match registry.peek(&namespaces, "", name) {
        None => State::Missing,
        Some(namespace) if is_terminating(&namespaces, &namespace) => State::Terminating,
        Some(_) => State::Active,
    }
}

/// The phase is a field by which namespaces are selected, so that it need not be read out of the object.
fn is_terminating(namespaces: &Resource, namespace: &Object) -> bool {
    let fields = namespaces.strategy.fields();
    let phase = fields.iter().position(|field| field.label == "status.phase");
    let value = phase.and_then(|at| namespace.indexed(fields).fields.get(at));
    value.is_some_and(|phase| phase == "Terminating")
}
