//! Objects in the versions of a resource: decoding them, and converting them between the stored
//! form, the strategy's form, and the version of a request.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use pintle_meta::Status;
use pintle_value::Value;

use crate::encodings::Extra;
use crate::object::ObjectHead;
use crate::{Object, Resource, StorageConverter, Unreadable, work};

/// JSON to read.
pub enum View<'o> {
    /// An object's own.
    Piece(&'o [u8]),
    /// JSON that was made of several pieces, or of another version.
    Made(Bytes),
}

impl Deref for View<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Piece(piece) => piece,
            Self::Made(made) => made,
        }
    }
}

impl Resource {
    /// Returns an object's JSON in this resource's version: the stored bytes, if this is the stored
    /// version.
    pub fn json(&self, object: &Arc<Object>) -> Bytes {
        match self.conversion() {
            None => object.json(),
            Some(_) => self.encoded(object, Extra::Json).document(),
        }
    }

    /// As [`json`](Self::json), without a copy of JSON that is in one piece.
    pub fn view<'o>(&self, object: &'o Arc<Object>) -> View<'o> {
        match object.piece() {
            Some(piece) if self.is_stored_version() => View::Piece(piece),
            _ => View::Made(self.json(object)),
        }
    }

    /// Whether the stored bytes are of this version.
    pub fn is_stored_version(&self) -> bool {
        self.conversion().is_none()
    }

    /// Whether this is the storage version, so that an object written now is read without
    /// conversion.
    pub fn is_storage_version(&self) -> bool {
        self.is_stored_version() && self.converter().is_none_or(StorageConverter::writes_own_form)
    }

    /// Decodes an object and converts it to this resource's version.
    ///
    /// # Errors
    /// If the stored bytes cannot be decoded.
    pub fn tree(&self, object: &Object) -> Result<Value, Status> {
        let mut tree = self.stored_tree(object)?;
        self.to_served(&mut tree);
        Ok(tree)
    }

    /// Decodes an object without converting it.
    fn stored_tree(&self, object: &Object) -> Result<Value, Status> {
        object.tree().map_err(|why| self.unreadable(&why))
    }

    /// Decodes `apiVersion`, `metadata` and the members at `paths` of an object, without converting
    /// it.
    pub(crate) fn head(&self, object: &Object, paths: &[&[&str]]) -> Result<ObjectHead, Status> {
        object.head(paths).map_err(|why| self.unreadable(&why))
    }

    /// Checks that stored bytes are valid before a caller hands them out.
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

    /// Returns the converter between the strategy's form and the stored form, if there is one.
    pub(crate) fn converter(&self) -> Option<&dyn StorageConverter> {
        self.storage.as_ref()?.converter.as_deref()
    }

    /// Decodes an object and converts it to the strategy's form.
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

    /// Whether the stored bytes of an object are in the strategy's form already.
    pub(crate) fn is_stored_form(&self, object: &Object) -> bool {
        self.converter().is_none() || object.is_view_of(self.number)
    }

    /// Converts a tree from the strategy's form to the stored form.
    pub(crate) async fn to_storage<'t>(&self, tree: &'t Value) -> Result<Cow<'t, Value>, Status> {
        let Some(converter) = self.converter() else { return Ok(Cow::Borrowed(tree)) };
        let stored = converter.to_storage(vec![tree.clone()]).await?;
        Ok(Cow::Owned(stored.into_iter().next().unwrap_or_default()))
    }

    /// Returns the tree as a read after the write would: the storage version may lack some fields.
    pub(crate) async fn read_back(&self, tree: Value) -> Result<Value, Status> {
        let Some(converter) = self.converter() else { return Ok(tree) };
        let read = converter.to_own_form(converter.to_storage(vec![tree]).await?).await?;
        Ok(read.into_iter().next().unwrap_or_default())
    }

    /// Returns the objects in this definition's version. One call of the converter converts all
    /// objects whose bytes are not known to be in that version. A new object replaces an object
    /// whose bytes the conversion changes.
    pub(crate) async fn in_own_version(
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
            if bytes == object.json() {
                object.mark_view_of(self.number);
            } else {
                let (item, revision) = (object.item.clone(), object.revision);
                let made = Object::bare(bytes.into(), item, revision, object.kind());
                made.mark_view_of(self.number);
                **object = made;
            }
        }
        Ok(objects)
    }
}
