//! What a request is about: its path, looked up among the served resources.

use std::sync::Arc;

use http::Method;
use pintle_meta::{GroupVersionResource, Status, names};
use pintle_registry::request::Target;
use pintle_registry::{Registry, Resource, Subresource, SubresourceBehaviour, Verb};
use pintle_value::Str;

use crate::negotiation::{Encodings, Forms, Route};
use crate::request_info::ResourceInfo;

/// What a request is about, looked up.
pub(crate) struct Found {
    /// In the registry's terms.
    pub(crate) target: Target,
    /// The subresource, where one is named.
    pub(crate) subresource: Option<Subresource>,
}

/// The resource that a path names, if it is served.
pub(crate) fn resource(registry: &Registry, info: &ResourceInfo) -> Option<Arc<Resource>> {
    let name = GroupVersionResource::new(&*info.group, &*info.version, &*info.resource);
    registry.resource(&name)
}

/// What is to be done on a resource: 404 where there is none of it in that scope (PATH-08), 405 where it
/// does not know the verb.
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
            let part = resource.subresource(name).ok_or_else(|| no_such_part(&resource, info))?;
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

/// Whether there is a route of the method: they are of one method, none of HEAD and OPTIONS but for proxies, and
/// watches that the path asks for are of GET. Custom resources go by the verb alone.
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

/// Whether it hands on requests of any method.
fn is_proxy(subresource: &Subresource) -> bool {
    subresource.behaviour == SubresourceBehaviour::Connect
        && subresource.verbs.contains(&Verb::Delete)
}

/// 404 for a subresource. Whoever serves custom resources says that the object is not there.
fn no_such_part(resource: &Resource, info: &ResourceInfo) -> Status {
    if resource.typed_items {
        Status::not_found(&resource.group_resource(), &info.name)
    } else {
        Status::no_such_path()
    }
}

/// The namespace that is meant, `""` for the cluster and for all.
fn scope(resource: &Resource, info: &ResourceInfo, verb: Option<Verb>) -> Result<Str, Status> {
    if resource.namespaced() {
        if !info.namespace.is_empty() {
            return Ok(info.namespace.as_str().into());
        }
        let lists = resource.verbs.contains(&Verb::List);
        return match verb {
            // What can only be created is nowhere but in namespaces.
            _ if !lists => Err(Status::no_such_path()),
            Some(Verb::List | Verb::Watch) => Ok(Str::default()),
            // Whoever serves custom resources does not know the path at all.
            _ if info.named || resource.typed_items => Err(Status::no_such_path()),
            _ => Err(Status::wrong_method()),
        };
    }
    // A namespace's own path names it twice.
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
    // What can only be created has no paths of single objects.
    let of_one =
        |verb: &Verb| matches!(verb, Verb::Get | Verb::Update | Verb::Patch | Verb::Delete);
    if info.named && subresource.is_none() && !resource.verbs.iter().any(of_one) {
        return Err(Status::no_such_path());
    }
    if verb == Some(Verb::Watch) && !resource.verbs.contains(&Verb::Watch) && info.watch_prefix {
        return Err(Status::no_such_path());
    }
    // A name in the path goes with the verbs on one object, and only with them.
    let needs_name = match verb {
        Some(Verb::Get | Verb::Update | Verb::Patch | Verb::Delete) => Some(true),
        // Custom resources are created at the path of an object, too, which says nothing.
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
        // Custom resources have one route for all; what lists has one that finds that it cannot watch.
        _ if resource.typed_items || verb == Some(Verb::Watch) && knows(&Verb::List) => {
            let verb = verb.map_or("", Verb::as_str);
            Err(Status::method_not_allowed(&resource.group_resource(), verb))
        }
        _ => Err(Status::wrong_method()),
    }
}

impl Found {
    /// Whether it is a subresource that behaves like this.
    pub(crate) fn is(&self, behaviour: &SubresourceBehaviour) -> bool {
        self.subresource.as_ref().is_some_and(|part| part.behaviour == *behaviour)
    }

    /// The encodings of its objects in bodies (MT-13).
    pub(crate) fn encodings(&self) -> Encodings {
        if self.target.resource.typed_items { Encodings::TEXT } else { Encodings::ALL }
    }

    /// Its route for a verb, where there is one: custom resources have none, and what connects takes
    /// everything, but for logs.
    pub(crate) fn route(&self, verb: Option<Verb>) -> Option<Route> {
        let named = |name: &str| self.subresource.as_ref().is_some_and(|part| part.name == name);
        match verb {
            _ if self.target.resource.typed_items => None,
            _ if self.connects() => named("log").then_some(Route::LOG),
            Some(Verb::List | Verb::Watch) => Some(Route::COLLECTION),
            _ => Some(Route::OBJECT),
        }
    }

    /// Whether it is a subresource that connects the client to something else.
    pub(crate) fn connects(&self) -> bool {
        self.is(&SubresourceBehaviour::Connect)
    }

    /// The forms that answers have. Only what can be listed or read has columns.
    pub(crate) fn forms(&self) -> Forms {
        let readable = |verb: &Verb| matches!(verb, Verb::List | Verb::Get);
        let part_has = self.subresource.as_ref().is_none_or(|part| part.printer.is_some());
        Forms::Objects { tables: part_has && self.target.resource.verbs.iter().any(readable) }
    }

    /// The collection that is meant: a name that a selector asks for stays the selector's.
    pub(crate) fn collection(&self) -> Target {
        Target { name: Str::default(), ..self.target.clone() }
    }
}
