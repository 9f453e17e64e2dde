//! The resources of extension API servers, as controllers of this server see them and ask for them.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Method, Request};
use http_body_util::Full;
use pintle_auth::User;
use pintle_controllers::{ExtensionRequest, ExtensionResource, ExtensionServers, Served};
use pintle_meta::{GroupVersionResource, Status};
use pintle_registry::request::DeleteOptions;
use pintle_value::{Map, Value, json};

use super::{Aggregation, ApiService};
use crate::discovery::ResourceDiscovery;
use crate::query::percent_encode;

/// As long as a client of this server waits at most.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How many objects a page has at most.
const PAGE_OBJECTS_MAX: usize = 250;
/// What answers are wanted as; a server that knows no lists of metadata gives the objects.
const ANSWER: HeaderValue = HeaderValue::from_static("application/json");
const METADATA: HeaderValue = HeaderValue::from_static(
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
);

impl ExtensionServers for Aggregation {
    fn served(&self) -> Served {
        let mut services: Vec<Arc<ApiService>> = self.services.current().all().cloned().collect();
        services.sort_by_key(|service| (service.group.clone(), Reverse(service.version_priority)));
        let mut served = Served::default();
        let mut seen = HashSet::new();
        for service in &services {
            let said = self.discovered.of(&service.name).filter(|said| said.is_current());
            let Some(said) = said else {
                served.silent.push(format!("{}/{}", service.group, service.version));
                continue;
            };
            for resource in &said.version.resources {
                if seen.insert((service.group.clone(), resource.resource.clone())) {
                    served.resources.push(extension_resource(service, resource));
                }
            }
        }
        served
    }

    fn ask<'a>(
        &'a self,
        user: &'a User,
        resource: &'a ExtensionResource,
        request: ExtensionRequest<'a>,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let of = &resource.resource;
            let service = self.services.current().of(&of.group, &of.version).cloned();
            let service = service.ok_or_else(Status::no_such_path)?;
            let unavailable = |why: String| {
                Status::service_unavailable(format!("error trying to reach service: {why}"))
            };
            let request = http_request(of, request).map_err(|why| unavailable(why.to_string()))?;
            let answer = self.exchange(&service, user, request, TIMEOUT).await;
            let (head, body) = answer.map_err(unavailable)?;
            let said = json::parse(&body);
            if head.status.is_success() {
                return said.map_err(|why| unavailable(why.to_string()));
            }
            let said = said.ok();
            let message = said.as_ref().and_then(|status| status.str_at(&["message"]));
            let code = head.status.as_u16();
            Err(Status::relayed(code, &of.group_resource(), "", message.unwrap_or_default()))
        })
    }
}

fn extension_resource(service: &ApiService, said: &ResourceDiscovery) -> ExtensionResource {
    let resource = said.resource.as_str();
    ExtensionResource {
        resource: GroupVersionResource::new(
            service.group.as_str(),
            service.version.as_str(),
            resource,
        ),
        kind: said.response_kind.kind.as_str().into(),
        namespaced: said.scope == "Namespaced",
        verbs: said.verbs.clone(),
    }
}

fn http_request(
    of: &GroupVersionResource,
    request: ExtensionRequest<'_>,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let path = |namespace: &str| match namespace {
        "" => format!("/apis/{}/{}/{}", of.group, of.version, of.resource),
        _ => {
            let namespace = percent_encode(namespace);
            format!("/apis/{}/{}/namespaces/{namespace}/{}", of.group, of.version, of.resource)
        }
    };
    let (method, path, accept, body) = match request {
        ExtensionRequest::List { namespace } => {
            let path = format!("{}?limit={PAGE_OBJECTS_MAX}", path(namespace));
            (Method::GET, path, METADATA, None)
        }
        ExtensionRequest::DeleteCollection { namespace, options } => {
            (Method::DELETE, path(namespace), ANSWER, Some(options))
        }
        ExtensionRequest::Delete { namespace, name, options } => {
            let path = format!("{}/{}", path(namespace), percent_encode(name));
            (Method::DELETE, path, ANSWER, Some(options))
        }
    };
    let body = body.map(|options| json::to_string(&delete_options(options)));
    let request = Request::builder().method(method).uri(path).header(ACCEPT, accept);
    request.header(CONTENT_TYPE, ANSWER).body(Full::from(body.unwrap_or_default()))
}

/// Options of a deletion as a request's body.
fn delete_options(options: &DeleteOptions) -> Value {
    let mut body = Map::new();
    body.insert("apiVersion", "v1");
    body.insert("kind", "DeleteOptions");
    if let Some(propagation) = options.propagation {
        body.insert("propagationPolicy", propagation.name());
    }
    let mut preconditions = Map::new();
    if let Some(uid) = &options.uid {
        preconditions.insert("uid", uid.clone());
    }
    if let Some(resource_version) = &options.resource_version {
        preconditions.insert("resourceVersion", resource_version.clone());
    }
    if !preconditions.is_empty() {
        body.insert("preconditions", preconditions);
    }
    body.into()
}
