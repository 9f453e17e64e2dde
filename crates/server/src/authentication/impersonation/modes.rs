//! The modes of impersonation and the authorizations that each needs.
//!
//! A constrained mode allows impersonation for some requests only: those for which the verb
//! `impersonate-on:<mode>:<verb>` is granted. The impersonated user is authorized under the verb
//! `impersonate:<mode>`. The legacy mode has the verb `impersonate` and no constraint.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::time::Instant;

use pintle_auth::{Attributes, Objects, Reason, Subject, User};
use pintle_meta::user::{MASTERS, NODES, split_service_account};
use pintle_meta::{Status, field, names, quote::quote, validation};
use pintle_value::Path;

use super::{Impersonation, Wanted};
use crate::request_info::RequestInfo;

const AUTHENTICATION: &str = "authentication.k8s.io";
/// The prefix of the user names of nodes.
const NODE_USER: &str = "system:node:";
/// The extra key with the node of a service account's pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// For at least so many groups or extra values, one authorization for all (`*`) is tried first.
const MANY: usize = 4;

/// A mode of impersonation.
struct Mode {
    /// The name in verbs; `""` for the legacy mode.
    name: &'static str,
    /// Whether the mode applies to this requester and impersonated user.
    applies: fn(&User, &Wanted) -> bool,
}

/// The modes, in the order in which they are tried.
const MODES: &[Mode] = &[
    Mode {
        name: ASSOCIATED_NODE,
        applies: |user, wanted| {
            let node = only_name(wanted).and_then(node);
            node.is_some() && node == own_node(user)
        },
    },
    Mode {
        name: "arbitrary-node",
        applies: |_, wanted| only_name(wanted).and_then(node).is_some(),
    },
    Mode {
        name: "serviceaccount",
        applies: |_, wanted| only_name(wanted).and_then(split_service_account).is_some(),
    },
    Mode {
        name: "user-info",
        applies: |_, Wanted { user, .. }| {
            node(user).is_none() && split_service_account(user).is_none()
        },
    },
    Mode { name: "", applies: |_, _| true },
];
/// The mode in which a service account impersonates the node of its own pod. The permission is
/// granted on all nodes (`*`), because each pod has another node.
const ASSOCIATED_NODE: &str = "associated-node";

/// A permitted impersonation.
#[derive(Debug)]
pub(super) struct Allowed {
    /// The constrained mode; `None` for the legacy one.
    pub(super) mode: Option<&'static str>,
    /// The group that the mode adds.
    pub(super) group: Option<&'static str>,
}

/// Authorizes an impersonation for this request. The error is that of the first mode that applies.
pub(super) async fn permit(
    wanted: &Wanted,
    user: &User,
    info: &RequestInfo,
    impersonation: &Impersonation<'_>,
) -> Result<Allowed, Status> {
    let mut refusal = None;
    let exists = |mode: &&Mode| impersonation.is_constrained || !mode.is_constrained();
    for mode in MODES.iter().filter(exists).filter(|mode| (mode.applies)(user, wanted)) {
        let verb = match mode.name {
            "" => Cow::Borrowed("impersonate"),
            name => Cow::Owned(format!("impersonate:{name}")),
        };
        let check = Check { mode: mode.name, verb: &verb, user, impersonation };
        match check.all(wanted, info).await {
            Ok(()) => {
                let is_constrained = mode.is_constrained();
                let group = node(&wanted.user).filter(|_| is_constrained).map(|_| NODES);
                return Ok(Allowed { mode: is_constrained.then_some(mode.name), group });
            }
            Err(status) => refusal = refusal.or(Some(status)),
        }
    }
    Err(refusal.expect("the legacy mode applies to everyone"))
}

impl Mode {
    fn is_constrained(&self) -> bool {
        !self.name.is_empty()
    }
}

/// The authorization of one mode.
struct Check<'a> {
    mode: &'static str,
    verb: &'a str,
    user: &'a User,
    impersonation: &'a Impersonation<'a>,
}

impl Check<'_> {
    /// Authorizes the request, then name, uid, groups and extra.
    async fn all(&self, wanted: &Wanted, info: &RequestInfo) -> Result<(), Status> {
        if self.is_constrained() {
            let verb = format!("impersonate-on:{}:{}", self.mode, info.verb.as_str());
            self.ask(&verb, info.subject()).await?;
        }
        self.name(&wanted.user).await?;
        if !wanted.uid.is_empty() {
            self.about(AUTHENTICATION, "uids", "", &wanted.uid).await?;
        }
        self.groups(&wanted.groups).await?;
        self.extra(&wanted.extra).await
    }

    async fn name(&self, name: &str) -> Result<(), Status> {
        if let Some((namespace, name)) = split_service_account(name) {
            let subject = Subject::Resource(Objects {
                group: self.group(),
                version: "v1",
                resource: "serviceaccounts",
                namespace,
                name,
                ..Objects::default()
            });
            return self.ask(self.verb, subject).await;
        }
        let (resource, name) = match node(name).filter(|_| self.is_constrained()) {
            Some(_) if self.mode == ASSOCIATED_NODE => ("nodes", "*"),
            Some(node) => ("nodes", node),
            None => ("users", name),
        };
        self.about(self.group(), resource, "", name).await
    }

    async fn groups(&self, groups: &[String]) -> Result<(), Status> {
        let ask = async |name: &str| self.about(self.group(), "groups", "", name).await;
        if self.is_constrained() {
            let never = |name: &str, why: &'static str| {
                let has = groups.iter().any(|group| group == name);
                if has { Err(self.refuse("groups", name, why.into())) } else { Ok(()) }
            };
            never("", "impersonating the empty string group is not allowed")?;
            never(MASTERS, "impersonating the system:masters group is not allowed")?;
            if groups.len() >= MANY && ask("*").await.is_ok() {
                return Ok(());
            }
        }
        for group in groups {
            ask(group).await?;
        }
        Ok(())
    }

    async fn extra(&self, extra: &[(String, Vec<String>)]) -> Result<(), Status> {
        let ask = async |key: &str, value: &str| {
            self.about(AUTHENTICATION, "userextras", key, value).await
        };
        if self.is_constrained() {
            let invalid = extra.iter().find_map(|(key, values)| wrong_extra(key, values));
            if let Some(why) = invalid {
                return Err(self.refuse("userextras", "", why));
            }
            let values: usize = extra.iter().map(|(_, values)| values.len()).sum();
            if values >= MANY && ask("*", "*").await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                ask(key, value).await?;
            }
        }
        Ok(())
    }

    /// The API group of users, groups, nodes and service accounts.
    fn group(&self) -> &'static str {
        if self.is_constrained() { AUTHENTICATION } else { "" }
    }

    fn is_constrained(&self) -> bool {
        !self.mode.is_empty()
    }

    async fn about(
        &self,
        group: &str,
        resource: &str,
        subresource: &str,
        name: &str,
    ) -> Result<(), Status> {
        let subject = Subject::Resource(Objects {
            group,
            resource,
            subresource,
            name,
            version: "v1",
            ..Objects::default()
        });
        self.ask(self.verb, subject).await
    }

    async fn ask(&self, verb: &str, subject: Subject<'_>) -> Result<(), Status> {
        let attributes = Attributes { user: self.user, verb, subject };
        let began = Instant::now();
        let ruling = self.impersonation.authorizer.authorize(&attributes).await;
        self.impersonation.measures.authorized(self.mode, ruling.allowed(), began.elapsed());
        if ruling.allowed() { Ok(()) } else { Err(attributes.forbidden(&ruling.reason)) }
    }

    /// The 403 for a group or extra that no constrained mode may impersonate.
    fn refuse(&self, resource: &str, name: &str, why: String) -> Status {
        let subject = Subject::Resource(Objects {
            group: AUTHENTICATION,
            version: "v1",
            resource,
            name,
            ..Objects::default()
        });
        let attributes = Attributes { user: self.user, verb: self.verb, subject };
        attributes.forbidden(&Reason::Text(why.into()))
    }
}

/// The wanted name, if nothing else is wanted.
fn only_name(wanted: &Wanted) -> Option<&str> {
    let Wanted { user, groups, uid, extra } = wanted;
    (groups.is_empty() && uid.is_empty() && extra.is_empty()).then_some(user)
}

/// The node of a node's user name.
fn node(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_USER).filter(|name| names::dns1123_subdomain(name).is_empty())
}

/// The node of a service account's pod, from its token.
pub(crate) fn own_node(user: &User) -> Option<&str> {
    split_service_account(&user.name)?;
    match user.extra.iter().find(|(key, _)| key == NODE_NAME)?.1.as_slice() {
        [node] => Some(node),
        _ => None,
    }
}

/// Returns the reason why a key or a value of extra is invalid, if one is.
fn wrong_extra(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let wrong = validation::domain_prefixed_path(key, &Path::new("extra").field("key"));
    if !wrong.is_empty() {
        let wrong = field::aggregate(&wrong);
        return Some(format!("impersonating an invalid key in extra is not allowed: {wrong}"));
    }
    if key.chars().any(char::is_uppercase) {
        let key = quote(key);
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {key}"));
    }
    let is_empty = values.iter().any(String::is_empty);
    is_empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}
