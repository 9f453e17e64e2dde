//! Users, and the user and group names that Kubernetes reserves.

use crate::names::{label_rule, subdomain_rule};

/// The user name of requests without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of unauthenticated users.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group that is authorized for everything.
pub const MASTERS: &str = "system:masters";

/// The group of kubelets.
pub const NODES: &str = "system:nodes";

/// The user who makes a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The user name.
    pub name: String,
    /// An identifier that is never reused for the same name; often empty.
    pub uid: String,
    /// The groups, in the order in which the authenticator gave them.
    pub groups: Vec<String>,
    /// Additional attributes from the authenticator, sorted by key.
    pub extra: Vec<(String, Vec<String>)>,
}

impl User {
    /// The user of requests without credentials.
    pub fn anonymous() -> Self {
        let groups = vec![UNAUTHENTICATED.to_owned()];
        Self { name: ANONYMOUS.to_owned(), groups, ..Self::default() }
    }

    /// Adds the group of authenticated users, unless the user is in the group of unauthenticated
    /// ones.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        if !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// The server itself under this name, authorized for everything (upstream's loopback user).
    pub fn server(name: &str) -> Self {
        Self { name: name.to_owned(), groups: vec![MASTERS.to_owned()], ..Self::default() }
    }

    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// Whether the user is authorized for everything, without asking the authorizers.
    pub fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }
}

/// The prefix of service accounts' user names.
pub const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
/// The group of all service accounts.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// The user name of a service account.
pub fn service_account(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The groups of a service account, besides that of authenticated users.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")]
}

/// The namespace and name of the service account with this user name; `None` for other users.
pub fn split_service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let is_one = label_rule(namespace, false).is_empty() && subdomain_rule(name, false).is_empty();
    is_one.then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_account_user_names_are_recognized() {
        let check = |user, expected| assert_eq!(split_service_account(user), expected, "{user}");
        check("system:serviceaccount:ns:name", Some(("ns", "name")));
        check("system:serviceaccount:ns:a.b", Some(("ns", "a.b")));
        check("system:serviceaccount:ns:name:x", None);
        check("system:serviceaccount:ns:", None);
        check("system:serviceaccount::name", None);
        check("system:serviceaccount:a.b:name", None);
        check("system:serviceaccounts:ns", None);
        check("jane", None);
    }
}
