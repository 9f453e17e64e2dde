//! The route of a request for metrics, with upstream's labels.

use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap};
use pintle_registry::Verb;

use crate::query::Query;
use crate::request_info::{CONNECTIONS, RequestInfo, ResourceInfo};

/// A patch counts as an apply only if its media type is this one, without parameters.
const APPLY: &str = "application/apply-patch+yaml";

/// The key of a route within its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key<'a> {
    pub(crate) component: &'static str,
    pub(crate) subresource: &'a str,
    pub(crate) verb: VerbLabel,
    pub(crate) scope: Scope,
    pub(crate) dry_run: DryRun,
    /// Whether response sizes are observed: of gets and lists, also with the parameter `watch`, but
    /// not of the deprecated paths with the prefix `watch`.
    pub(crate) reads: bool,
}

/// The labels of a route.
pub(crate) struct Labels {
    pub(super) component: &'static str,
    pub(super) subresource: Box<str>,
    pub(super) verb: VerbLabel,
    pub(super) scope: Scope,
    pub(super) dry_run: DryRun,
    reads: bool,
}

/// The verb label: mostly the method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VerbLabel {
    Get,
    List,
    Watch,
    Post,
    Put,
    Patch,
    Apply,
    Delete,
    Connect,
    Other,
}

/// The scope label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    None,
    Resource,
    Namespace,
    Cluster,
}

/// The dry-run label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DryRun {
    No,
    All,
    Invalid,
}

/// The verbs of requests that have a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteVerb {
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl<'a> Key<'a> {
    /// The key of a request for a resource.
    pub(crate) fn of(
        info: &'a RequestInfo,
        resource: &'a ResourceInfo,
        method: &Method,
        headers: &HeaderMap,
        query: &Query,
    ) -> Self {
        let scope = Scope::of(info, resource, resource.named);
        let reads = matches!(*method, Method::GET | Method::HEAD);
        let verb = match *method {
            _ if CONNECTIONS.contains(&&*resource.subresource) => VerbLabel::Connect,
            _ if reads && watches(resource, query) => VerbLabel::Watch,
            _ if reads && matches!(scope, Scope::Namespace | Scope::Cluster) => VerbLabel::List,
            _ if reads => VerbLabel::Get,
            Method::POST => VerbLabel::Post,
            Method::PUT => VerbLabel::Put,
            Method::DELETE => VerbLabel::Delete,
            Method::PATCH
                if headers.get(CONTENT_TYPE).is_some_and(|media_type| media_type == APPLY) =>
            {
                VerbLabel::Apply
            }
            Method::PATCH => VerbLabel::Patch,
            _ => VerbLabel::Other,
        };
        Self {
            component: "apiserver",
            subresource: &resource.subresource,
            verb,
            scope,
            dry_run: DryRun::of(query),
            reads: reads && verb != VerbLabel::Connect && !resource.watch_prefix,
        }
    }

    /// The key of an open watch or connection. A watch that selects one name has the scope
    /// `resource`.
    pub(crate) fn while_open(self, info: &RequestInfo, resource: &ResourceInfo) -> Self {
        let scope = Scope::of(info, resource, !resource.name.is_empty());
        Self { scope, dry_run: DryRun::No, ..self }
    }

    /// The key of a path that names no resource.
    pub(crate) const fn path(component: &'static str, path: &'a str) -> Self {
        Self {
            component,
            subresource: path,
            verb: VerbLabel::Get,
            scope: Scope::None,
            dry_run: DryRun::No,
            reads: true,
        }
    }

    /// The key of routes above the limit.
    pub(super) const fn overflow_key(key: &Self) -> Key<'static> {
        Key {
            component: key.component,
            subresource: "",
            verb: key.verb,
            scope: key.scope,
            dry_run: key.dry_run,
            reads: key.reads,
        }
    }

    /// Whether the request counts for the service level indicator.
    pub(super) fn has_sli(&self) -> bool {
        self.dry_run == DryRun::No && self.verb != VerbLabel::Watch
    }
}

/// Whether a read counts as a watch (upstream: `getVerbIfWatch`).
fn watches(resource: &ResourceInfo, query: &Query) -> bool {
    resource.watch_prefix
        || query
            .all("watch")
            .next()
            .is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
}

impl Labels {
    pub(super) fn of(key: &Key<'_>) -> Self {
        let Key { component, subresource, verb, scope, dry_run, reads } = *key;
        Self { component, subresource: subresource.into(), verb, scope, dry_run, reads }
    }

    pub(super) fn are(&self, key: &Key<'_>) -> bool {
        let Self { component, subresource, verb, scope, dry_run, reads } = self;
        let mine = Key {
            component,
            subresource,
            verb: *verb,
            scope: *scope,
            dry_run: *dry_run,
            reads: *reads,
        };
        mine == *key
    }
}

impl VerbLabel {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::List => "LIST",
            Self::Watch => "WATCH",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Apply => "APPLY",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
            Self::Other => "other",
        }
    }
}

impl Scope {
    fn of(info: &RequestInfo, resource: &ResourceInfo, is_of_one: bool) -> Self {
        if is_of_one || info.verb.is(Verb::Create) {
            Self::Resource
        } else if !resource.namespace.is_empty() {
            Self::Namespace
        } else {
            Self::Cluster
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Resource => "resource",
            Self::Namespace => "namespace",
            Self::Cluster => "cluster",
        }
    }
}

impl DryRun {
    fn of(query: &Query) -> Self {
        if query.get("dryRun").is_none() {
            Self::No
        } else if query.all("dryRun").all(|value| value == "All") {
            Self::All
        } else {
            Self::Invalid
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::No => "",
            Self::All => "All",
            Self::Invalid => "invalid",
        }
    }
}

impl WriteVerb {
    pub(super) const ALL: [Self; 5] =
        [Self::Create, Self::Update, Self::Patch, Self::Delete, Self::DeleteCollection];

    /// The write verb, if requests with it have a body.
    pub(crate) fn of(verb: Verb) -> Option<Self> {
        Some(match verb {
            Verb::Create => Self::Create,
            Verb::Update => Self::Update,
            Verb::Patch => Self::Patch,
            Verb::Delete => Self::Delete,
            Verb::DeleteCollection => Self::DeleteCollection,
            Verb::Get | Verb::List | Verb::Watch => return None,
        })
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "delete_collection",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `VERB scope subresource dry run`
    fn check(method: &str, url: &str, content_type: &str, expected: &str) {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let (method, query) = (Method::from_bytes(method.as_bytes()).unwrap(), Query::parse(query));
        let info = RequestInfo::parse(&method, path, &query).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
        let resource = info.resource.as_ref().unwrap();
        let key = Key::of(&info, resource, &method, &headers, &query);
        let found = [key.verb.name(), key.scope.name(), key.subresource, key.dry_run.name()];
        assert_eq!(found.join(" ").trim_end(), expected, "{method} {url}");
    }

    #[test]
    fn requests_are_labelled_like_upstream() {
        // MET-02
        let json = "application/json";
        for (method, url, expected) in [
            ("GET", "/apis/apps/v1/namespaces/t/deployments?limit=5", "LIST namespace"),
            ("GET", "/apis/apps/v1/deployments?fieldSelector=metadata.name%3Dx", "LIST cluster"),
            ("HEAD", "/api/v1/namespaces/t/pods/p", "GET resource"),
            ("PUT", "/api/v1/namespaces/t/pods/p/status", "PUT resource status"),
            ("GET", "/api/v1/namespaces/t/pods/p/log", "CONNECT resource log"),
            ("POST", "/api/v1/namespaces/t/services/s/proxy/x", "CONNECT resource proxy"),
            ("POST", "/api/v1/namespaces/t/pods", "POST resource"),
            ("POST", "/api/v1/namespaces/t/pods?dryRun=All", "POST resource  All"),
            ("POST", "/api/v1/namespaces/t/pods?dryRun=x", "POST resource  invalid"),
            ("DELETE", "/api/v1/namespaces/t/pods", "DELETE namespace"),
            ("GET", "/api/v1/pods?watch=1", "WATCH cluster"),
            ("GET", "/api/v1/pods?watch=False", "LIST cluster"),
            ("GET", "/api/v1/namespaces/t/pods/p?watch=1", "WATCH resource"),
            ("GET", "/api/v1/watch/namespaces/t/pods/p", "WATCH resource"),
            ("BREW", "/api/v1/namespaces/t/pods/p", "other resource"),
        ] {
            check(method, url, json, expected);
        }
        let url = "/api/v1/namespaces/t/pods/p";
        check("PATCH", url, APPLY, "APPLY resource");
        check("PATCH", url, "application/apply-patch+yaml; charset=utf-8", "PATCH resource");
        check("PATCH", url, "application/merge-patch+json", "PATCH resource");
    }
}
