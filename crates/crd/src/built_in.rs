//! The built-in resources, whose names no definition can take.
//!
//! Upstream stores custom objects apart from most built-in ones, and its built-in groups take
//! precedence over custom ones. Here both are stored by group and plural name: a definition with
//! the names of a built-in resource would take over its objects, and deleting the definition would
//! delete them. So no definition gets such names, and no resource is created from one that
//! claims them, whatever its status says: clients can write a status, and a store can be older than
//! this rule.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use pintle_value::Value;

use crate::definition::Crd;

/// The names of a built-in resource, and whether it is enabled.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInResource {
    pub group: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short_names: &'static [&'static str],
    pub kind: &'static str,
    pub list_kind: &'static str,
    pub is_on: bool,
}

/// All built-in resources, including disabled ones.
#[derive(Default)]
pub struct BuiltIn {
    groups: HashMap<&'static str, Group>,
}

#[derive(Default)]
pub(crate) struct Group {
    plurals: HashSet<&'static str>,
    /// All names that definitions of the group cannot take.
    pub(crate) used: UsedNames<'static>,
    is_on: bool,
}

impl FromIterator<BuiltInResource> for BuiltIn {
    fn from_iter<I: IntoIterator<Item = BuiltInResource>>(resources: I) -> Self {
        let mut built_in = Self::default();
        for resource in resources {
            let group = built_in.groups.entry(resource.group).or_default();
            group.plurals.insert(resource.plural);
            group.is_on |= resource.is_on;
            let names = [resource.plural, resource.singular].into_iter();
            group.used.add(
                names.chain(resource.short_names.iter().copied()),
                [resource.kind, resource.list_kind],
            );
        }
        built_in
    }
}

impl BuiltIn {
    /// Whether a resource is built in, enabled or not.
    pub fn has(&self, group: &str, plural: &str) -> bool {
        self.group(group).is_some_and(|group| group.plurals.contains(plural))
    }

    /// Whether a built-in resource of the group is enabled. Custom resources of such a group are
    /// never served, as in upstream: the built-in ones serve the whole group.
    pub fn answers_for(&self, group: &str) -> bool {
        self.group(group).is_some_and(|group| group.is_on)
    }

    pub(crate) fn group(&self, group: &str) -> Option<&Group> {
        self.groups.get(group)
    }
}

/// Names that are in use.
#[derive(Default)]
pub(crate) struct UsedNames<'o> {
    pub(crate) resources: HashSet<Cow<'o, str>>,
    pub(crate) kinds: HashSet<&'o str>,
}

impl<'o> UsedNames<'o> {
    /// The accepted names of these definitions.
    pub(crate) fn by(others: impl Iterator<Item = &'o Value>) -> Self {
        let mut used = Self::default();
        for other in others.map(|crd| Crd(crd).accepted_names()) {
            used.add([other.plural(), other.singular()], [other.kind(), other.list_kind()]);
            let short_names = other.short_names().into_iter();
            used.resources.extend(short_names.map(|name| Cow::Owned(name.to_string())));
        }
        used
    }

    /// Adds the names of a resource and of its kinds.
    pub(crate) fn add(
        &mut self,
        resources: impl IntoIterator<Item = &'o str>,
        kinds: impl IntoIterator<Item = &'o str>,
    ) {
        let is_name = |name: &&str| !name.is_empty();
        self.resources.extend(resources.into_iter().filter(is_name).map(Cow::Borrowed));
        self.kinds.extend(kinds.into_iter().filter(is_name));
    }
}
