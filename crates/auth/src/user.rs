//! Users and the names that Kubernetes reserves for some of them.

/// Who comes without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of everyone without credentials.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of everyone with credentials.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group that may do everything.
pub const MASTERS: &str = "system:masters";

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
        if !self.is_in(AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
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
