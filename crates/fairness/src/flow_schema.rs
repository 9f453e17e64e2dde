//! Flow schemas assign requests to priority levels and flows.

use pintle_auth::{Attributes, Objects, Subject as Requested, User};
use sha2::{Digest, Sha256};

/// The name of the schema and the level whose requests are never delayed.
pub const EXEMPT: &str = "exempt";
/// The name of the schema and the level for requests that match no other schema.
pub const CATCH_ALL: &str = "catch-all";

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const ALL: &str = "*";

/// The spec of a flow schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowSchema {
    /// The name.
    pub name: String,
    /// Sent to clients; empty for a mandatory schema that is not stored.
    pub uid: String,
    /// The priority level of matching requests.
    pub priority_level: String,
    /// Of several matching schemas, the one with the lowest number applies.
    pub matching_precedence: i64,
    /// How requests are divided into flows; if absent, they are one flow.
    pub distinguisher: Option<Distinguisher>,
    /// A request matches if one of these matches.
    pub rules: Vec<PolicyRule>,
}

/// The property by which a schema's flows differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distinguisher {
    /// Each user has a flow.
    ByUser,
    /// Each namespace has a flow.
    ByNamespace,
}

/// Matches requests by user and target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyRule {
    /// The user is one of these …
    pub subjects: Vec<Subject>,
    /// … and the resource matches one of these …
    pub resource_rules: Vec<ResourceRule>,
    /// … or the path matches one of these.
    pub non_resource_rules: Vec<NonResourceRule>,
}

/// Matches users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A user name, or `*`.
    User(String),
    /// A group name, or `*`.
    Group(String),
    /// A service account; with the name `*`, all of a namespace.
    ServiceAccount {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
}

/// Verbs on resources; a single `*` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRule {
    /// `get`, `list` …
    pub verbs: Vec<String>,
    /// API groups.
    pub groups: Vec<String>,
    /// `pods`, `pods/status`
    pub resources: Vec<String>,
    /// Whether requests without a namespace match.
    pub cluster_scope: bool,
    /// The namespaces that match.
    pub namespaces: Vec<String>,
}

/// Verbs on paths; a single `*` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonResourceRule {
    /// HTTP methods in lower case.
    pub verbs: Vec<String>,
    /// Paths, which include the paths below them.
    pub urls: Vec<String>,
}

/// Sorts schemas so that the first matching one applies.
pub fn in_order(schemas: &mut [FlowSchema]) {
    schemas.sort_by(|a, b| (a.matching_precedence, &a.name).cmp(&(b.matching_precedence, &b.name)));
}

/// The hash by which a flow's queues are chosen.
pub fn flow_hash(schema: &str, distinguisher: &str) -> u64 {
    let mut hash = Sha256::new();
    hash.update(schema.as_bytes());
    hash.update([0]);
    hash.update(distinguisher.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash.finalize()[..8]);
    u64::from_le_bytes(first)
}

impl FlowSchema {
    /// Whether a request matches.
    pub fn matches(&self, request: &Attributes<'_>) -> bool {
        self.rules.iter().any(|rule| rule.matches(request))
    }

    /// The user name or namespace that distinguishes the request's flow; `""` without either.
    pub fn distinguisher_of<'a>(&self, request: &Attributes<'a>) -> &'a str {
        match (self.distinguisher, request.subject) {
            (Some(Distinguisher::ByUser), _) => &request.user.name,
            (Some(Distinguisher::ByNamespace), Requested::Resource(objects)) => objects.namespace,
            _ => "",
        }
    }
}

impl PolicyRule {
    fn matches(&self, request: &Attributes<'_>) -> bool {
        self.subjects.iter().any(|subject| subject.matches(request.user))
            && match &request.subject {
                Requested::Resource(objects) => {
                    self.resource_rules.iter().any(|rule| rule.matches(request.verb, objects))
                }
                Requested::Path(path) => {
                    self.non_resource_rules.iter().any(|rule| rule.matches(request.verb, path))
                }
            }
    }
}

impl Subject {
    fn matches(&self, user: &User) -> bool {
        match self {
            Self::User(name) => name == ALL || *name == user.name,
            Self::Group(name) => name == ALL || user.groups.contains(name),
            Self::ServiceAccount { namespace, name } => {
                let account = user.name.strip_prefix(SERVICE_ACCOUNT);
                let account = account.and_then(|rest| rest.strip_prefix(namespace.as_str()));
                let account = account.and_then(|rest| rest.strip_prefix(':'));
                account.is_some_and(|account| name == ALL || account == name)
            }
        }
    }
}

impl ResourceRule {
    fn matches(&self, verb: &str, objects: &Objects<'_>) -> bool {
        contains(&self.verbs, verb)
            && self.has_resource(objects.resource, objects.subresource)
            && contains(&self.groups, objects.group)
            && match objects.namespace {
                "" => self.cluster_scope,
                namespace => contains(&self.namespaces, namespace),
            }
    }

    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        if subresource.is_empty() || is_all(&self.resources) {
            return contains(&self.resources, resource);
        }
        let is_same = |name: &String| name.split_once('/') == Some((resource, subresource));
        self.resources.iter().any(is_same)
    }
}

impl NonResourceRule {
    fn matches(&self, verb: &str, path: &str) -> bool {
        contains(&self.verbs, verb) && self.urls.iter().any(|url| covers(url, path))
    }
}

/// Whether a path is equal to or below that of a rule.
fn covers(url: &str, path: &str) -> bool {
    if url == ALL || url == path {
        return true;
    }
    let above = url.strip_suffix('*').unwrap_or(url);
    let above = above.strip_suffix('/').unwrap_or(above);
    path.strip_prefix(above).is_some_and(|below| below.starts_with('/'))
}

fn contains(names: &[String], name: &str) -> bool {
    is_all(names) || names.iter().any(|one| one == name)
}

fn is_all(names: &[String]) -> bool {
    matches!(names, [one] if one == ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn objects<'a>(namespace: &'a str, resource: &'a str, subresource: &'a str) -> Objects<'a> {
        Objects { namespace, resource, subresource, ..Objects::default() }
    }

    #[test]
    fn subjects_match_users() {
        let user = User {
            name: "system:serviceaccount:ns:x".to_owned(),
            groups: strings(&["a", "b"]),
            ..User::default()
        };
        let account = |namespace: &str, name: &str| Subject::ServiceAccount {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        for (subject, matches) in [
            (Subject::User("*".to_owned()), true),
            (Subject::User("system:serviceaccount:ns:x".to_owned()), true),
            (Subject::User("x".to_owned()), false),
            (Subject::Group("b".to_owned()), true),
            (Subject::Group("*".to_owned()), true),
            (Subject::Group("c".to_owned()), false),
            (account("ns", "*"), true),
            (account("ns", "x"), true),
            (account("ns", "y"), false),
            (account("n", "*"), false),
        ] {
            assert_eq!(subject.matches(&user), matches, "{subject:?}");
        }
    }

    #[test]
    fn resource_rules_match_resources() {
        let rule = ResourceRule {
            verbs: strings(&["get", "list"]),
            groups: strings(&[""]),
            resources: strings(&["pods", "nodes/status"]),
            cluster_scope: false,
            namespaces: strings(&["a"]),
        };
        assert!(rule.matches("get", &objects("a", "pods", "")));
        assert!(!rule.matches("watch", &objects("a", "pods", "")));
        assert!(!rule.matches("get", &objects("b", "pods", "")));
        assert!(!rule.matches("get", &objects("", "pods", "")));
        assert!(!rule.matches("get", &objects("a", "pods", "status")));
        assert!(rule.matches("get", &objects("a", "nodes", "status")));
        assert!(!rule.matches("get", &objects("a", "nodes", "")));
        let all = ResourceRule { resources: strings(&["*"]), ..rule };
        assert!(all.matches("get", &objects("a", "pods", "status")));
    }

    #[test]
    fn patterns_of_paths_match_by_prefix() {
        for (url, path, covered) in [
            ("*", "/x", true),
            ("/healthz", "/healthz", true),
            ("/healthz", "/healthz/ping", true),
            ("/healthz", "/healthzz", false),
            ("/healthz/*", "/healthz/ping", true),
            ("/healthz/*", "/healthz", false),
            ("/version*", "/version/", true),
        ] {
            assert_eq!(covers(url, path), covered, "{url} {path}");
        }
    }

    #[test]
    fn precedence_counts_before_the_name() {
        let schema = |name: &str, matching_precedence| FlowSchema {
            name: name.to_owned(),
            matching_precedence,
            ..FlowSchema::default()
        };
        let mut schemas = [schema("b", 2), schema("z", 1), schema("a", 2)];
        in_order(&mut schemas);
        assert_eq!(schemas.map(|schema| schema.name), ["z", "a", "b"]);
    }
}
