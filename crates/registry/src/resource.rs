//! A served resource: its definition, and its collection in the cache.

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use pintle_meta::Status;
use pintle_store::Key;
use pintle_value::{Str, Value};

use crate::cache::Collection;
use crate::{Object, ResourceDefinition};

/// A served resource.
pub struct Resource {
    /// What it is.
    pub definition: ResourceDefinition,
    /// Its objects; `None` for a virtual resource.
    collection: Option<Arc<Collection>>,
}

impl Deref for Resource {
    type Target = ResourceDefinition;

    fn deref(&self) -> &ResourceDefinition {
        &self.definition
    }
}

impl Resource {
    pub(crate) const fn new(
        definition: ResourceDefinition,
        collection: Option<Arc<Collection>>,
    ) -> Self {
        Self { definition, collection }
    }

    /// The resource's objects; a `Status` for a virtual resource, which has none.
    pub(crate) fn collection(&self) -> Result<&Arc<Collection>, Status> {
        self.collection
            .as_ref()
            .ok_or_else(|| Status::method_not_allowed(&self.group_resource(), "this verb"))
    }

    /// The store's key of an object.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> Result<Key, Status> {
        let storage = self.storage.as_ref();
        let storage = storage
            .ok_or_else(|| Status::method_not_allowed(&self.group_resource(), "this verb"))?;
        Ok(Key { collection: storage.collection.clone(), item: item(namespace, name).into() })
    }

    /// The JSON of an object in this resource's version: the stored bytes themselves where this is the
    /// stored version.
    pub fn view(&self, object: &Object) -> Bytes {
        if self.conversion().is_none() {
            return object.json();
        }
        let mut out = Vec::with_capacity(object.size());
        pintle_schema::encode::write(&self.schema, self.ty, &self.tree(object), &mut out);
        out.into()
    }

    /// Whether stored bytes are this version's bytes.
    pub fn is_stored_version(&self) -> bool {
        self.conversion().is_none()
    }

    /// The object as a tree in this resource's version.
    pub fn tree(&self, object: &Object) -> Value {
        let mut tree = object.tree();
        self.to_served(&mut tree);
        tree
    }

    /// Turns a tree of the stored form into one of this version.
    pub(crate) fn to_served(&self, tree: &mut Value) {
        if let Some(conversion) = self.conversion() {
            (conversion.from_stored)(tree);
        }
    }

    /// Turns a tree of this version into one of the stored form.
    pub(crate) fn to_stored(&self, tree: &mut Value) {
        if let Some(conversion) = self.conversion() {
            (conversion.to_stored)(tree);
        }
    }

    fn conversion(&self) -> Option<crate::Conversion> {
        self.storage.as_ref().and_then(|storage| storage.conversion)
    }

    /// Sets `kind` and `apiVersion`.
    pub(crate) fn stamp(&self, tree: &mut Value) {
        let object = tree.make_object();
        object.insert("kind", self.kind.clone());
        object.insert("apiVersion", self.api_version());
    }
}

/// The key of an object in its collection.
pub(crate) fn item(namespace: &str, name: &str) -> Str {
    if namespace.is_empty() {
        name.into()
    } else {
        let mut item = Str::with_capacity(namespace.len() + 1 + name.len());
        item.push_str(namespace);
        item.push('/');
        item.push_str(name);
        item
    }
}
