//! The resources of the built-in API as constants made by `cargo xtask generate`: their data for
//! discovery, and the form in which they are stored. The behaviour of their objects is not here.

#[rustfmt::skip]
mod resources;
#[cfg(test)]
mod tests;

use pintle_registry::Verb;

/// A resource in one version.
#[derive(Debug)]
pub(crate) struct Resource {
    /// The API group, `""` for the core group.
    pub(crate) group: &'static str,
    /// The version.
    pub(crate) version: &'static str,
    /// The name in URLs: `pods`.
    pub(crate) plural: &'static str,
    /// The singular name: `pod`.
    pub(crate) singular: &'static str,
    /// The kind of its objects.
    pub(crate) kind: &'static str,
    /// The kind of its lists.
    pub(crate) list_kind: &'static str,
    /// Whether its objects are namespaced.
    pub(crate) namespaced: bool,
    /// The supported verbs, sorted.
    pub(crate) verbs: &'static [Verb],
    /// Short names for kubectl.
    pub(crate) short_names: &'static [&'static str],
    /// Categories for kubectl.
    pub(crate) categories: &'static [&'static str],
    /// Its subresources, sorted by name; namespaced as it is.
    pub(crate) subresources: &'static [Subresource],
    /// The name of its objects' type in the built-in schema.
    pub(crate) type_name: &'static str,
    /// The form in which its objects are stored; `None` if they are not stored.
    pub(crate) storage: Option<Gvk>,
    /// Whether it is served by default.
    pub(crate) on: bool,
}

/// A subresource.
#[derive(Debug)]
pub(crate) struct Subresource {
    /// Its name in the URL.
    pub(crate) name: &'static str,
    /// The kind that it reads and writes.
    pub(crate) kind: Gvk,
    /// The supported verbs, sorted.
    pub(crate) verbs: &'static [Verb],
}

/// A group, version and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gvk {
    /// The API group, `""` for the core group.
    pub(crate) group: &'static str,
    /// The version.
    pub(crate) version: &'static str,
    /// The kind.
    pub(crate) kind: &'static str,
}

/// Every resource in every version, sorted by group, version and plural name.
pub(crate) fn resources() -> &'static [Resource] {
    &resources::RESOURCES
}

/// All verbs.
pub(crate) const ALL: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];
