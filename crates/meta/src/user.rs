//! Users and the names that Kubernetes reserves for some of them.

use crate::names::{label_rule, subdomain_rule};

/// Who comes without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of everyone without credentials.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of everyone with credentials.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group that may do everything.
pub const MASTERS: &str = "system:masters";

/// The group of kubelets.
pub const NODES: &str = "system:nodes";

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name by which rules and records know the user.
    pub name: String,
    /// An identifier that does not come back with the name; often empty.
    pub uid: String,
    /// The groups, in the order in which the authenticator gave them.
    pub groups: Vec<String>,
    /// What else the authenticator knows, sorted by key.
    pub extra: Vec<(String, Vec<String>)>,
}

impl User {
    /// Who comes without credentials.
    pub fn anonymous() -> Self {
        let groups = vec![UNAUTHENTICATED.to_owned()];
        Self { name: ANONYMOUS.to_owned(), groups, ..Self::default() }
    }

    /// Adds the group that everyone with credentials is in.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        if !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// The server itself, whoever it acts for: it may do everything (upstream's loopback user).
    pub fn server(name: &str) -> Self {
        Self { name: name.to_owned(), groups: vec![MASTERS.to_owned()], ..Self::default() }
    }

    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// Whether the user may do everything, whatever the rules say.
    pub fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }
}

/// How the names of service accounts as users begin.
pub const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
/// The group of all service accounts.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// The user name of a service account.
pub fn service_account(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The groups that a service account is in, besides the one of everyone with credentials.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")]
}

/// The namespace and name of the service account that a user name is that of, if it is one's.
pub fn split_service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let is_one = label_rule(namespace, false).is_empty() && subdomain_rule(name, false).is_empty();
    is_one.then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_service_accounts_are_told_apart_from_others() {
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
