//! The writer of an admission policy must be allowed to read the kind of its parameters, and the writer of a
//! binding the parameters that it refers to (upstream: `authz.go` of the policies' strategies). Otherwise a
//! policy's messages would show its writer objects that it may not read.

use std::fmt::Write as _;

use pintle_auth::{Authorizer, Objects, Subject, User};
use pintle_meta::field::Error;
use pintle_meta::{GroupVersion, GroupVersionResource};
use pintle_registry::Registry;
use pintle_registry::admission::Attributes;
use pintle_value::{Path, Value};

pub(super) const GROUP: &str = "admissionregistration.k8s.io";

/// The kinds of policies, with those of their bindings.
const POLICIES: [(&str, &str); 2] = [
    ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
    ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
];

/// Why a policy or a binding must not be written, if it is one.
pub(super) fn check(
    write: &Attributes<'_>,
    new: &Value,
    registry: &Registry,
    authorizer: &dyn Authorizer,
) -> Option<Error> {
    let resource = write.resource.resource.resource.as_str();
    let asker = Asker { user: write.user, registry, authorizer };
    POLICIES.iter().find_map(|(policies, bindings)| {
        if resource == *policies {
            asker.policy(new, write.old)
        } else if resource == *bindings {
            asker.binding(policies, new, write.old)
        } else {
            None
        }
    })
}

struct Asker<'a> {
    user: &'a User,
    registry: &'a Registry,
    authorizer: &'a dyn Authorizer,
}

/// What must be read; `*` where that cannot be told, which is everything.
struct Wanted {
    group: String,
    version: String,
    resource: String,
}

impl Wanted {
    fn anything() -> Self {
        let all = || "*".to_owned();
        Self { group: all(), version: all(), resource: all() }
    }
}

impl Asker<'_> {
    fn policy(&self, new: &Value, old: Option<&Value>) -> Option<Error> {
        const PLACE: &[&str] = &["spec", "paramKind"];
        let kind = set(new, PLACE)?;
        if old.and_then(|old| set(old, PLACE)) == Some(kind) || self.user.is_master() {
            return None;
        }
        let (wanted, _) = self.wanted(kind);
        if self.may("get", &wanted, "*", "*") {
            return None;
        }
        let text = |member| kind.str_at(&[member]).unwrap_or_default();
        let why = format!(
            "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, \
             apiVersion={})",
            shown(self.user),
            text("kind"),
            text("apiVersion")
        );
        Some(Error::forbidden(&Path::new("spec").field("paramKind"), why))
    }

    fn binding(&self, policies: &str, new: &Value, old: Option<&Value>) -> Option<Error> {
        const PLACE: &[&str] = &["spec", "paramRef"];
        const POLICY: &[&str] = &["spec", "policyName"];
        let reference = set(new, PLACE)?;
        let is_same =
            |old: &Value| set(old, PLACE) == Some(reference) && old.at(POLICY) == new.at(POLICY);
        if old.is_some_and(is_same) || self.user.is_master() {
            return None;
        }
        let name = new.str_at(POLICY).unwrap_or_default();
        let policy = self.policy_named(policies, name);
        let kind = policy.as_ref().and_then(|policy| set(policy, &["spec", "paramKind"]));
        let (wanted, is_known) = match kind {
            Some(kind) => self.wanted(kind),
            None => (Wanted::anything(), true),
        };
        let text = |member| reference.str_at(&[member]).unwrap_or_default();
        let verb = if text("name").is_empty() { "list" } else { "get" };
        if self.may(verb, &wanted, text("namespace"), text("name")) {
            return None;
        }
        let user = shown(self.user);
        let why = if policy.is_none() {
            format!(
                "unable to get policy {name} to determine minimum required permissions and user {user} \
                 does not have \"{verb}\" permission for all groups, versions and resources"
            )
        } else if !is_known {
            format!(
                "unable to resolve paramKind to determine minimum required permissions and user {user} \
                 does not have \"{verb}\" permission for all groups, versions and resources"
            )
        } else {
            format!(
                "user {user} does not have \"{verb}\" permission on the object referenced by paramRef"
            )
        };
        Some(Error::forbidden(&Path::new("spec").field("paramRef"), why))
    }

    fn policy_named(&self, policies: &str, name: &str) -> Option<Value> {
        let resource = GroupVersionResource::new(GROUP, "v1", policies);
        let resource = self.registry.resource(&resource)?;
        // Of one that cannot be read as much is asked as of one that is not there: most.
        self.registry.peek(&resource, "", name)?.tree().ok()
    }

    /// The resource of a kind, and whether it is known.
    fn wanted(&self, kind: &Value) -> (Wanted, bool) {
        let text = |member| kind.str_at(&[member]).unwrap_or_default();
        let Some(version) = GroupVersion::parse(text("apiVersion")) else {
            return (Wanted::anything(), false);
        };
        let (_, all) = self.registry.resources();
        let found = all.iter().find(|resource| {
            let gvk = resource.gvk();
            gvk.group_version() == version && gvk.kind == text("kind")
        });
        let resource = found.map_or("*", |resource| &resource.resource.resource).to_owned();
        let (group, version) = (version.group.to_string(), version.version.to_string());
        (Wanted { group, version, resource }, found.is_some())
    }

    fn may(&self, verb: &str, wanted: &Wanted, namespace: &str, name: &str) -> bool {
        let Wanted { group, version, resource } = wanted;
        let subject = Subject::Resource(Objects {
            group,
            resource,
            subresource: "",
            namespace,
            name,
            version,
            ..Objects::default()
        });
        let asked = pintle_auth::Attributes { user: self.user, verb, subject };
        self.authorizer.authorize(&asked).allowed()
    }
}

/// A member that is there.
fn set<'v>(object: &'v Value, path: &[&str]) -> Option<&'v Value> {
    object.at(path).filter(|value| !value.is_null())
}

/// A user as Go prints one: the name, the uid, the groups and what else is known.
fn shown(user: &User) -> String {
    let mut extra: Vec<_> = user.extra.iter().collect();
    extra.sort_unstable();
    let extra = extra.iter().fold(String::new(), |mut text, (key, values)| {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{key}:[{}]", values.join(" ")); // a text takes whatever is written
        text
    });
    format!("&{{{} {} [{}] map[{extra}]}}", user.name, user.uid, user.groups.join(" "))
}
