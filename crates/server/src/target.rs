//! Looks up the resource and subresource that a request info names.

use std::sync::Arc;

use http::Method;
use pintle_meta::{GroupVersionResource, Status, names};
use pintle_registry::request::Target;
use pintle_registry::{Registry, Resource, Subresource, SubresourceBehaviour, Verb};
use pintle_value::Str;

use crate::negotiation::{Encodings, Forms, Route};
use crate::request_info::ResourceInfo;

/// The served resource and subresource of a request.
pub(crate) struct Found {
    /// The target of the registry's calls.
    pub(crate) target: Target,
    /// The subresource, if the path names one.
    pub(crate) subresource: Option<Subresource>,
}

/// The resource that the path names, if it is served.
pub(crate) fn resource(registry: &Registry, info: &ResourceInfo) -> Option<Arc<Resource>> {
    let name = GroupVersionResource::new(&*info.group, &*info.version, &*info.resource);
    registry.resource(&name)
}

/// Finds the target of a request: 404 if the resource does not exist in that scope (PATH-08) or has
/// no such subresource, 405 if it does not support the verb, 501 if the subresource is not served,
/// 400 if the name is invalid.
pub(crate) fn find(
    resource: Option<Arc<Resource>>,
    info: &ResourceInfo,
    verb: Option<Verb>,
    method: &Method,
) -> Result<Found, Status> {
    let resource = resource.ok_or_else(Status::no_such_path)?;
    let namespace = scope(&resource, info, verb)?;
    let subresource = match info.subresource.as_str() {
        "" => None,
        name => {
            let part =
                resource.subresource(name).ok_or_else(|| subresource_not_found(&resource, info))?;
            Some(part.clone())
        }
    };
    check_verb(&resource, subresource.as_ref(), info, verb)?;
    if !is_routed(&resource, subresource.as_ref(), info, method) {
        return Err(Status::wrong_method());
    }
    let misnamed = names::path_segment(&info.name);
    if !misnamed.is_empty() {
        let why = misnamed.join(";");
        return Err(Status::bad_request(format!("Name parameter invalid: {:?}: {why}", info.name)));
    }
    let says_name = verb != Some(Verb::Create) || subresource.is_some();
    let target = Target {
        namespace,
        name: if says_name { info.name.as_str().into() } else { Str::default() },
        subresource: info.subresource.as_str().into(),
        resource,
    };
    Ok(Found { target, subresource })
}

/// Whether the method has a route. Each route has one method. Only proxies have routes for HEAD and
/// OPTIONS, and deprecated watch paths have GET alone. Custom resources have no routes: their
/// handler decides about the method.
fn is_routed(
    resource: &Resource,
    subresource: Option<&Subresource>,
    info: &ResourceInfo,
    method: &Method,
) -> bool {
    resource.typed_items
        || match *method {
            Method::HEAD | Method::OPTIONS => subresource.is_some_and(is_proxy),
            Method::GET => true,
            Method::POST | Method::PUT | Method::PATCH | Method::DELETE => !info.watch_prefix,
            _ => false,
        }
}

/// True for a proxy, which forwards requests of any method.
fn is_proxy(subresource: &Subresource) -> bool {
    subresource.behaviour == SubresourceBehaviour::Connect
        && subresource.verbs.contains(&Verb::Delete)
}

/// The 404 of a subresource. Upstream's handler of custom resources says that the object does not
/// exist.
fn subresource_not_found(resource: &Resource, info: &ResourceInfo) -> Status {
    if resource.typed_items {
        Status::not_found(&resource.group_resource(), &info.name)
    } else {
        Status::no_such_path()
    }
}

/// The namespace of the request: `""` for the cluster and for all namespaces.
fn scope(resource: &Resource, info: &ResourceInfo, verb: Option<Verb>) -> Result<Str, Status> {
    if resource.namespaced() {
        if !info.namespace.is_empty() {
            return Ok(info.namespace.as_str().into());
        }
        let lists = resource.verbs.contains(&Verb::List);
        return match verb {
            // A resource that can only be created has only namespaced paths.
            _ if !lists => Err(Status::no_such_path()),
            Some(Verb::Watch) if info.named => Err(Status::no_such_path()),
            Some(Verb::List | Verb::Watch) => Ok(Str::default()),
            // Upstream's handler of custom resources does not know the path at all.
            _ if resource.typed_items => Err(Status::no_such_path()),
            Some(Verb::Get | Verb::Delete | Verb::DeleteCollection) if info.unnamed_namespace => {
                Err(Status::bad_request("Namespace parameter required."))
            }
            _ if info.named => Err(Status::no_such_path()),
            _ => Err(Status::wrong_method()),
        };
    }
    // The path of a namespace sets both name and namespace.
    let of_itself = info.resource == "namespaces" && info.namespace == info.name;
    if info.namespace.is_empty() || of_itself {
        Ok(Str::default())
    } else {
        Err(Status::no_such_path())
    }
}

fn check_verb(
    resource: &Resource,
    subresource: Option<&Subresource>,
    info: &ResourceInfo,
    verb: Option<Verb>,
) -> Result<(), Status> {
    if let Some(subresource) = subresource {
        if subresource.behaviour == SubresourceBehaviour::Unserved {
            let what = format!("{}/{}", resource.group_resource(), subresource.name);
            return Err(Status::not_implemented(&what));
        }
        if info.subpath.len() > 1 && subresource.behaviour != SubresourceBehaviour::Connect {
            return Err(Status::no_such_path());
        }
    }
    // A resource that can only be created has no paths of single objects.
    let of_one =
        |verb: &Verb| matches!(verb, Verb::Get | Verb::Update | Verb::Patch | Verb::Delete);
    if info.named && subresource.is_none() && !resource.verbs.iter().any(of_one) {
        return Err(Status::no_such_path());
    }
    if verb == Some(Verb::Watch) && !resource.verbs.contains(&Verb::Watch) && info.watch_prefix {
        return Err(Status::no_such_path());
    }
    // The verbs on one object and the create of a subresource need a name in the path. The verbs on
    // a collection and the create of an object forbid a name.
    let needs_name = match verb {
        Some(Verb::Get | Verb::Update | Verb::Patch | Verb::Delete) => Some(true),
        // A custom resource can be created at the path of an object, whose name is ignored.
        Some(Verb::Create) if resource.typed_items && subresource.is_none() => None,
        Some(Verb::Create) => Some(subresource.is_some()),
        Some(Verb::List | Verb::DeleteCollection) => Some(false),
        Some(Verb::Watch) | None => None,
    };
    if needs_name.is_some_and(|needed| needed != info.named) {
        return Err(Status::wrong_method());
    }
    let verbs = subresource.map_or(&resource.verbs, |subresource| &subresource.verbs);
    let knows = |verb: &Verb| verbs.contains(verb);
    match verb {
        Some(verb) if knows(&verb) => Ok(()),
        None if subresource.is_some_and(is_proxy) => Ok(()),
        // Custom resources have one route for all verbs. The route of a list also serves its watch,
        // and refuses it where the resource cannot be watched.
        _ if resource.typed_items || verb == Some(Verb::Watch) && knows(&Verb::List) => {
            let verb = verb.map_or("", Verb::as_str);
            Err(Status::method_not_allowed(&resource.group_resource(), verb))
        }
        _ => Err(Status::wrong_method()),
    }
}

impl Found {
    /// Whether the request is for a subresource with this behaviour.
    pub(crate) fn is(&self, behaviour: &SubresourceBehaviour) -> bool {
        self.subresource.as_ref().is_some_and(|part| part.behaviour == *behaviour)
    }

    /// The encodings of the resource's objects (MT-13).
    pub(crate) fn encodings(&self) -> Encodings {
        if self.target.resource.typed_items { Encodings::WITHOUT_PROTOBUF } else { Encodings::ALL }
    }

    /// The route of a verb, whose media types are negotiated first. Custom resources have no route,
    /// and connecting subresources except `log` accept everything.
    pub(crate) fn route(&self, verb: Option<Verb>) -> Option<Route> {
        let named = |name: &str| self.subresource.as_ref().is_some_and(|part| part.name == name);
        match verb {
            _ if self.target.resource.typed_items => None,
            _ if self.connects() => named("log").then_some(Route::LOG),
            Some(Verb::List | Verb::Watch) => Some(Route::COLLECTION),
            _ => Some(Route::OBJECT),
        }
    }

    /// Whether the subresource connects the client to a backend.
    pub(crate) fn connects(&self) -> bool {
        self.is(&SubresourceBehaviour::Connect)
    }

    /// The forms of responses. Only a resource that can be listed or read has columns.
    pub(crate) fn forms(&self) -> Forms {
        let readable = |verb: &Verb| matches!(verb, Verb::List | Verb::Get);
        let part_has = self.subresource.as_ref().is_none_or(|part| part.printer.is_some());
        Forms::Objects { tables: part_has && self.target.resource.verbs.iter().any(readable) }
    }

    /// The target of the whole collection: a name that comes from a field selector is dropped.
    pub(crate) fn collection(&self) -> Target {
        Target { name: Str::default(), ..self.target.clone() }
    }
}
