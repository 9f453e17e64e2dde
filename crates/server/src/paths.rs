//! The paths that name no resource: discovery, OpenAPI, health, version, metrics.

use bytes::Bytes;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{Method, StatusCode};
use pintle_meta::Status;
use pintle_registry::request::Encoding;
use pintle_registry::{Registry, Resource, work};
use serde::Serialize;

use crate::body::Body;
use crate::console;
use crate::discovery::{Tagged, api_versions, type_name};
use crate::handlers::{self, Call};
use crate::health::{self, Health};
use crate::metrics::Live;
use crate::negotiation::{Encodings, Form, Forms, Negotiated, Route, media_type};
use crate::openapi::OpenApi;
use crate::request_info::SNAPSHOT;
use crate::respond::{Response, document, object, page};
use crate::token_issuer;
use crate::version;
use crate::zpages::{self, Page};

/// The media type parameters of aggregated discovery.
const AGGREGATED_PARAMETERS: &str = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The prefix of the debugging pages of priority and fairness.
const FAIRNESS_PAGES: &str = "/debug/api_priority_and_fairness/";

/// Serves a path. As upstream does, discovery, version and keys ignore slashes at the end of the
/// path, and most of them accept only GET. The other paths accept any method, unless their handlers
/// refuse it.
pub(crate) async fn handle(call: &Call<'_>) -> Result<Response, Status> {
    let path = call.info.path.as_str();
    let parts: Vec<&str> = path.trim_end_matches('/').split('/').skip(1).collect();
    let is_discovery = matches!(parts.first(), Some(&"api" | &"apis"));
    if path == "/metrics" || is_discovery && !call.api.has_documents() {
        work::ahead(usize::MAX).await;
    }
    match parts.as_slice() {
        ["version"] => version(call),
        [".well-known", "openid-configuration"] => open_id(call, OpenId::Configuration),
        ["openid", "v1", "jwks"] => open_id(call, OpenId::Keys),
        ["api"] => get_only(call).and_then(|()| discovery(call, Level::Core)),
        ["apis"] if path == "/apis" => discovery(call, Level::Groups),
        ["apis"] => group_list(call),
        ["api", version] => resources(call, "", version),
        ["apis", group] => group_document(call, group),
        ["apis", group, version] => resources(call, group, version),
        _ => at_one_path(call, path).await,
    }
}

/// Whether upstream has routes at the path or above it: then a 404 is a Status, otherwise plain
/// text. Custom resources have no routes.
pub(crate) fn is_routed(registry: &Registry, path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match parts.as_slice() {
        ["api" | "version", ..] => true,
        [".well-known", "openid-configuration", ..] | ["openid", "v1", "jwks", ..] => true,
        ["apis", group, ..] if !group.is_empty() => {
            let (_, resources) = registry.resources();
            resources.iter().any(|r| r.resource.group == *group && !r.typed_items)
        }
        _ => false,
    }
}

async fn at_one_path(call: &Call<'_>, path: &str) -> Result<Response, Status> {
    if call.api.settings.console
        && let Some(answer) = console::answer(path, call.head)
    {
        return answer;
    }
    match path {
        "/" | "/index.html" => root(call),
        "/metrics" => Ok(metrics(metrics_page(call))),
        SNAPSHOT => {
            get_only(call)?;
            handlers::snapshot::answer(call).await
        }
        "/metrics/slis" => Ok(metrics(call.api.metrics.slis())),
        _ if path.starts_with(FAIRNESS_PAGES) => {
            fairness_page(call).ok_or_else(Status::no_such_path)
        }
        _ if path.starts_with("/openapi/") => call.api.openapi.answer(call).await,
        _ => match (Page::at(path, call), health_check(call)) {
            (Some(page), _) => page.answer(call, &all_paths(call)),
            (None, answer) => answer.ok_or_else(Status::no_such_path),
        },
    }
}

/// A debugging page of priority and fairness (APF-08).
fn fairness_page(call: &Call<'_>) -> Option<Response> {
    let name = call.info.path.strip_prefix(FAIRNESS_PAGES)?;
    let has_details = !call.query.text("includeRequestDetails").is_empty();
    let text = call.api.fairness.as_ref()?.debugging_page(name, has_details)?;
    Some(page(200, text))
}

/// Returns 405 for any method other than GET, also for HEAD.
fn get_only(call: &Call<'_>) -> Result<(), Status> {
    if call.head.method == Method::GET { Ok(()) } else { Err(Status::wrong_method()) }
}

/// The two paths of aggregated discovery.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Core,
    Groups,
}

/// `/api` and `/apis`, aggregated or not.
fn discovery(call: &Call<'_>, level: Level) -> Result<Response, Status> {
    if level == Level::Core {
        call.preferences().routed(Route::OBJECT)?;
    }
    let negotiated = call.preferences().answer(Forms::Discovery, Encodings::ALL)?;
    let documents = call.api.documents();
    if negotiated.form != Form::GroupDiscovery {
        let (json, type_name) = match level {
            Level::Core => (api_versions(&call.api.settings.address), type_name::VERSIONS),
            Level::Groups => (documents.groups.clone(), type_name::GROUPS),
        };
        return Ok(object(200, json, type_name, negotiated));
    }
    let Tagged { json, etag } = match level {
        Level::Core => &documents.aggregated_core,
        Level::Groups => &documents.aggregated_groups,
    };
    let known = call.head.headers.get(IF_NONE_MATCH).is_some_and(|tag| tag == etag.as_str());
    let mut response = if known {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        let mut response = object(200, json.clone(), type_name::AGGREGATED, negotiated);
        let media_type = format!("{}{AGGREGATED_PARAMETERS}", media_type(negotiated.encoding));
        response.headers_mut().insert(CONTENT_TYPE, header(&media_type));
        response
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, header(etag));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    Ok(response)
}

/// `/apis/`, which is never aggregated.
fn group_list(call: &Call<'_>) -> Result<Response, Status> {
    let documents = call.api.documents();
    described(call, documents.groups.clone(), type_name::GROUPS)
}

fn group_document(call: &Call<'_>, group: &str) -> Result<Response, Status> {
    let documents = call.api.documents();
    let json = documents.group(group).ok_or_else(Status::no_such_path)?;
    described(call, json, type_name::GROUP)
}

fn resources(call: &Call<'_>, group: &str, version: &str) -> Result<Response, Status> {
    let documents = call.api.documents();
    let json = documents.version(group, version).ok_or_else(Status::no_such_path)?;
    get_only(call)?;
    if !is_custom(call, group, version) {
        call.preferences().routed(Route::OBJECT)?;
    }
    described(call, json, type_name::RESOURCES)
}

/// Whether a group version has custom resources, which have no routes.
fn is_custom(call: &Call<'_>, group: &str, version: &str) -> bool {
    let (_, resources) = call.api.registry.resources();
    let of_it = |r: &Resource| r.resource.group == group && r.resource.version == version;
    resources.iter().any(|resource| resource.typed_items && of_it(resource))
}

/// `/version`: JSON, always indented (OAS-05).
fn version(call: &Call<'_>) -> Result<Response, Status> {
    get_only(call)?;
    call.preferences().routed(Route::JSON)?;
    Ok(document(200, Body::full(version::json(call.api.settings.version)), INDENTED))
}

/// JSON, indented for every client.
const INDENTED: Negotiated =
    Negotiated { encoding: Encoding::Json, pretty: true, form: Form::Object };

/// `/`: the list of paths (OAS-06), in JSON whatever the client accepts.
fn root(call: &Call<'_>) -> Result<Response, Status> {
    #[derive(Serialize)]
    struct Paths {
        paths: Vec<String>,
    }
    let json = serde_json::to_vec(&Paths { paths: all_paths(call) }).map_err(Status::internal)?;
    Ok(document(200, Body::full(json), INDENTED))
}

/// The listed paths that always exist, besides those of discovery documents, [`OpenApi::paths`] and
/// health. The list is upstream's, so it lacks the path of snapshots, which is Pintle's own.
const OTHERS: [&str; 5] = ["/apis/", "/metrics", "/metrics/slis", "/openapi/v3/", "/version"];
/// The paths that exist if the token issuer is a URL.
const OPEN_ID: [&str; 2] = ["/.well-known/openid-configuration", "/openid/v1/jwks"];

fn all_paths(call: &Call<'_>) -> Vec<String> {
    let mut paths: Vec<String> = call.api.documents().paths().collect();
    let parts = health::Parts {
        kms_plugins: plugins(call).is_some(),
        encryption_reload: reloads_encryption(call),
    };
    paths.extend(health::paths(parts));
    paths.extend(OpenApi::paths().map(str::to_owned));
    paths.extend(OTHERS.map(str::to_owned));
    if call.api.open_id_configuration().is_some() {
        paths.extend(OPEN_ID.map(str::to_owned));
    }
    if call.api.settings.console {
        paths.push(console::PATH.to_owned());
    }
    let pages = zpages::PATHS.into_iter().filter(|path| Page::at(path, call).is_some());
    paths.extend(pages.map(str::to_owned));
    paths.sort_unstable();
    paths
}

fn metrics_page(call: &Call<'_>) -> String {
    let api = call.api;
    api.metrics.text(&Live {
        registry: &api.registry,
        tokens: &api.authentication.tokens,
        limits: &api.limits,
        traces: api.traces.as_ref().map(|traces| &**traces.measures()),
        fairness: api.fairness.as_deref(),
        snapshots: &api.snapshots,
        runs: &api.runs,
        version: api.settings.version,
    })
}

fn metrics(metrics: String) -> Response {
    let mut response = page(200, metrics);
    let content_type =
        HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// The health of the KMS plugins; `None` where it is not checked.
fn plugins(call: &Call<'_>) -> Option<Result<(), String>> {
    call.api.encryption.as_ref().and_then(|encryption| encryption.health())
}

/// Whether the configuration of encryption is reloaded.
fn reloads_encryption(call: &Call<'_>) -> bool {
    call.api.encryption.as_ref().is_some_and(|encryption| encryption.is_reloaded)
}

fn health_check(call: &Call<'_>) -> Option<Response> {
    let (endpoint, check) = health::endpoint(&call.info.path)?;
    let store = || call.api.registry.check().map_err(|error| error.to_string());
    let store_ready = || call.api.registry.ready().map_err(|error| error.to_string());
    let health = Health {
        store: &store,
        store_ready: &store_ready,
        kms: plugins(call),
        reloads_encryption: reloads_encryption(call),
        lifecycle: &call.api.lifecycle,
        livez_grace_period: call.api.settings.livez_grace_period,
        observe: &|endpoint, check, passed| call.api.metrics.checked(endpoint, check, passed),
    };
    Some(health::answer(&health, endpoint, check, call.query))
}

/// The documents by which other systems verify service account tokens (TOK-01).
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenId {
    Configuration,
    Keys,
}

fn open_id(call: &Call<'_>, document: OpenId) -> Result<Response, Status> {
    const CACHEABLE: HeaderValue = HeaderValue::from_static("public, max-age=3600");
    // If the issuer is not a URL, neither document exists.
    let configuration = call.api.open_id_configuration().ok_or_else(Status::no_such_path)?;
    get_only(call)?;
    let keys = || token_issuer::key_set(call.api.authentication.tokens.accounts.keys());
    let (route, json, media_type) = match document {
        OpenId::Configuration => (Route::JSON, configuration, "application/json"),
        OpenId::Keys => (Route::KEYS, keys(), "application/jwk-set+json"),
    };
    call.preferences().routed(route)?;
    let mut response = Response::new(Body::full(json));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CACHE_CONTROL, CACHEABLE);
    Ok(response)
}

/// Sends a discovery document, which has a Protobuf message (DISC-10).
fn described(call: &Call<'_>, json: Bytes, type_name: &str) -> Result<Response, Status> {
    let negotiated = call.preferences().answer(Forms::Plain, Encodings::ALL)?;
    Ok(object(200, json, type_name, negotiated))
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("media types and hashes are plain ASCII")
}
