//! Flow schemas: which requests belong to which priority level, and which of them are one flow.

use pintle_auth::{Attributes, Objects, Subject as Asked, User};
use sha2::{Digest, Sha256};

/// The name of the schema, and of the level, whose requests are never held back.
pub const EXEMPT: &str = "exempt";
/// The name of the schema, and of the level, that take what no other schema matches.
pub const CATCH_ALL: &str = "catch-all";

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const ALL: &str = "*";

/// The spec of a flow schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowSchema {
    /// Its name.
    pub name: String,
    /// Told to clients; empty for a mandatory schema that is not stored.
    pub uid: String,
    /// The level of the requests that match.
    pub priority_level: String,
    /// Of several schemas that match, the one with the lowest number counts.
    pub matching_precedence: i64,
    /// How requests are divided into flows; without one they are one flow.
    pub distinguisher: Option<Distinguisher>,
    /// A request matches that one of these matches.
    pub rules: Vec<PolicyRule>,
}

/// What is different between the flows of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distinguisher {
    /// Each user has a flow.
    ByUser,
    /// Each namespace has one.
    ByNamespace,
}

/// Who may ask, and for what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyRule {
    /// One of these asks …
    pub subjects: Vec<Subject>,
    /// … for resources that one of these names …
    pub resource_rules: Vec<ResourceRule>,
    /// … or for a path that one of these names.
    pub non_resource_rules: Vec<NonResourceRule>,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A user, or `*`.
    User(String),
    /// A group, or `*`.
    Group(String),
    /// A service account, or with the name `*` all of a namespace.
    ServiceAccount {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// Verbs on resources; `*` alone is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRule {
    /// `get`, `list` …
    pub verbs: Vec<String>,
    /// API groups.
    pub groups: Vec<String>,
    /// `pods`, `pods/status`
    pub resources: Vec<String>,
    /// Requests without a namespace.
    pub cluster_scope: bool,
    /// Requests in these.
    pub namespaces: Vec<String>,
}

/// Verbs on paths; `*` alone is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonResourceRule {
    /// HTTP methods in lower case.
    pub verbs: Vec<String>,
    /// Paths; each with what is below it.
    pub urls: Vec<String>,
}

/// Sorts schemas so that the first that matches a request is the one that counts.
pub fn in_order(schemas: &mut [FlowSchema]) {
    schemas.sort_by(|a, b| (a.matching_precedence, &a.name).cmp(&(b.matching_precedence, &b.name)));
}

/// The hash that a flow's queues are dealt by.
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
    /// Whether a request belongs to it.
    pub fn matches(&self, asked: &Attributes<'_>) -> bool {
        self.rules.iter().any(|rule| rule.matches(asked))
    }

    /// What distinguishes the flow of a request.
    pub fn distinguisher_of<'a>(&self, asked: &Attributes<'a>) -> &'a str {
        match (self.distinguisher, asked.subject) {
            (Some(Distinguisher::ByUser), _) => &asked.user.name,
            (Some(Distinguisher::ByNamespace), Asked::Resource(objects)) => objects.namespace,
            _ => "",
        }
    }
}

impl PolicyRule {
    fn matches(&self, asked: &Attributes<'_>) -> bool {
        self.subjects.iter().any(|subject| subject.matches(asked.user))
            && match &asked.subject {
                Asked::Resource(objects) => {
                    self.resource_rules.iter().any(|rule| rule.matches(asked.verb, objects))
                }
                Asked::Path(path) => {
                    self.non_resource_rules.iter().any(|rule| rule.matches(asked.verb, path))
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
        let is_it = |name: &String| name.split_once('/') == Some((resource, subresource));
        self.resources.iter().any(is_it)
    }
}

impl NonResourceRule {
    fn matches(&self, verb: &str, path: &str) -> bool {
        contains(&self.verbs, verb) && self.urls.iter().any(|url| covers(url, path))
    }
}

/// Whether a path is the one of a rule or below it.
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
    fn paths_cover_what_is_below_them() {
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
