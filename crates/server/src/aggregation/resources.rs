//! The client of extension API servers' resources for this server's controllers.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use pintle_auth::User;
use pintle_controllers::{ExtensionRequest, ExtensionResource, ExtensionServers, Served};
use pintle_meta::{GroupVersionResource, Status};
use pintle_registry::request::DeleteOptions;
use pintle_value::{Map, Value, json};
use tokio::sync::watch;

use super::{Aggregation, ApiService};
use crate::discovery::ResourceDiscovery;
use crate::query::percent_encode;

/// The timeout of a request: the default of `--request-timeout`.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The page size of lists.
const PAGE_OBJECTS_MAX: usize = 250;
/// The media type of request bodies, and of the responses to deletions.
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// A server that cannot send lists of metadata sends whole objects.
const METADATA_LIST: HeaderValue = HeaderValue::from_static(
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
);
const METADATA: HeaderValue = HeaderValue::from_static(
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
);
const MERGE_PATCH: HeaderValue = HeaderValue::from_static("application/merge-patch+json");
/// The timeout of a watch.
const WATCH_TIMEOUT: Duration = Duration::from_secs(5 * 60);

impl ExtensionServers for Aggregation {
    fn served(&self) -> Served {
        let mut services: Vec<Arc<ApiService>> = self.services.current().all().cloned().collect();
        services.sort_by_key(|service| (service.group.clone(), Reverse(service.version_priority)));
        let mut served = Served::default();
        let mut seen = HashSet::new();
        for service in &services {
            let discovery =
                self.discovered.of(&service.name).filter(|discovery| discovery.is_current());
            let Some(discovery) = discovery else {
                served.silent.push(format!("{}/{}", service.group, service.version));
                continue;
            };
            for resource in &discovery.version.resources {
                let is_preferred = seen.insert((service.group.clone(), resource.resource.clone()));
                served.resources.push(extension_resource(service, resource, is_preferred));
            }
        }
        served
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.discovered.changes()
    }

    fn ask<'a>(
        &'a self,
        user: &'a User,
        resource: &'a ExtensionResource,
        request: ExtensionRequest<'a>,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let of = &resource.resource;
            let service = self.service_of(of)?;
            let name = name_in(&request);
            let request = http_request(of, request).map_err(|why| unavailable(why.to_string()))?;
            let answer = self.exchange(&service, user, request, TIMEOUT).await;
            let (head, body) = answer.map_err(unavailable)?;
            let parsed = json::parse(&body);
            if head.status.is_success() {
                return parsed.map_err(|why| unavailable(why.to_string()));
            }
            let status = parsed.ok();
            if head.status == StatusCode::NOT_FOUND && !is_about(status.as_ref(), name) {
                return Err(unavailable("it responded 404, but not about the object".to_owned()));
            }
            let message = status.as_ref().and_then(|status| status.str_at(&["message"]));
            let code = head.status.as_u16();
            Err(Status::relayed(code, &of.group_resource(), "", message.unwrap_or_default()))
        })
    }

    fn watch<'a>(
        &'a self,
        user: &'a User,
        resource: &'a ExtensionResource,
        resource_version: &'a str,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Value>, Status>> {
        Box::pin(async move {
            let of = &resource.resource;
            let service = self.service_of(of)?;
            let query = format!(
                "watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}",
                WATCH_TIMEOUT.as_secs(),
                percent_encode(resource_version)
            );
            let request = Request::get(format!("{}?{query}", path(of, "", "")));
            let request = request.header(ACCEPT, METADATA).body(Full::default());
            let request = request.map_err(|why| unavailable(why.to_string()))?;
            let asked = self.exchange_begun(&service, user, request);
            let late = |_| Err("request timed out".to_owned());
            let answer = tokio::time::timeout(TIMEOUT, asked).await.unwrap_or_else(late);
            let answer = answer.map_err(unavailable)?;
            let code = answer.status().as_u16();
            if code != 200 {
                return Err(Status::relayed(
                    code,
                    &of.group_resource(),
                    "",
                    "it cannot be watched",
                ));
            }
            Ok(super::events::events(answer.into_body(), WATCH_TIMEOUT + TIMEOUT))
        })
    }
}

impl Aggregation {
    /// The APIService of a resource.
    fn service_of(&self, of: &GroupVersionResource) -> Result<Arc<ApiService>, Status> {
        let service = self.services.current().of(&of.group, &of.version).cloned();
        service.ok_or_else(|| unavailable("it has no API service any more".to_owned()))
    }
}

fn unavailable(why: String) -> Status {
    Status::service_unavailable(format!("error trying to reach service: {why}"))
}

/// The name of the request's object; `""` for a request to a collection.
fn name_in<'a>(request: &ExtensionRequest<'a>) -> &'a str {
    match request {
        ExtensionRequest::List { .. } | ExtensionRequest::DeleteCollection { .. } => "",
        ExtensionRequest::Get { name, .. }
        | ExtensionRequest::Patch { name, .. }
        | ExtensionRequest::Delete { name, .. } => name,
    }
}

/// Whether an error is about the requested object. Otherwise it may come from a proxy or from a
/// server that does not have the resource at present, and says nothing about the object.
fn is_about(status: Option<&Value>, name: &str) -> bool {
    let named = status.and_then(|status| status.str_at(&["details", "name"]));
    name.is_empty() || named == Some(name)
}

fn extension_resource(
    service: &ApiService,
    discovery: &ResourceDiscovery,
    is_preferred: bool,
) -> ExtensionResource {
    let resource = discovery.resource.as_str();
    ExtensionResource {
        resource: GroupVersionResource::new(
            service.group.as_str(),
            service.version.as_str(),
            resource,
        ),
        kind: discovery.response_kind.kind.as_str().into(),
        namespaced: discovery.scope == "Namespaced",
        verbs: discovery.verbs.clone(),
        is_preferred,
    }
}

fn path(of: &GroupVersionResource, namespace: &str, name: &str) -> String {
    let mut path = format!("/apis/{}/{}", of.group, of.version);
    if !namespace.is_empty() {
        path.push_str("/namespaces/");
        path.push_str(&percent_encode(namespace));
    }
    path.push('/');
    path.push_str(&of.resource);
    if !name.is_empty() {
        path.push('/');
        path.push_str(&percent_encode(name));
    }
    path
}

fn http_request(
    of: &GroupVersionResource,
    request: ExtensionRequest<'_>,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let (method, path, accept, body) = match request {
        ExtensionRequest::List { namespace, continue_token } => {
            let mut path = format!("{}?limit={PAGE_OBJECTS_MAX}", path(of, namespace, ""));
            if !continue_token.is_empty() {
                path.push_str("&continue=");
                path.push_str(&percent_encode(continue_token));
            }
            (Method::GET, path, METADATA_LIST, None)
        }
        ExtensionRequest::Get { namespace, name } => {
            (Method::GET, path(of, namespace, name), METADATA, None)
        }
        ExtensionRequest::Patch { namespace, name, patch } => {
            let body = (MERGE_PATCH, json::to_string(patch));
            (Method::PATCH, path(of, namespace, name), METADATA, Some(body))
        }
        ExtensionRequest::DeleteCollection { namespace, options } => {
            let body = (JSON, json::to_string(&delete_options(options)));
            (Method::DELETE, path(of, namespace, ""), JSON, Some(body))
        }
        ExtensionRequest::Delete { namespace, name, options } => {
            let body = (JSON, json::to_string(&delete_options(options)));
            (Method::DELETE, path(of, namespace, name), JSON, Some(body))
        }
    };
    let (content_type, body) = body.unwrap_or((JSON, String::new()));
    let request = Request::builder().method(method).uri(path).header(ACCEPT, accept);
    request.header(CONTENT_TYPE, content_type).body(Full::from(body))
}

/// Encodes DeleteOptions as a request body.
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
