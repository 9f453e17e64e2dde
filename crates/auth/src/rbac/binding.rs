//! A binding: who has which role, and how it is told why it allowed something.

use std::fmt;
use std::sync::Arc;

use pintle_meta::quote::quote;
use pintle_meta::user;
use pintle_value::{Str, Value};

use crate::User;

/// Who has the rules of a role.
#[derive(Debug, PartialEq, Eq)]
pub struct Binding {
    /// Where it grants them: a namespace, or `""` for the cluster.
    pub namespace: Str,
    pub(super) name: Str,
    pub(super) role_kind: Str,
    pub(super) role: Str,
    pub(super) subjects: Vec<BindingSubject>,
}

/// One of those that a binding names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BindingSubject {
    kind: Str,
    name: Str,
    namespace: Str,
}

impl Binding {
    /// Reads it out of its object.
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

    /// The name of the user or the group that is meant, in a binding of that namespace.
    ///
    /// A name with U+FFFD in it is nobody's: names that headers spell in other encodings than UTF-8 are
    /// shown so, and different ones look alike.
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

/// A binding that allowed someone something, by one of its subjects. Put into words when it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    binding: Arc<Binding>,
    subject: usize,
}

impl Grant {
    /// By the first subject that is the user (upstream names that one).
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
