//! Collects a policy's parameters (upstream: `CollectParams`).

use std::sync::Arc;

use pintle_meta::GroupVersion;
use pintle_registry::admission::Attributes;
use pintle_registry::{Object, Registry, Resource};
use pintle_value::{Str, Value};

use super::binding::{Binding, ParamRef};
use super::head::Head;
use crate::pace::Pace;
use crate::request::namespace;

/// The resource of a policy's parameters, if it has a parameter kind.
pub(super) fn resource(
    policy: &Head,
    registry: &Registry,
) -> Result<Option<Arc<Resource>>, String> {
    let Some((version, kind)) = &policy.params else { return Ok(None) };
    let GroupVersion { group, version: number } = version;
    let (_, resources) = registry.resources();
    let is_it = |one: &Resource| {
        let of = &one.resource;
        one.kind == *kind && of.group == *group && of.version == *number
    };
    let found = resources.iter().find(|resource| is_it(resource) && resource.storage.is_some());
    found.cloned().map(Some).ok_or_else(|| {
        let kind = format!("{group}/{number}, Kind={kind}");
        format!("failed to find resource referenced by paramKind: '{kind}'")
    })
}

/// A parameter for one evaluation. It is decoded for the evaluation and not before, because all
/// parameters of a binding may be too large for the memory.
pub(super) enum Parameter {
    /// The policy has no parameter kind, or the binding no `paramRef`.
    Absent,
    Stored {
        resource: Arc<Resource>,
        object: Arc<Object>,
    },
}

impl Parameter {
    /// The parameter in the version of the parameter kind; `null` if it is absent.
    pub(super) fn value(&self) -> Result<Value, String> {
        let Self::Stored { resource, object } = self else { return Ok(Value::Null) };
        let mut tree = object.tree().map_err(|why| why.to_string())?;
        resource.to_served(&mut tree);
        resource.stamp(&mut tree);
        Ok(tree)
    }

    /// The namespace and the name.
    pub(super) fn identity(&self) -> [&str; 2] {
        match self {
            Self::Absent => ["", ""],
            Self::Stored { object, .. } => [object.namespace(), object.name()],
        }
    }
}

/// Returns the parameters of a binding; [`Parameter::Absent`] if the policy has no parameter kind
/// or the binding no `paramRef`. It is an error if there are no parameters and the binding requires
/// some.
pub(super) async fn collect(
    kind: Option<&Arc<Resource>>,
    binding: &Binding,
    write: &Attributes<'_>,
    registry: &Registry,
) -> Result<Vec<Parameter>, String> {
    let (Some(resource), Some(param_ref)) = (kind, &binding.params) else {
        return Ok(vec![Parameter::Absent]);
    };
    let namespace = namespace_of(resource, param_ref, write)?;
    let mut found: Vec<Arc<Object>> = Vec::new();
    if param_ref.name.is_empty() {
        let selector = param_ref.selector.as_ref().map_err(Clone::clone)?;
        let mut pace = Pace::begin();
        for object in registry.objects_in(resource, &namespace) {
            // The index has the labels, so the objects that are not selected are not decoded.
            let index =
                object.indexed(resource.strategy.fields()).map_err(|why| why.to_string())?;
            if selector.matches(|key| index.label(key)) {
                found.push(object);
            }
            pace.step().await;
        }
    } else {
        found.extend(registry.peek(resource, &namespace, &param_ref.name));
    }
    if found.is_empty() && param_ref.required {
        return Err(
            "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()
        );
    }
    let stored = |object| Parameter::Stored { resource: Arc::clone(resource), object };
    Ok(found.into_iter().map(stored).collect())
}

/// The namespace of parameters.
fn namespace_of(
    resource: &Resource,
    param_ref: &ParamRef,
    write: &Attributes<'_>,
) -> Result<Str, String> {
    let why = match (resource.namespaced(), param_ref.namespace.as_str(), namespace(write)) {
        (true, "", "") => {
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        }
        (true, "", namespace) | (true, namespace, _) => return Ok(namespace.into()),
        (false, "", _) => return Ok("".into()),
        (false, ..) => "paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
    };
    Err(why.to_owned())
}
