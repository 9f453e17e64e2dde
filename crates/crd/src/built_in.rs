//! The built-in resources, which no definition can replace.
//!
//! Upstream keeps custom objects apart from most built-in ones, and its built-in groups answer before the
//! custom ones are asked. Here both are kept by group and plural name: a definition with the names of a
//! built-in resource would take its objects, and its end would be theirs. So no definition is given such
//! names, and no resource is made of one that claims them, whatever its status says: a status can be
//! written by clients, and a store can be older than this rule.

use std::collections::{HashMap, HashSet};

use crate::life::Used;

/// The names of a built-in resource, and whether it is switched on.
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

/// All built-in resources, those that are switched off among them.
#[derive(Default)]
pub struct BuiltIn {
    groups: HashMap<&'static str, Group>,
}

#[derive(Default)]
pub(crate) struct Group {
    plurals: HashSet<&'static str>,
    /// All names, which definitions of the group find used.
    pub(crate) used: Used<'static>,
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
    /// Whether a resource is built in, switched on or not.
    pub fn has(&self, group: &str, plural: &str) -> bool {
        self.group(group).is_some_and(|group| group.plurals.contains(plural))
    }

    /// Whether anything of a group is built in and switched on. Custom resources of such a group are
    /// never served, by upstream neither: the built-in ones answer for the whole group.
    pub fn answers_for(&self, group: &str) -> bool {
        self.group(group).is_some_and(|group| group.is_on)
    }

    pub(crate) fn group(&self, group: &str) -> Option<&Group> {
        self.groups.get(group)
    }
}
