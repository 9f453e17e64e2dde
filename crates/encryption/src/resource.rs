//! Resources and the rules that name them: `secrets`, `deployments.apps`, `*.apps`, `*.`, `*.*`.

use std::fmt;

/// A resource of a group, either of which may be `*` in a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// Empty for the core group.
    pub group: String,
    /// The plural name.
    pub resource: String,
}

/// What matches anything.
pub(crate) const ANY: &str = "*";

/// Collections that have no REST API. Upstream does not encrypt them, whatever the rules say.
const WITHOUT_API: &[&str] = &["masterleases", "peerserverleases", "ranges"];

impl GroupResource {
    /// Reads `resource.group`, or `resource`.
    pub(crate) fn parse(text: &str) -> Self {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        Self { group: group.to_owned(), resource: resource.to_owned() }
    }

    /// The resource whose objects a store's collection has, `plural` or `group/plural`; `None` where the
    /// collection is never encrypted.
    pub(crate) fn of_collection(collection: &str) -> Option<Self> {
        if WITHOUT_API.contains(&collection) {
            return None;
        }
        let (group, resource) = collection.split_once('/').unwrap_or(("", collection));
        Some(Self { group: group.to_owned(), resource: resource.to_owned() })
    }

    /// All resources of this one's group.
    pub(crate) fn any_of_group(&self) -> Self {
        Self { group: self.group.clone(), resource: ANY.to_owned() }
    }

    /// All resources of all groups.
    pub(crate) fn any() -> Self {
        Self { group: ANY.to_owned(), resource: ANY.to_owned() }
    }
}

impl fmt::Display for GroupResource {
    /// As it is written in a configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.resource.as_str(), self.group.as_str()) {
            (ANY, "") => f.write_str("*."),
            (resource, "") => f.write_str(resource),
            (resource, group) => write!(f, "{resource}.{group}"),
        }
    }
}
