//! The attributes of an authorization check.

use pintle_meta::{GroupResource, Status, fields, labels};

use crate::{Reason, User};

/// An authorization check: may this user do this?
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// The user.
    pub user: &'a User,
    /// `get`, `list`, `create` …; for non-resource paths the HTTP method in lower case.
    pub verb: &'a str,
    /// The target of the verb.
    pub subject: Subject<'a>,
}

/// The target of a verb.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// Objects of a resource.
    Resource(Objects<'a>),
    /// A path that names no resource.
    Path(&'a str),
}

/// Objects of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Objects<'a> {
    /// The API group, `""` for the core group.
    pub group: &'a str,
    /// The version, or `*` if the check is for no particular one.
    pub version: &'a str,
    /// The resource: `pods`.
    pub resource: &'a str,
    /// The subresource, or `""`.
    pub subresource: &'a str,
    /// The namespace; `""` for the cluster and for all namespaces.
    pub namespace: &'a str,
    /// The object's name; `""` for all.
    pub name: &'a str,
    /// The requirements of the request's field selector; empty if it cannot be parsed.
    pub fields: &'a [fields::Requirement],
    /// The requirements of the request's label selector; empty if it cannot be parsed.
    pub labels: &'a [labels::Requirement],
}

/// Owned [`Attributes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedAttributes {
    user: User,
    verb: String,
    subject: OwnedSubject,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OwnedSubject {
    Resource {
        /// The group, version, resource, subresource, namespace and name.
        texts: [String; 6],
        fields: Vec<fields::Requirement>,
        labels: Vec<labels::Requirement>,
    },
    Path(String),
}

impl OwnedAttributes {
    /// Borrows the attributes.
    pub fn borrowed(&self) -> Attributes<'_> {
        let subject = match &self.subject {
            OwnedSubject::Resource { texts, fields, labels } => {
                let [group, version, resource, subresource, namespace, name] = texts;
                Subject::Resource(Objects {
                    group,
                    version,
                    resource,
                    subresource,
                    namespace,
                    name,
                    fields,
                    labels,
                })
            }
            OwnedSubject::Path(path) => Subject::Path(path),
        };
        Attributes { user: &self.user, verb: &self.verb, subject }
    }
}

impl Attributes<'_> {
    /// Copies the attributes, for a later check.
    pub fn to_owned(&self) -> OwnedAttributes {
        let subject = match self.subject {
            Subject::Resource(objects) => {
                let Objects { group, version, resource, subresource, namespace, name, .. } =
                    objects;
                let texts = [group, version, resource, subresource, namespace, name];
                OwnedSubject::Resource {
                    texts: texts.map(str::to_owned),
                    fields: objects.fields.to_vec(),
                    labels: objects.labels.to_vec(),
                }
            }
            Subject::Path(path) => OwnedSubject::Path(path.to_owned()),
        };
        OwnedAttributes { user: self.user.clone(), verb: self.verb.to_owned(), subject }
    }

    /// The 403 of a check that was not allowed (ST-05).
    pub fn forbidden(&self, reason: &Reason) -> Status {
        let mut why = sanitized(&self.sentence());
        let reason = reason.to_string();
        if !reason.is_empty() {
            why.push_str(": ");
            why.push_str(&reason);
        }
        match self.subject {
            Subject::Path(_) => Status::forbidden(&GroupResource::default(), "", &why),
            Subject::Resource(Objects { group, resource, name, .. }) => {
                Status::forbidden(&GroupResource::new(group, resource), name, &why)
            }
        }
    }

    fn sentence(&self) -> String {
        let (user, verb) = (quoted(&self.user.name), self.verb);
        match self.subject {
            Subject::Path(path) => format!("User {user} cannot {verb} path {}", quoted(path)),
            Subject::Resource(Objects { group, resource, subresource, namespace, .. }) => {
                let resource = if subresource.is_empty() {
                    resource.to_owned()
                } else {
                    format!("{resource}/{subresource}")
                };
                let scope = if namespace.is_empty() {
                    "at the cluster scope".to_owned()
                } else {
                    format!("in the namespace {}", quoted(namespace))
                };
                let (resource, group) = (quoted(&resource), quoted(group));
                format!(
                    "User {user} cannot {verb} resource {resource} in API group {group} {scope}"
                )
            }
        }
    }
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

/// Escapes HTML, as upstream does: the message repeats the client's text.
fn sanitized(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ruling;

    fn check(verb: &str, subject: Subject<'_>, expected: &str) {
        let user = User { name: "u".to_owned(), ..User::default() };
        let status =
            Attributes { user: &user, verb, subject }.forbidden(&Ruling::NO_OPINION.reason);
        assert_eq!((status.message.as_str(), status.code), (expected, 403));
    }

    #[test]
    fn refusals_read_like_upstream() {
        let resource = |subresource, namespace, name| {
            let objects =
                Objects { resource: "pods", subresource, namespace, name, ..Objects::default() };
            Subject::Resource(objects)
        };
        check(
            "list",
            resource("", "t", ""),
            r#"pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "t""#,
        );
        check(
            "get",
            resource("log", "t", "p"),
            r#"pods "p" is forbidden: User "u" cannot get resource "pods/log" in API group "" in the namespace "t""#,
        );
        check(
            "list",
            resource("", "", ""),
            r#"pods is forbidden: User "u" cannot list resource "pods" in API group "" at the cluster scope"#,
        );
        check(
            "get",
            Subject::Path("/metrics"),
            r#"forbidden: User "u" cannot get path "/metrics""#,
        );
        check("get", Subject::Path("/<b>"), r#"forbidden: User "u" cannot get path "/&lt;b&gt;""#);
    }
}
