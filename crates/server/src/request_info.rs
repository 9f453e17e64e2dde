//! The request info: the verb, resource, subresource, namespace and name that a method, a path and
//! a query name.
//!
//! Parsed once for each request, without I/O. All later steps (authorization, limits, metrics,
//! dispatch) read the request info and never the path of the URL. The rules are upstream's
//! `RequestInfoFactory`.

mod verb;

use http::Method;
use pintle_auth::{Objects, Subject};
use pintle_meta::{fields, labels};
use pintle_registry::Verb;

use crate::query::{Query, percent_decode};
pub(crate) use verb::RequestVerb;

/// The verb and the path of a request, and the parts of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestInfo {
    pub(crate) verb: RequestVerb,
    /// The decoded path.
    pub(crate) path: String,
    /// The parts of the path, if it names a resource.
    pub(crate) resource: Option<ResourceInfo>,
}

/// The parts of a path that names a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourceInfo {
    /// `""` for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    /// `""` for cluster-scoped resources and for all namespaces.
    pub(crate) namespace: String,
    /// Whether the path has an empty namespace: `namespaces//pods`.
    pub(crate) unnamed_namespace: bool,
    pub(crate) resource: String,
    /// `""` for a collection. A `fieldSelector` of `metadata.name` sets it, too, for authorization.
    pub(crate) name: String,
    pub(crate) subresource: String,
    /// The path behind the subresource, with its slashes (proxies). A trailing slash is part of it.
    pub(crate) subpath: String,
    /// Whether the path has the name, so that the request is for one object and not for a
    /// selection.
    pub(crate) named: bool,
    /// The requirements of the field selector, for authorization. Empty for one object, for a path
    /// with the prefix `watch`, and for a selector that cannot be parsed, which the handler
    /// refuses.
    pub(crate) fields: fields::Selector,
    /// The requirements of the label selector, for authorization; empty in the same cases.
    pub(crate) labels: Vec<labels::Requirement>,
    /// Whether the path has the deprecated prefix `watch` (OAS-12).
    pub(crate) watch_prefix: bool,
}

/// The path has an invalid percent-encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidPath;

/// The subresources of namespaces; any other part behind a namespace's name is a resource in it.
const NAMESPACE_SUBRESOURCES: &[&str] = &["status", "finalize"];

/// The subresources that connect a client to a backend (upstream: `validConnectRequests` and the
/// long-running subresources).
pub(crate) const CONNECTIONS: &[&str] = &["log", "exec", "portforward", "attach", "proxy"];

/// The path of a snapshot of all objects, which only Pintle has.
pub(crate) const SNAPSHOT: &str = "/pintle/v1/snapshot";

impl RequestInfo {
    /// Parses method, path and query.
    pub(crate) fn parse(method: &Method, path: &str, query: &Query) -> Result<Self, InvalidPath> {
        let path = percent_decode(path).ok_or(InvalidPath)?.into_owned();
        let Some(mut resource) = ResourceInfo::parse(&path) else {
            return Ok(Self { verb: RequestVerb::of_path(method), path, resource: None });
        };
        let verb = resource_verb(method, &mut resource, query);
        let selects = matches!(verb, Some(Verb::List | Verb::Watch | Verb::DeleteCollection));
        if selects && !resource.watch_prefix {
            let selector = fields::Selector::parse(query.text("fieldSelector"));
            resource.fields = selector.unwrap_or_default(); // the handler refuses an invalid one
            let selector = labels::Selector::parse(query.text("labelSelector"));
            resource.labels = selector.map_or_else(|_| Vec::new(), |s| s.requirements().to_vec());
        }
        let verb = verb.map_or(RequestVerb::None, RequestVerb::Resource);
        Ok(Self { verb, path, resource: Some(resource) })
    }

    /// The subject of authorization.
    pub(crate) fn subject(&self) -> Subject<'_> {
        match &self.resource {
            None => Subject::Path(&self.path),
            Some(info) => Subject::Resource(Objects {
                group: &info.group,
                resource: &info.resource,
                subresource: &info.subresource,
                namespace: &info.namespace,
                name: &info.name,
                version: &info.version,
                fields: info.fields.requirements(),
                labels: &info.labels,
            }),
        }
    }

    /// False for a path that no route matches, because it has two slashes at its beginning or after
    /// `/apis`. Routes match the path as it is; authorization trims slashes, as upstream does.
    pub(crate) fn is_routable(&self) -> bool {
        !self.path.starts_with("//") && !self.path.starts_with("/apis//")
    }

    /// Whether the response lasts as long as the client or the backend wants it to, or has a
    /// deadline of its own, as a snapshot has.
    pub(crate) fn long_running(&self) -> bool {
        self.verb.is(Verb::Watch) || self.connects() || self.path == SNAPSHOT
    }

    /// Whether the subresource connects the client to a backend.
    pub(crate) fn connects(&self) -> bool {
        let connects = |info: &ResourceInfo| CONNECTIONS.contains(&info.subresource.as_str());
        self.resource.as_ref().is_some_and(connects)
    }

    /// Whether the request changes nothing.
    pub(crate) fn read_only(&self) -> bool {
        self.verb.is_read_only()
    }
}

impl ResourceInfo {
    /// Splits `/api/v1/…` and `/apis/G/V/…`; `None` for other paths, discovery's among them.
    fn parse(path: &str) -> Option<Self> {
        let mut parts = path.trim_matches('/').split('/').peekable();
        let group = match parts.next()? {
            "api" => "",
            "apis" => parts.next()?,
            _ => return None,
        };
        let version = parts.next()?;
        let mut info =
            Self { group: group.to_owned(), version: version.to_owned(), ..Self::default() };
        info.watch_prefix = parts.next_if_eq(&"watch").is_some();
        let rest: Vec<&str> = parts.collect();
        let mut rest = rest.as_slice();
        if let ["namespaces", namespace, after @ ..] = rest {
            (*namespace).clone_into(&mut info.namespace);
            if after.first().is_some_and(|part| !NAMESPACE_SUBRESOURCES.contains(part)) {
                rest = after;
                info.unnamed_namespace = namespace.is_empty();
            }
        }
        (*rest.first()?).clone_into(&mut info.resource);
        info.name = rest.get(1).map_or_else(String::new, |name| (*name).to_owned());
        info.subresource = rest.get(2).map_or_else(String::new, |part| (*part).to_owned());
        info.subpath = subpath(rest.get(3..).unwrap_or_default(), path.ends_with('/'));
        info.named = !info.name.is_empty();
        Some(info)
    }
}

/// The path behind a subresource (upstream: `getRequestOptions`).
fn subpath(parts: &[&str], ends_with_slash: bool) -> String {
    let mut path = parts.join("/");
    if !path.is_empty() && !path.starts_with('/') {
        path.insert(0, '/');
    }
    if ends_with_slash && !path.ends_with('/') {
        path.push('/');
    }
    path
}

/// The verb on a resource, if the method has one. A field selector that selects one name sets
/// `info.name`.
fn resource_verb(method: &Method, info: &mut ResourceInfo, query: &Query) -> Option<Verb> {
    if info.watch_prefix {
        return Some(Verb::Watch);
    }
    Some(match *method {
        Method::GET | Method::HEAD if info.named => Verb::Get,
        Method::GET | Method::HEAD => {
            if let Some(name) = selected_name(query.text("fieldSelector")) {
                info.name = name;
            }
            if flag(query.get("watch")) { Verb::Watch } else { Verb::List }
        }
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if info.named => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ => return None,
    })
}

/// Parses a boolean parameter: an absent one, `false` (in any case) and `0` are false, and any
/// other value is true, as in upstream's conversion.
pub(crate) fn flag(value: Option<&str>) -> bool {
    value.is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
}

/// Returns the name, if the field selector selects exactly one. A selector that cannot be parsed
/// selects none.
fn selected_name(selector: &str) -> Option<String> {
    let selector = fields::Selector::parse(selector).ok()?;
    let name = selector.exact_match("metadata.name")?;
    let is_segment = !matches!(name, "" | "." | "..") && !name.contains(['/', '%']);
    is_segment.then(|| name.to_owned())
}

#[cfg(test)]
mod tests;
