//! Keys below the prefix of the database: `services/specs/default/a`.
//!
//! The objects of a built-in kind are under its prefix of one or two segments, custom resources
//! under group and plural. Groups of custom resources contain a dot; prefixes of built-in kinds do
//! not, except for the two that begin with their group.

use std::collections::HashMap;
use std::sync::Arc;

use pintle_registry::ResourceDefinition;
use pintle_store::Key;

use crate::Kind;

/// The kinds by collection, and the collections by prefix.
pub(crate) struct Paths {
    kinds: HashMap<Arc<str>, Kind>,
    by_prefix: HashMap<String, Arc<str>>,
}

/// The prefix of collections that only Pintle has.
const OWN: &str = "pintle";

impl Paths {
    /// The paths of the objects of these definitions.
    pub(crate) fn of(definitions: Vec<ResourceDefinition>) -> Self {
        let mut versions: HashMap<Arc<str>, Vec<ResourceDefinition>> = HashMap::new();
        for definition in definitions {
            if let Some(storage) = &definition.storage {
                versions.entry(storage.collection.clone()).or_default().push(definition);
            }
        }
        let mut paths = Self { kinds: HashMap::new(), by_prefix: HashMap::new() };
        for (collection, versions) in versions {
            let is_stored = |one: &&ResourceDefinition| {
                one.storage.as_ref().is_some_and(|storage| storage.conversion.is_none())
            };
            let Some(stored) = versions.iter().find(is_stored).cloned() else { continue };
            if let Some(storage) = &stored.storage {
                paths.by_prefix.insert(storage.etcd.prefix.to_string(), collection.clone());
            }
            let kind = Kind { collection: collection.clone(), stored, versions };
            paths.kinds.insert(collection, kind);
        }
        paths
    }

    /// The built-in kind of a collection.
    pub(crate) fn kind(&self, collection: &str) -> Option<&Kind> {
        self.kinds.get(collection)
    }

    pub(crate) fn path(&self, key: &Key) -> String {
        let Key { collection, item } = key;
        match self.kind(collection).and_then(|kind| kind.stored.storage.as_ref()) {
            Some(storage) => format!("{}/{item}", storage.etcd.prefix),
            None if is_custom(collection) => format!("{collection}/{item}"),
            None => format!("{OWN}/{collection}/{item}"),
        }
    }

    pub(crate) fn key(&self, path: &str) -> Option<Key> {
        let (first, rest) = path.split_once('/')?;
        if let Some(collection) = self.by_prefix.get(first) {
            return self.built_in(collection, rest);
        }
        let (second, item) = rest.split_once('/')?;
        let prefix = &path[..path.len() - item.len() - 1];
        if let Some(collection) = self.by_prefix.get(prefix) {
            return self.built_in(collection, item);
        }
        // Objects of built-in kinds are stored under the kind's prefix (see above), never under the
        // name of the kind's collection.
        let is_built_in = self.kinds.contains_key(prefix) || self.kinds.contains_key(second);
        if first == OWN && !is_built_in && !second.is_empty() && !item.is_empty() {
            return Some(Key { collection: second.into(), item: item.into() });
        }
        let is_known = is_custom(prefix) && !self.kinds.contains_key(prefix) && !second.is_empty();
        (is_known && steps(item) <= Some(2)).then_some(())?;
        steps(item)?;
        Some(Key { collection: prefix.into(), item: item.into() })
    }

    /// The key of an object of a built-in kind; `None` if the item does not have two segments (for
    /// a namespaced kind) or one.
    fn built_in(&self, collection: &Arc<str>, item: &str) -> Option<Key> {
        let segments = if self.kind(collection)?.stored.namespaced() { 2 } else { 1 };
        let key = || Key { collection: collection.clone(), item: item.into() };
        (steps(item) == Some(segments)).then(key)
    }
}

/// Whether a collection is one of custom resources: their groups contain a dot.
pub(crate) fn is_custom(collection: &str) -> bool {
    collection.split_once('/').is_some_and(|(group, _)| group.contains('.'))
}

/// The number of segments of an item; `None` if one is empty.
fn steps(item: &str) -> Option<usize> {
    let mut count = 0;
    for step in item.split('/') {
        if step.is_empty() {
            return None;
        }
        count += 1;
    }
    Some(count)
}
