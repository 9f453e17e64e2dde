//! The part of upstream's bootstrap policy that holds without RBAC objects: who is in
//! `system:masters` may do everything, everyone may see that the server lives, and everyone with
//! credentials may see what it serves and ask about themselves.

use crate::user::{AUTHENTICATED, MASTERS, UNAUTHENTICATED};
use crate::{
    Attributes, Authorizer, Decision, NonResourceRule, ResourceRule, Rules, Ruling, Subject, User,
};

/// What the members of some groups may do, under the name of the role that upstream has for it.
struct Role {
    reason: &'static str,
    groups: &'static [&'static str],
    verbs: &'static [&'static str],
    /// API groups and resources in them; `*` stands for all.
    resources: &'static [(&'static str, &'static [&'static str])],
    /// A trailing `*` stands for whatever follows.
    paths: &'static [&'static str],
}

const ROLES: &[Role] = &[
    Role {
        reason: "",
        groups: &[MASTERS],
        verbs: &["*"],
        resources: &[("*", &["*"])],
        paths: &["*"],
    },
    Role {
        reason: "allowed by role system:public-info-viewer",
        groups: &[AUTHENTICATED, UNAUTHENTICATED],
        verbs: &["get"],
        resources: &[],
        paths: &["/healthz", "/livez", "/readyz", "/version", "/version/"],
    },
    Role {
        reason: "allowed by role system:discovery",
        groups: &[AUTHENTICATED],
        verbs: &["get"],
        resources: &[],
        paths: &["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"],
    },
    Role {
        reason: "allowed by role system:basic-user",
        groups: &[AUTHENTICATED],
        verbs: &["create"],
        resources: &[
            ("authorization.k8s.io", &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
            ("authentication.k8s.io", &["selfsubjectreviews"]),
        ],
        paths: &[],
    },
];

/// The authorizer of the built-in roles.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

impl Authorizer for BuiltIn {
    fn authorize(&self, attributes: &Attributes<'_>) -> Ruling {
        ROLES
            .iter()
            .find(|role| role.binds(attributes.user) && role.covers(attributes))
            .map_or(Ruling::NO_OPINION, |role| Ruling::new(Decision::Allow, role.reason))
    }

    fn rules(&self, user: &User, _namespace: &str) -> Rules {
        let mut rules = Rules::default();
        for role in ROLES.iter().filter(|role| role.binds(user)) {
            for (group, resources) in role.resources {
                rules.resource.push(ResourceRule {
                    verbs: owned(role.verbs),
                    api_groups: vec![(*group).to_owned()],
                    resources: owned(resources),
                    resource_names: Vec::new(),
                });
            }
            if !role.paths.is_empty() {
                let rule = NonResourceRule { verbs: owned(role.verbs), paths: owned(role.paths) };
                rules.non_resource.push(rule);
            }
        }
        rules
    }
}

impl Role {
    fn binds(&self, user: &User) -> bool {
        self.groups.iter().any(|group| user.is_in(group))
    }

    fn covers(&self, attributes: &Attributes<'_>) -> bool {
        has(self.verbs, attributes.verb)
            && match attributes.subject {
                Subject::Path(path) => self.paths.iter().any(|rule| path_matches(rule, path)),
                Subject::Resource { group, resource, subresource, .. } => {
                    self.resources.iter().any(|(in_group, resources)| {
                        (*in_group == "*" || *in_group == group)
                            && (resources.contains(&"*")
                                || subresource.is_empty() && resources.contains(&resource))
                    })
                }
            }
    }
}

fn has(list: &[&str], word: &str) -> bool {
    list.iter().any(|entry| *entry == "*" || *entry == word)
}

fn path_matches(rule: &str, path: &str) -> bool {
    match rule.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == rule,
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(groups: &[&str]) -> User {
        User { name: "u".to_owned(), groups: owned(groups), ..User::default() }
    }

    fn check_path(user: &User, verb: &str, path: &str, expected: bool) {
        let subject = Subject::Path(path);
        let ruling = BuiltIn.authorize(&Attributes { user, verb, subject });
        assert_eq!(ruling.allowed(), expected, "{verb} {path}");
    }

    fn check_resource(user: &User, verb: &str, group: &str, resource: &str, expected: bool) {
        let (subresource, namespace, name) = ("", "", "");
        let subject = Subject::Resource { group, resource, subresource, namespace, name };
        let ruling = BuiltIn.authorize(&Attributes { user, verb, subject });
        assert_eq!(ruling.allowed(), expected, "{verb} {resource}.{group}");
    }

    #[test]
    fn everyone_sees_health_and_version_and_nothing_else() {
        let anonymous = User::anonymous();
        // HLT-09
        for path in ["/healthz", "/livez", "/readyz", "/version", "/version/"] {
            check_path(&anonymous, "get", path, true);
        }
        check_path(&anonymous, "post", "/healthz", false);
        check_path(&anonymous, "get", "/healthz/etcd", false);
        check_path(&anonymous, "get", "/api", false);
        check_path(&anonymous, "get", "/metrics", false);
        check_resource(&anonymous, "list", "", "pods", false);
    }

    #[test]
    fn who_has_credentials_sees_what_is_served() {
        let jane = user(&[AUTHENTICATED]);
        for path in ["/api", "/api/v1", "/apis", "/apis/apps/v1", "/openapi/v3", "/readyz"] {
            check_path(&jane, "get", path, true);
        }
        check_path(&jane, "get", "/metrics", false);
        check_resource(&jane, "create", "authorization.k8s.io", "selfsubjectaccessreviews", true);
        check_resource(&jane, "create", "authentication.k8s.io", "selfsubjectreviews", true);
        check_resource(&jane, "create", "authorization.k8s.io", "subjectaccessreviews", false);
        check_resource(&jane, "get", "", "pods", false);
    }

    #[test]
    fn masters_may_do_everything() {
        let admin = user(&[MASTERS]);
        check_path(&admin, "delete", "/whatever", true);
        check_resource(&admin, "escalate", "x.example.com", "things", true);
    }
}
