//! Role bindings, and the reason of a grant.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use pintle_meta::quote::quote;
use pintle_meta::user;
use pintle_value::{Str, Value};

use crate::User;

/// A role binding.
#[derive(Debug, PartialEq, Eq)]
pub struct Binding {
    /// The namespace of the binding; `""` for the cluster.
    pub namespace: Str,
    pub(super) name: Str,
    pub(super) role_kind: Str,
    pub(super) role: Str,
    pub(super) subjects: Vec<BindingSubject>,
}

/// A subject of a binding.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BindingSubject {
    kind: Str,
    name: Str,
    namespace: Str,
}

impl Binding {
    /// The users and groups among the subjects, each once: whether it is a group, and its name.
    pub(super) fn names(&self) -> BTreeSet<(bool, Str)> {
        let named = |subject: &BindingSubject| {
            Some((subject.is_group(), subject.user_or_group(&self.namespace)?))
        };
        self.subjects.iter().filter_map(named).collect()
    }

    /// Parses a binding.
    pub(super) fn read(namespace: &str, name: &str, object: &Value) -> Self {
        let subjects = object.get("subjects").and_then(Value::as_array).unwrap_or_default();
        Self {
            namespace: namespace.into(),
            name: name.into(),
            role_kind: text(object, &["roleRef", "kind"]),
            role: text(object, &["roleRef", "name"]),
            subjects: subjects
                .iter()
                .map(|subject| BindingSubject {
                    kind: text(subject, &["kind"]),
                    name: text(subject, &["name"]),
                    namespace: text(subject, &["namespace"]),
                })
                .collect(),
        }
    }
}

fn text(object: &Value, path: &[&str]) -> Str {
    object.str_at(path).unwrap_or_default().into()
}

impl BindingSubject {
    pub(super) fn is_group(&self) -> bool {
        self.kind == "Group"
    }

    /// The name of the user or group, in a binding of that namespace.
    ///
    /// A name that contains U+FFFD matches no user: invalid UTF-8 in a header becomes U+FFFD, so
    /// different names of users would be equal.
    pub(super) fn user_or_group(&self, namespace: &str) -> Option<Str> {
        if self.name.contains(char::REPLACEMENT_CHARACTER) {
            return None;
        }
        match self.kind.as_str() {
            "User" | "Group" => Some(self.name.clone()),
            "ServiceAccount" => {
                let namespace = if self.namespace.is_empty() { namespace } else { &self.namespace };
                let known = !namespace.is_empty();
                known.then(|| user::service_account(namespace, &self.name).into())
            }
            _ => None,
        }
    }

    fn applies_to(&self, user: &User, namespace: &str) -> bool {
        self.user_or_group(namespace).is_some_and(|name| {
            if self.is_group() { user.is_in(&name) } else { user.name == *name }
        })
    }
}

/// The binding and the subject that allowed a request. Formatted only when it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    binding: Arc<Binding>,
    subject: usize,
}

impl Grant {
    /// Names the first subject that matches the user, as upstream does.
    pub(super) fn new(binding: Arc<Binding>, user: &User) -> Self {
        let mut subjects = binding.subjects.iter();
        let subject = subjects.position(|s| s.applies_to(user, &binding.namespace));
        Self { subject: subject.unwrap_or_default(), binding }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding { namespace, name, role_kind, role, subjects } = &*self.binding;
        let (kind, name) = if namespace.is_empty() {
            ("ClusterRoleBinding", quote(name))
        } else {
            ("RoleBinding", quote(&format!("{name}/{namespace}")))
        };
        write!(f, "{kind} {name} of {role_kind} {}", quote(role))?;
        let Some(subject) = subjects.get(self.subject) else { return Ok(()) };
        let shown = if subject.kind == "ServiceAccount" {
            let own = &subject.namespace;
            let namespace = if own.is_empty() { namespace } else { own };
            quote(&format!("{}/{namespace}", subject.name))
        } else {
            quote(&subject.name)
        };
        write!(f, " to {} {shown}", subject.kind)
    }
}
