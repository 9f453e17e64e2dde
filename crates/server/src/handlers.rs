//! What is done for each verb on a resource: options in, a call on the registry, an answer out.
//!
//! Nothing here knows a particular kind, except [`review`] and [`component`], which answer questions
//! about this server itself.

mod component;
mod delete;
mod read;
mod review;
mod watch;
mod write;

use std::sync::Arc;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::request::Parts;
use pintle_auth::User;
use pintle_meta::{GroupVersionResource, Status};
use pintle_registry::request::{Context, Now, Target};
use pintle_registry::{Resource, Subresource, SubresourceBehaviour, Verb};
use pintle_value::Str;

use crate::api::Api;
use crate::negotiation::{Form, Forms, Negotiated, Preferences};
use crate::options::{IncludeObject, table_options};
use crate::query::Query;
use crate::request_info::{RequestInfo, ResourceInfo};
use crate::respond::{Rendering, Response, add_warnings};

/// A request that may be done.
pub(crate) struct Call<'a> {
    pub(crate) api: &'a Arc<Api>,
    pub(crate) head: &'a Parts,
    pub(crate) query: &'a Query,
    pub(crate) info: &'a RequestInfo,
    pub(crate) user: &'a User,
    pub(crate) now: Now,
}

/// What a request is about, looked up.
pub(crate) struct Found {
    target: Target,
    /// The subresource, where one is named.
    subresource: Option<Subresource>,
}

/// Whether the registry knows what a path names, so that metrics may name it.
pub(crate) fn is_served(api: &Api, info: &ResourceInfo) -> bool {
    let resource = api.registry.resource(&name(info));
    let subresource = info.subresource.as_str();
    resource.is_some_and(|r| subresource.is_empty() || r.subresource(subresource).is_some())
}

fn name(info: &ResourceInfo) -> GroupVersionResource {
    GroupVersionResource::new(&*info.group, &*info.version, &*info.resource)
}

/// Looks up the resource that a path names: 404 where there is none of it in that scope (PATH-08), 405
/// where it does not know the verb.
pub(crate) fn find(api: &Api, info: &ResourceInfo, verb: &str) -> Result<Found, Status> {
    let resource = api.registry.resource(&name(info)).ok_or_else(Status::no_such_path)?;
    let namespace = scope(&resource, info, verb)?;
    let subresource = match info.subresource.as_str() {
        "" => None,
        name => Some(resource.subresource(name).ok_or_else(Status::no_such_path)?.clone()),
    };
    check_verb(&resource, subresource.as_ref(), info, verb)?;
    let target = Target {
        namespace,
        name: info.name.as_str().into(),
        subresource: info.subresource.as_str().into(),
        resource,
    };
    Ok(Found { target, subresource })
}

/// The namespace that is meant, `""` for the cluster and for all.
fn scope(resource: &Resource, info: &ResourceInfo, verb: &str) -> Result<Str, Status> {
    if resource.namespaced() {
        if !info.namespace.is_empty() {
            return Ok(info.namespace.as_str().into());
        }
        return match verb {
            "list" | "watch" => Ok(Str::default()),
            _ if info.named => Err(Status::no_such_path()),
            _ => Err(Status::method_not_allowed(&resource.group_resource(), verb)),
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
    verb: &str,
) -> Result<(), Status> {
    let unsupported = || Status::method_not_allowed(&resource.group_resource(), verb);
    if let Some(subresource) = subresource {
        if subresource.behaviour == SubresourceBehaviour::Unserved {
            let what = format!("{}/{}", resource.group_resource(), subresource.name);
            return Err(Status::not_implemented(&what));
        }
        if info.has_subpath {
            return Err(Status::no_such_path());
        }
    }
    // A name in the path goes with the verbs on one object, and only with them.
    let needs_name = match verb {
        "get" | "update" | "patch" | "delete" => Some(true),
        "create" => Some(subresource.is_some()),
        "list" | "deletecollection" => Some(false),
        _ => None,
    };
    if needs_name.is_some_and(|needed| needed != info.named) {
        return Err(unsupported());
    }
    let verbs = subresource.map_or(&resource.verbs, |subresource| &subresource.verbs);
    if verbs.iter().any(|known: &Verb| known.as_str() == verb) {
        Ok(())
    } else {
        Err(unsupported())
    }
}

/// Does what is asked.
pub(crate) async fn handle(call: &Call<'_>, found: Found, body: Bytes) -> Result<Response, Status> {
    let deprecation = found.target.resource.deprecation.clone();
    if deprecation.is_some() {
        let (resource, subresource) = (&found.target.resource.resource, &found.target.subresource);
        call.api.metrics.deprecated(resource, subresource); // DEP-14
    }
    let mut response = match call.info.verb {
        _ if found.target.resource.storage.is_none() => virtual_resource(call, &found, body).await,
        "get" => read::get(call, &found).await,
        "list" => read::list(call, &found).await,
        "watch" => watch::watch(call, &found).await,
        "create" => write::create(call, &found, body).await,
        "update" => write::update(call, &found, body).await,
        "patch" => write::patch(call, &found, body).await,
        "delete" => delete::delete(call, &found, body).await,
        "deletecollection" => delete::delete_collection(call, &found, body).await,
        verb => Err(Status::method_not_allowed(&found.target.resource.group_resource(), verb)),
    }?;
    add_warnings(response.headers_mut(), deprecation.iter().map(Str::as_str)); // DEP-12
    Ok(response)
}

/// Resources that are answered and not kept.
async fn virtual_resource(call: &Call<'_>, found: &Found, body: Bytes) -> Result<Response, Status> {
    match call.info.verb {
        "get" | "list" => component::read(call, found),
        _ => review::create(call, found, body),
    }
}

impl Call<'_> {
    fn preferences(&self) -> Preferences<'_> {
        Preferences::new(&self.head.headers, self.query)
    }

    /// The answer's encoding and form, or 406.
    fn negotiate(&self, found: &Found) -> Result<(Negotiated, Rendering), Status> {
        let negotiated = self.preferences().answer(found.forms())?;
        Ok((negotiated, self.rendering(found, negotiated)?))
    }

    fn rendering(&self, found: &Found, negotiated: Negotiated) -> Result<Rendering, Status> {
        let include = match negotiated.form {
            Form::Table(_) => table_options(self.query)?,
            _ => IncludeObject::default(),
        };
        Ok(Rendering {
            resource: found.target.resource.clone(),
            form: negotiated.form,
            include,
            now: self.now.unix_seconds(),
        })
    }

    /// Who asks, and when.
    fn context(&self) -> Context {
        let agent = self.head.headers.get(USER_AGENT).map_or(&b""[..], |value| value.as_bytes());
        Context {
            now: self.now,
            user: self.user.name.as_str().into(),
            user_agent: String::from_utf8_lossy(agent).into(),
        }
    }
}

impl Found {
    /// The forms that answers have. Only what can be listed or read has columns.
    fn forms(&self) -> Forms {
        let readable = |verb: &Verb| matches!(verb, Verb::List | Verb::Get);
        Forms::Objects { tables: self.target.resource.verbs.iter().any(readable) }
    }

    /// The collection that is meant: a name that a selector asks for stays the selector's.
    fn collection(&self) -> Target {
        Target { name: Str::default(), ..self.target.clone() }
    }
}
