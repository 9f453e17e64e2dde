//! Collects a policy's parameters (upstream: `CollectParams`).

use std::sync::Arc;

use pintle_meta::labels::Selector;
use pintle_meta::{GroupVersion, object};
use pintle_registry::admission::Attributes;
use pintle_registry::{Registry, Resource, Unreadable};
use pintle_value::{Str, Value};

use super::binding::{Binding, ParamRef};
use super::head::Head;

/// The resource of a policy's parameters, if it has a parameter kind.
pub(super) fn resource(
    policy: &Head,
    registry: &Registry,
) -> Result<Option<Arc<Resource>>, String> {
    let Some((version, kind)) = &policy.params else { return Ok(None) };
    let GroupVersion { group, version: number } = version;
    let (_, resources) = registry.resources();
    let is_it = |resource: &Resource| {
        let of = resource.gvk();
        of.kind == *kind && of.group == *group && of.version == *number
    };
    let found = resources.iter().find(|resource| is_it(resource) && resource.storage.is_some());
    found.cloned().map(Some).ok_or_else(|| {
        let kind = format!("{group}/{number}, Kind={kind}");
        format!("failed to find resource referenced by paramKind: '{kind}'")
    })
}

/// Returns the parameters of a binding, each for one evaluation; one `null` if the policy has no
/// parameter kind or the binding no `paramRef`. It is an error if there are no parameters and the
/// binding requires some.
pub(super) fn collect(
    kind: Option<&Resource>,
    binding: &Binding,
    write: &Attributes<'_>,
    registry: &Registry,
) -> Result<Vec<Value>, String> {
    let (Some(resource), Some(param_ref)) = (kind, &binding.params) else {
        return Ok(vec![Value::Null]);
    };
    let namespace = namespace_of(resource, param_ref, write)?;
    let served = |tree: Value| {
        let mut tree = tree;
        resource.to_served(&mut tree);
        resource.stamp(&mut tree);
        tree
    };
    let unread = |why: Unreadable| why.to_string();
    let found: Vec<Value> = if param_ref.name.is_empty() {
        let selector = Selector::from_label_selector(Some(&param_ref.selector));
        let selector = selector.map_err(|why| why.to_string())?;
        let all = registry.objects_in(resource, &namespace).into_iter();
        let all: Vec<Value> =
            all.map(|one| one.tree()).collect::<Result<_, _>>().map_err(unread)?;
        let selected = all.into_iter().filter(|one| selector.matches_map(object::labels(one)));
        selected.map(served).collect()
    } else {
        let named = registry.peek(resource, &namespace, &param_ref.name);
        let named = named.map(|named| named.tree()).transpose().map_err(unread)?;
        named.into_iter().map(served).collect()
    };
    if found.is_empty() && param_ref.required {
        return Err(
            "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()
        );
    }
    Ok(found)
}

/// The namespace of parameters.
fn namespace_of(
    resource: &Resource,
    param_ref: &ParamRef,
    write: &Attributes<'_>,
) -> Result<Str, String> {
    let why = match (resource.namespaced(), param_ref.namespace.as_str(), write.namespace) {
        (true, "", "") => {
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        }
        (true, "", namespace) | (true, namespace, _) => return Ok(namespace.into()),
        (false, "", _) => return Ok("".into()),
        (false, ..) => "paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
    };
    Err(why.to_owned())
}
