//! A kind's entry: its behaviour, which the generated table of resources does not have.

use pintle_value::Value;

use crate::strategy::Strategy;

/// The behaviour of one resource in all its versions. The generated table has the resource's names,
/// verbs and subresources; group and plural name join the two.
pub(crate) struct Kind {
    /// The API group, `""` for the core group.
    pub group: &'static str,
    /// The plural name in URLs.
    pub resource: &'static str,
    /// How its objects behave.
    pub strategy: Strategy,
    /// Where its objects are stored.
    pub collection: Collection,
    /// The versions that differ from the stored form, with their conversions.
    pub conversions: &'static [Form],
}

/// A version that differs from the stored form; both conversions are lossless.
pub(crate) struct Form {
    /// The version.
    pub version: &'static str,
    /// From this version to the stored form, `apiVersion` included.
    pub to_stored: fn(&mut Value),
    /// From the stored form to this version, `apiVersion` included.
    pub from_stored: fn(&mut Value),
}

/// The collection in which the objects of a kind are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collection {
    /// The kind's own collection: `pods`, `apps/deployments`.
    Own,
    /// Another kind's collection.
    Shared(&'static str),
    /// No collection: the response has the object, and it is not stored.
    None,
}

/// A kind whose versions all have the stored form.
pub(crate) const fn kind(group: &'static str, resource: &'static str, strategy: Strategy) -> Kind {
    Kind { group, resource, strategy, collection: Collection::Own, conversions: &[] }
}

/// A kind that is never stored.
pub(crate) const fn virtual_kind(group: &'static str, resource: &'static str) -> Kind {
    Kind { collection: Collection::None, ..kind(group, resource, crate::strategy::PLAIN) }
}
