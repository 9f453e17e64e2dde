//! A served resource: its definition, and its collection in the watch cache.

mod versions;

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Deref;
use std::sync::Arc;

use pintle_apply::server_side::{CreatedFields, Filter};
use pintle_meta::{Status, object};
use pintle_store::Key;
use pintle_value::{Map, Str, Value, json};
use tokio::sync::watch;

use crate::cache::Collection;
use crate::encodings::EncodingCache;
use crate::object::Index;
use crate::{Attached, FieldText, Owned, ResourceDefinition};
pub use versions::View;

/// The schema's name of `metadata`'s type.
const METADATA_TYPE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// A served resource.
pub struct Resource {
    /// The definition that it serves.
    pub definition: ResourceDefinition,
    /// Values that users of the registry attach to the resource.
    pub attached: Attached,
    /// The objects in the watch cache; `None` for a virtual resource.
    collection: Option<Arc<Collection>>,
    /// Bounds the memory of further encodings of the objects.
    pub(crate) encoding_cache: Arc<EncodingCache>,
    /// A number that no other definition has had since the start.
    pub(crate) number: u64,
    /// Identifies the set of selectable fields of a definition that can change; 0 for a definition
    /// that cannot.
    pub(crate) fields_id: u64,
    /// Becomes true when the definition is replaced or removed.
    retired: Arc<watch::Sender<bool>>,
    /// The fields that a writer can own: of the object first, then of each subresource in order.
    filters: Box<[Filter]>,
    /// The fields of the objects that were created last.
    created_fields: CreatedFields,
}

impl Deref for Resource {
    type Target = ResourceDefinition;

    fn deref(&self) -> &ResourceDefinition {
        &self.definition
    }
}

/// The number and size of a resource's objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The number of objects.
    pub objects: usize,
    /// The size of the objects in bytes: their JSON with its watch frames.
    pub bytes: usize,
}

impl Resource {
    pub(crate) fn new(
        definition: ResourceDefinition,
        collection: Option<Arc<Collection>>,
        encoding_cache: Arc<EncodingCache>,
        number: u64,
    ) -> Self {
        let parts = definition.subresources.iter().map(|part| part.name.as_str());
        let filter = |part: &str| match definition.strategy.owned(part) {
            Owned::Except(members) => Filter::except(members),
            Owned::Only(members) => Filter::only(members),
        };
        let filters = [""].into_iter().chain(parts).map(filter).collect();
        let retired = Arc::new(watch::Sender::new(false));
        let fields_id = fields_id(&definition);
        let attached = Attached::default();
        Self {
            definition,
            attached,
            collection,
            encoding_cache,
            number,
            fields_id,
            retired,
            filters,
            created_fields: CreatedFields::default(),
        }
    }

    /// Returns a number that no other definition has had since the start.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Reads the index (labels and selectable fields) out of an object of the stored form.
    pub(crate) fn index(&self, object: &Value) -> Index {
        let fields_id = self.fields_id;
        Index { fields_id, ..Index::of(object, self.strategy.fields()) }
    }

    /// Returns how much work `bytes` of objects are, for [`crate::work::ahead`].
    pub(crate) fn work(&self, bytes: usize) -> usize {
        if self.strategy.is_expensive() { usize::MAX } else { bytes }
    }

    /// Takes over the watches of the definition that this one replaces.
    pub(crate) fn taking_over_watches_of(self, other: &Self) -> Self {
        Self { retired: other.retired.clone(), ..self }
    }

    /// Returns the fields that a writer of a subresource, or of the object (`""`), can own.
    pub(crate) fn filter(&self, subresource: &str) -> &Filter {
        let part = self.subresources.iter().position(|part| part.name == subresource);
        &self.filters[part.map_or(0, |part| part + 1)]
    }

    /// Returns the fields of the objects that were created last. Creates by writes of a subresource
    /// are too rare to remember.
    pub(crate) fn created_fields(&self, subresource: &str) -> Option<&CreatedFields> {
        subresource.is_empty().then_some(&self.created_fields)
    }

    /// Ends the watches of this definition.
    pub(crate) fn retire(&self) {
        self.retired.send_replace(true);
    }

    /// Waits until the definition is replaced or removed. Cancel safe.
    pub(crate) async fn retired(&self) {
        // The sender lives as long as `self`.
        let _ = self.retired.subscribe().wait_for(|retired| *retired).await;
    }

    /// Returns the collection, or a `Status` for a virtual resource.
    pub(crate) fn collection(&self) -> Result<&Arc<Collection>, Status> {
        self.collection
            .as_ref()
            .ok_or_else(|| Status::method_not_allowed(&self.group_resource(), "this verb"))
    }

    /// Returns the number and size of the objects; zero for a virtual resource.
    pub fn extent(&self) -> Extent {
        self.collection.as_ref().map(|collection| collection.extent()).unwrap_or_default()
    }

    /// Returns an object's key in the store.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> Result<Key, Status> {
        let storage = self.storage.as_ref();
        let storage = storage
            .ok_or_else(|| Status::method_not_allowed(&self.group_resource(), "this verb"))?;
        Ok(Key { collection: storage.collection.clone(), item: item(namespace, name).into() })
    }

    /// Returns the JSON of an object's metadata, as PartialObjectMetadata shows it.
    pub fn metadata<'j>(&self, object: &'j [u8]) -> Option<Cow<'j, [u8]>> {
        let metadata = object.get(json::member(object, "metadata")?)?;
        if self.strategy.internal_annotation().is_none() {
            return Some(Cow::Borrowed(metadata));
        }
        let mut tree = Value::from([("metadata", json::parse(metadata).ok()?)]);
        self.remove_internal_annotation(&mut tree);
        let (ty, mut shown) =
            (self.schema.find(METADATA_TYPE)?, Vec::with_capacity(metadata.len()));
        pintle_schema::encode::write(&self.schema, ty, tree.get("metadata")?, &mut shown);
        Some(Cow::Owned(shown))
    }

    /// Removes the annotation that stands for a member of upstream's internal form.
    pub(crate) fn remove_internal_annotation(&self, object: &mut Value) {
        let Some((name, _)) = self.strategy.internal_annotation() else { return };
        let metadata = object::metadata_mut(object);
        let Some(annotations) = metadata.get_mut("annotations") else { return };
        annotations.make_object().remove(name);
        if annotations.as_object().is_none_or(Map::is_empty) {
            metadata.remove("annotations");
        }
    }

    /// Returns an object with zero values only, as upstream's decoder creates one.
    pub fn zero(&self) -> Value {
        let mut object = pintle_schema::zero(&self.schema, self.ty);
        let members = object.make_object();
        members.insert("kind", Value::from(self.kind.as_str()));
        members.insert("apiVersion", Value::from(self.api_version()));
        if let Some((name, zero)) = self.strategy.internal_annotation() {
            members.entry_object("metadata").entry_object("annotations").insert(name, zero);
        }
        for path in self.strategy.zeros() {
            let Some((last, parents)) = path.split_last() else { continue };
            let parent =
                parents.iter().fold(object.make_object(), |at, name| at.entry_object(name));
            parent.insert(*last, Value::Int(0));
        }
        object
    }

    /// Sets `kind` and `apiVersion`.
    pub fn stamp(&self, tree: &mut Value) {
        let object = tree.make_object();
        object.insert("kind", self.kind.clone());
        object.insert("apiVersion", self.api_version());
    }
}

fn fields_id(definition: &ResourceDefinition) -> u64 {
    let storage = definition.storage.as_ref();
    if storage.is_none_or(|storage| storage.converter.is_none()) {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    for field in definition.strategy.fields() {
        if let FieldText::At(path) = &field.value {
            path.hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Returns an object's key in its collection.
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
