//! Resources, and the patterns of rules: `secrets`, `deployments.apps`, `*.apps`, `*.`, `*.*`.

use std::fmt;

/// A resource of a group; in a rule, the resource and the group may be `*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name.
    pub resource: String,
}

/// The wildcard.
pub(crate) const ANY: &str = "*";

/// Collections without a REST API. Upstream never encrypts them.
const WITHOUT_API: &[&str] = &["masterleases", "peerserverleases", "ranges"];

impl GroupResource {
    /// Parses `resource.group` or `resource`.
    pub(crate) fn parse(text: &str) -> Self {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        Self { group: group.to_owned(), resource: resource.to_owned() }
    }

    /// The resource of a store's collection (`plural` or `group/plural`); `None` if the collection
    /// is never encrypted.
    pub(crate) fn of_collection(collection: &str) -> Option<Self> {
        if WITHOUT_API.contains(&collection) {
            return None;
        }
        let (group, resource) = collection.split_once('/').unwrap_or(("", collection));
        Some(Self { group: group.to_owned(), resource: resource.to_owned() })
    }

    /// All resources of this resource's group.
    pub(crate) fn any_of_group(&self) -> Self {
        Self { group: self.group.clone(), resource: ANY.to_owned() }
    }

    /// All resources of all groups.
    pub(crate) fn any() -> Self {
        Self { group: ANY.to_owned(), resource: ANY.to_owned() }
    }
}

impl fmt::Display for GroupResource {
    /// The notation of a configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.resource.as_str(), self.group.as_str()) {
            (ANY, "") => f.write_str("*."),
            (resource, "") => f.write_str(resource),
            (resource, group) => write!(f, "{resource}.{group}"),
        }
    }
}
