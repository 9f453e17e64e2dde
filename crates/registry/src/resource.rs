//! A served resource: its definition, and its collection in the cache.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use pintle_apply::server_side::Filter;
use pintle_meta::{Status, object};
use pintle_store::Key;
use pintle_value::{Map, Str, Value, json};
use tokio::sync::watch;

use crate::cache::Collection;
use crate::encodings::{EncodingCache, Extra};
use crate::object::Index;
use crate::{
    Attached, FieldText, Object, Owned, ResourceDefinition, StorageConverter, Unreadable, work,
};

/// The type of metadata.
const METADATA_TYPE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// A served resource.
pub struct Resource {
    /// What it is.
    pub definition: ResourceDefinition,
    /// What its users attach to it.
    pub attached: Attached,
    /// Its objects; `None` for a virtual resource.
    collection: Option<Arc<Collection>>,
    /// Bounds the memory of further encodings of its objects.
    pub(crate) encoding_cache: Arc<EncodingCache>,
    /// Tells this definition from all others that there were.
    pub(crate) number: u64,
    /// Tells the selectable fields of a definition that may change from those that it had before; 0
    /// where they never change.
    pub(crate) fields_id: u64,
    /// Set when another definition replaces this one, or it is removed.
    retired: Arc<watch::Sender<bool>>,
    /// What writes to it can make somebody the owner of: first to itself, then to its subresources in
    /// their order.
    filters: Box<[Filter]>,
}

impl Deref for Resource {
    type Target = ResourceDefinition;

    fn deref(&self) -> &ResourceDefinition {
        &self.definition
    }
}

/// How much there is of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// How many objects.
    pub objects: usize,
    /// The size of their JSON.
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
        }
    }

    /// What selectors look at in an object of the stored form.
    pub(crate) fn index(&self, object: &Value) -> Index {
        let fields_id = self.fields_id;
        Index { fields_id, ..Index::of(object, self.strategy.fields()) }
    }

    /// How much work objects of so many bytes are, as [`work::ahead`] takes it.
    pub(crate) fn work(&self, bytes: usize) -> usize {
        if self.strategy.takes_long() { usize::MAX } else { bytes }
    }

    /// Replaces another resource, whose watches go on and end with this one's.
    pub(crate) fn succeeding(self, other: &Self) -> Self {
        Self { retired: other.retired.clone(), ..self }
    }

    /// What writes to a part of it, or to itself (`""`), can make somebody the owner of.
    pub(crate) fn filter(&self, subresource: &str) -> &Filter {
        let part = self.subresources.iter().position(|part| part.name == subresource);
        &self.filters[part.map_or(0, |part| part + 1)]
    }

    /// Ends the watches of this definition.
    pub(crate) fn retire(&self) {
        self.retired.send_replace(true);
    }

    /// Returns when the resource is defined in another way, or no longer. Cancel safe.
    pub(crate) async fn retired(&self) {
        // The sender lives as long as `self`.
        let _ = self.retired.subscribe().wait_for(|retired| *retired).await;
    }

    /// The resource's objects; a `Status` for a virtual resource, which has none.
    pub(crate) fn collection(&self) -> Result<&Arc<Collection>, Status> {
        self.collection
            .as_ref()
            .ok_or_else(|| Status::method_not_allowed(&self.group_resource(), "this verb"))
    }

    /// How much there is of it; nothing of a virtual one.
    pub fn extent(&self) -> Extent {
        self.collection.as_ref().map(|collection| collection.extent()).unwrap_or_default()
    }

    /// The store's key of an object.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> Result<Key, Status> {
        let storage = self.storage.as_ref();
        let storage = storage
            .ok_or_else(|| Status::method_not_allowed(&self.group_resource(), "this verb"))?;
        Ok(Key { collection: storage.collection.clone(), item: item(namespace, name).into() })
    }

    /// The metadata of an object in JSON, as it is shown by itself.
    pub fn metadata<'j>(&self, object: &'j [u8]) -> Option<Cow<'j, [u8]>> {
        let metadata = object.get(json::member(object, "metadata")?)?;
        if self.strategy.stand_in().is_none() {
            return Some(Cow::Borrowed(metadata));
        }
        let mut tree = Value::from([("metadata", json::parse(metadata).ok()?)]);
        self.forget_stand_in(&mut tree);
        let (ty, mut shown) =
            (self.schema.find(METADATA_TYPE)?, Vec::with_capacity(metadata.len()));
        pintle_schema::encode::write(&self.schema, ty, tree.get("metadata")?, &mut shown);
        Some(Cow::Owned(shown))
    }

    /// Takes out of an object's metadata what stands there for something else.
    pub(crate) fn forget_stand_in(&self, object: &mut Value) {
        let Some((name, _)) = self.strategy.stand_in() else { return };
        let metadata = object::metadata_mut(object);
        let Some(annotations) = metadata.get_mut("annotations") else { return };
        annotations.make_object().remove(name);
        if annotations.as_object().is_none_or(Map::is_empty) {
            metadata.remove("annotations");
        }
    }

    /// An object of this resource of which nothing is known but its metadata.
    pub fn zero(&self) -> Value {
        let mut object = pintle_schema::zero(&self.schema, self.ty);
        let members = object.make_object();
        members.insert("kind", Value::from(self.kind.as_str()));
        members.insert("apiVersion", Value::from(self.api_version()));
        if let Some((name, zero)) = self.strategy.stand_in() {
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

    /// The JSON of an object in this resource's version: the stored bytes themselves where this is the
    /// stored version.
    pub fn view(&self, object: &Arc<Object>) -> Bytes {
        match self.conversion() {
            None => object.json(),
            Some(_) => self.encoded(object, Extra::Json).document(),
        }
    }

    /// Whether stored bytes are this version's bytes.
    pub fn is_stored_version(&self) -> bool {
        self.conversion().is_none()
    }

    /// Whether this is the storage version: an object written now is read without conversion.
    pub fn is_storage_version(&self) -> bool {
        self.is_stored_version() && self.converter().is_none_or(StorageConverter::writes_own_form)
    }

    /// The object as a tree in this resource's version.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn tree(&self, object: &Object) -> Result<Value, Status> {
        let mut tree = self.stored_tree(object)?;
        self.to_served(&mut tree);
        Ok(tree)
    }

    /// The object as a tree of the stored form.
    fn stored_tree(&self, object: &Object) -> Result<Value, Status> {
        object.tree().map_err(|why| self.unreadable(&why))
    }

    /// Makes sure that objects can be read before anybody is given their bytes.
    pub(crate) fn check<'o>(
        &self,
        objects: impl IntoIterator<Item = &'o Arc<Object>>,
    ) -> Result<(), Status> {
        objects
            .into_iter()
            .try_for_each(|object| object.check())
            .map_err(|why| self.unreadable(&why))
    }

    fn unreadable(&self, why: &Unreadable) -> Status {
        self.collection.iter().for_each(|collection| collection.reads.unreadable.add(1));
        tracing::error!(resource = %self.group_resource(), "{why}");
        Status::internal(format_args!("{}: {why}", self.group_resource()))
    }

    fn conversion(&self) -> Option<crate::Conversion> {
        self.storage.as_ref().and_then(|storage| storage.conversion)
    }

    /// Converts between the strategy's form and the stored one, where they differ.
    pub(crate) fn converter(&self) -> Option<&dyn StorageConverter> {
        self.storage.as_ref()?.converter.as_deref()
    }

    /// A stored object as a tree of the strategy's form.
    pub(crate) async fn current(&self, object: &Object) -> Result<Value, Status> {
        let tree = self.stored_tree(object)?;
        match self.converter() {
            Some(converter) if !self.is_stored_form(object) => {
                work::ahead(self.work(object.size())).await;
                let read = converter.to_own_form(vec![tree]).await?;
                Ok(read.into_iter().next().unwrap_or_default())
            }
            _ => Ok(tree),
        }
    }

    /// Whether the stored bytes of an object are its strategy's form already.
    pub(crate) fn is_stored_form(&self, object: &Object) -> bool {
        self.converter().is_none() || object.is_view_of(self.number)
    }

    /// The stored form of a tree of the strategy's form.
    pub(crate) async fn to_storage<'t>(&self, tree: &'t Value) -> Result<Cow<'t, Value>, Status> {
        let Some(converter) = self.converter() else { return Ok(Cow::Borrowed(tree)) };
        let stored = converter.to_storage(vec![tree.clone()]).await?;
        Ok(Cow::Owned(stored.into_iter().next().unwrap_or_default()))
    }

    /// A tree as it would be read after it was stored: the storage version may lack some of its fields.
    pub(crate) async fn read_back(&self, tree: Value) -> Result<Value, Status> {
        let Some(converter) = self.converter() else { return Ok(tree) };
        let read = converter.to_own_form(converter.to_storage(vec![tree]).await?).await?;
        Ok(read.into_iter().next().unwrap_or_default())
    }

    /// Stored objects as they are answered: those whose stored bytes differ from this definition's view are
    /// converted together, and made anew.
    pub(crate) async fn answered(
        &self,
        mut objects: Vec<Arc<Object>>,
    ) -> Result<Vec<Arc<Object>>, Status> {
        let Some(converter) = self.converter() else { return Ok(objects) };
        let unread = |object: &&mut Arc<Object>| !object.is_view_of(self.number);
        let mut unread: Vec<_> = objects.iter_mut().filter(unread).collect();
        if unread.is_empty() {
            return Ok(objects);
        }
        work::ahead(self.work(unread.iter().map(|object| object.size()).sum())).await;
        let trees = unread.iter().map(|object| self.stored_tree(object));
        let read = converter.to_own_form(trees.collect::<Result<_, _>>()?).await?;
        for (object, tree) in unread.iter_mut().zip(read) {
            let mut bytes = Vec::with_capacity(object.size());
            pintle_schema::encode::write(&self.schema, self.ty, &tree, &mut bytes);
            if bytes == object.json_bytes() {
                object.mark_view_of(self.number);
            } else {
                let (item, revision) = (object.item.clone(), object.revision);
                let made = Object::bare(bytes.into(), item, revision, object.kind());
                made.mark_view_of(self.number);
                **object = Arc::new(made);
            }
        }
        Ok(objects)
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
