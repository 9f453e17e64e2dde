//! The writer of an admission policy must be allowed to read the kind of its parameters, and the
//! writer of a binding the parameters that it refers to (upstream: `authz.go` of the policies'
//! strategies). Otherwise a policy's messages could show its writer objects that it may not read.

use std::fmt::Write as _;

use pintle_auth::{Authorizer, Objects, Subject, User};
use pintle_meta::field::Error;
use pintle_meta::{GroupVersion, GroupVersionResource};
use pintle_registry::Registry;
use pintle_registry::admission::Attributes;
use pintle_value::{Path, Value};

pub(super) const GROUP: &str = "admissionregistration.k8s.io";

/// The policy kinds with their binding kinds.
const POLICIES: [(&str, &str); 2] = [
    ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
    ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
];

/// The permission that the writer of a policy or binding needs; `None` if the write needs none.
pub(super) fn question<'a>(
    write: &Attributes<'a>,
    new: &'a Value,
    registry: &'a Registry,
) -> Option<Question<'a>> {
    let resource = write.resource.resource.resource.as_str();
    let asker = Requester { user: write.user, registry };
    POLICIES.iter().find_map(|(policies, bindings)| {
        if resource == *policies {
            asker.policy(new, write.old())
        } else if resource == *bindings {
            asker.binding(policies, new, write.old())
        } else {
            None
        }
    })
}

/// A required permission.
pub(super) struct Question<'a> {
    user: &'a User,
    verb: &'static str,
    wanted: Wanted,
    namespace: &'a str,
    name: &'a str,
    /// The error if the writer lacks the permission.
    refusal: Error,
}

impl Question<'_> {
    /// Returns the error if the writer lacks the permission.
    pub(super) async fn refusal(self, authorizer: &dyn Authorizer) -> Option<Error> {
        let Wanted { group, version, resource } = &self.wanted;
        let subject = Subject::Resource(Objects {
            group,
            resource,
            subresource: "",
            namespace: self.namespace,
            name: self.name,
            version,
            ..Objects::default()
        });
        let asked = pintle_auth::Attributes { user: self.user, verb: self.verb, subject };
        let ruling = authorizer.authorize(&asked).await;
        (!ruling.allowed()).then_some(self.refusal)
    }
}

struct Requester<'a> {
    user: &'a User,
    registry: &'a Registry,
}

/// The resource to be read; `*`, everything, if it is unknown.
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

impl<'a> Requester<'a> {
    fn policy(&self, new: &'a Value, old: Option<&Value>) -> Option<Question<'a>> {
        const PATH: &[&str] = &["spec", "paramKind"];
        let kind = set(new, PATH)?;
        if old.and_then(|old| set(old, PATH)) == Some(kind) || self.user.is_master() {
            return None;
        }
        let (wanted, _) = self.wanted(kind);
        let text = |member| kind.str_at(&[member]).unwrap_or_default();
        let why = format!(
            "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, \
             apiVersion={})",
            shown(self.user),
            text("kind"),
            text("apiVersion")
        );
        let refusal = Error::forbidden(&Path::new("spec").field("paramKind"), why);
        let (user, verb) = (self.user, "get");
        Some(Question { user, verb, wanted, namespace: "*", name: "*", refusal })
    }

    fn binding(&self, policies: &str, new: &'a Value, old: Option<&Value>) -> Option<Question<'a>> {
        const PATH: &[&str] = &["spec", "paramRef"];
        const POLICY: &[&str] = &["spec", "policyName"];
        let reference = set(new, PATH)?;
        let is_same =
            |old: &Value| set(old, PATH) == Some(reference) && old.at(POLICY) == new.at(POLICY);
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
        let refusal = Error::forbidden(&Path::new("spec").field("paramRef"), why);
        let (namespace, name) = (text("namespace"), text("name"));
        Some(Question { user: self.user, verb, wanted, namespace, name, refusal })
    }

    fn policy_named(&self, policies: &str, name: &str) -> Option<Value> {
        let resource = GroupVersionResource::new(GROUP, "v1", policies);
        let resource = self.registry.resource(&resource)?;
        // An undecodable policy counts as missing: then the writer needs the permission on
        // everything.
        self.registry.peek(&resource, "", name)?.tree().ok()
    }

    /// The resource of a kind, and whether it was found.
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
}

/// A member, if it is present.
fn set<'v>(object: &'v Value, path: &[&str]) -> Option<&'v Value> {
    object.at(path).filter(|value| !value.is_null())
}

/// Formats a user as Go does: name, uid, groups and extra.
fn shown(user: &User) -> String {
    let mut extra: Vec<_> = user.extra.iter().collect();
    extra.sort_unstable();
    let extra = extra.iter().fold(String::new(), |mut text, (key, values)| {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{key}:[{}]", values.join(" ")); // writing to a String cannot fail
        text
    });
    format!("&{{{} {} [{}] map[{extra}]}}", user.name, user.uid, user.groups.join(" "))
}
