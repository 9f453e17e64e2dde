//! The served kinds: the resource of a collection, and the resource that an owner reference names.

use std::collections::HashMap;
use std::sync::Arc;

use pintle_registry::Resource;
use pintle_value::Str;

/// The resources with collections.
#[derive(Default)]
pub(super) struct Kinds {
    /// One resource of each collection.
    by_collection: HashMap<Arc<str>, Arc<Resource>>,
    by_name: HashMap<(Str, Str), Arc<Resource>>,
}

impl Kinds {
    pub(super) fn of(resources: &[Arc<Resource>]) -> Self {
        let mut kinds = Self::default();
        for resource in resources {
            let Some(storage) = &resource.storage else { continue };
            let name = (resource.api_version().into(), resource.kind.clone());
            kinds.by_name.insert(name, resource.clone());
            // The storage version is preferred, because it needs no conversion.
            let collection = kinds.by_collection.entry(storage.collection.clone());
            let stored = collection.or_insert_with(|| resource.clone());
            if resource.is_storage_version() {
                *stored = resource.clone();
            }
        }
        kinds
    }

    /// The resource of a collection's objects, in the storage version.
    pub(super) fn of_collection(&self, collection: &str) -> Option<&Arc<Resource>> {
        self.by_collection.get(collection)
    }

    /// The resource that an owner reference names.
    pub(super) fn named(&self, api_version: &Str, kind: &Str) -> Option<&Arc<Resource>> {
        self.by_name.get(&(api_version.clone(), kind.clone()))
    }
}
