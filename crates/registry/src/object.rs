//! A committed object: its one encoding, and the index that selectors use.

mod body;
mod field_sets;
mod head;
mod index;
mod room;
mod template;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pintle_meta::Status;
use pintle_store::{Kind, Record, Revision, why_undecryptable};
use pintle_value::json::{self, Reader};
use pintle_value::{Str, Value};

use crate::encodings::Encodings;
use crate::{Resource, SelectableField};
use body::{Body, Divided, Settled};
pub(crate) use field_sets::FieldSets;
pub(crate) use head::ObjectHead;
use head::{OWNED_FIELDS, read_head};
pub use index::Index;
pub use template::{FRAME_TAIL, frame_head};
use template::{around_version, framed};
pub(crate) use template::{template, template_unchanged, template_with_metadata};

/// An object as it is stored and sent. The cache, all lists and all watches share it.
///
/// The bytes are the watch frame of the write that made this version
/// (`{"type":"MODIFIED","object":` … `}` and a newline). The object's JSON is a slice of the frame,
/// so each object is encoded once and held once. An object that was read from disk has no frame,
/// nor has one that was settled ([`Object::settled`]).
#[derive(Debug)]
pub struct Object<R: ?Sized = [u8]> {
    body: Body,
    /// Whether the bytes include the frame. The JSON's range follows from this and from `kind`; it
    /// is not stored, to save memory.
    is_framed: bool,
    kind: Kind,
    /// True once the bytes are known to be valid JSON.
    is_readable: AtomicBool,
    /// The key in its collection: `namespace/name`, or `name`.
    pub item: Arc<str>,
    /// The revision of the write that made this version.
    pub revision: Revision,
    /// See [`Object::number`].
    number: u64,
    index: OnceLock<Arc<Index>>,
    /// The number of a resource whose version of the object these bytes are known to be; 0 if none
    /// is known, or if its number is too large for this field. It is used only by definitions with
    /// a [`crate::StorageConverter`].
    view_of: AtomicU32,
    /// Further encodings of the object.
    pub(crate) encodings: Encodings,
    /// The JSON, if it lies in one allocation with the object ([`room`]).
    room: R,
}

/// Every object of the cluster has one: with its reference counts it takes 112 bytes.
const _: () = assert!(size_of::<Object<[u8; 0]>>() <= 96);

/// The number of the next object.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The error of a stored object whose bytes are not valid JSON, or whose value could not be
/// decrypted. An unreadable object is never treated as an empty one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored object {item:?} of revision {revision} cannot be read: {why}")]
pub struct Unreadable {
    /// The object's namespace and name.
    pub item: Arc<str>,
    /// The revision of the write that made this version.
    pub revision: Revision,
    /// The decoding error, or why decryption failed.
    pub why: String,
}

impl From<Unreadable> for Status {
    fn from(unreadable: Unreadable) -> Self {
        Self::internal(unreadable)
    }
}

impl Object {
    /// Makes the object of a record. The registry attaches the index as a note to its own writes.
    pub(crate) fn from_record(record: &Record) -> Arc<Self> {
        let note = record.note.clone().and_then(|note| note.downcast::<Index>().ok());
        let is_framed = record.body == framed(record.kind, record.bytes.len());
        let object = |body| Object {
            is_framed,
            // The registry attaches a note only to a tree that it has just encoded, so the bytes
            // are valid.
            is_readable: AtomicBool::new(note.is_some()),
            view_of: AtomicU32::new(note.as_ref().map_or(0, |note| small(note.view_of))),
            index: note.map_or_else(OnceLock::new, OnceLock::from),
            ..Object::new(body, record.key.item.clone(), record.revision, record.kind)
        };
        if is_framed {
            return Arc::new(object(Body::Whole(record.bytes.clone())));
        }
        let json = &record.bytes[record.body.clone()];
        let object = object(Body::Settled(Settled::Near(json.len())));
        room::place(object, json).unwrap_or_else(|object| {
            Arc::new(Object { body: Body::Whole(record.value()), ..object })
        })
    }

    /// Makes an object without a frame from bytes that were just encoded.
    pub(crate) fn bare(bytes: Bytes, item: Arc<str>, revision: Revision, kind: Kind) -> Arc<Self> {
        let is_readable = AtomicBool::new(true);
        Arc::new(Object { is_readable, ..Object::new(Body::Whole(bytes), item, revision, kind) })
    }

    /// Returns the same version of the object as it is held after it has left the history: it
    /// shares its field sets with other objects, or it lies in one allocation with its JSON. `None`
    /// if that would save no memory: because it is held so, because it is too large, or because
    /// something else holds its bytes, too, as a store in memory does.
    pub(crate) fn settled(&self, sets: &mut FieldSets) -> Option<Arc<Self>> {
        let json = match &self.body {
            Body::Whole(bytes) if bytes.is_unique() => self.abridged(),
            Body::Settled(Settled::Near(_)) => self.abridged(),
            Body::Whole(_) | Body::Settled(Settled::Divided(_)) => return None,
        };
        let settled = |settled| Object {
            is_readable: AtomicBool::new(self.is_checked()),
            index: self.index.clone(),
            view_of: AtomicU32::new(self.view_of.load(Ordering::Relaxed)),
            number: self.number,
            encodings: self.encodings.clone(),
            ..Object::new(Body::Settled(settled), self.item.clone(), self.revision, self.kind)
        };
        match (Divided::of(json, &self.item, sets), &self.body) {
            (Some(divided), _) => Some(Arc::new(settled(Settled::Divided(Box::new(divided))))),
            (None, Body::Settled(_)) => None,
            (None, Body::Whole(_)) => room::place(settled(Settled::Near(json.len())), json).ok(),
        }
    }

    /// Returns a number that no object with other bytes has.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Whether the object's value could not be decrypted.
    pub(crate) fn is_undecryptable(&self) -> bool {
        why_undecryptable(self.abridged()).is_some()
    }

    /// Returns the last state of a deleted object, with the revision of its deletion.
    pub(crate) fn deleted_at(&self, revision: Revision) -> Arc<Self> {
        let json = self.json();
        let bytes = match around_version(&json) {
            Some((before, after)) => {
                [before, format!("\"{revision}\"").as_bytes(), after].concat().into()
            }
            None => json, // a placeholder, or unreadable bytes
        };
        Self::bare(bytes, self.item.clone(), revision, Kind::Deleted)
    }

    /// Returns the JSON of the stored form, compact. Objects of built-in kinds begin with `kind`
    /// and `apiVersion`.
    pub fn json(&self) -> Bytes {
        match &self.body {
            Body::Whole(bytes) => bytes.slice(self.in_frame(bytes.len())),
            Body::Settled(Settled::Near(_)) => Bytes::copy_from_slice(self.abridged()),
            Body::Settled(Settled::Divided(divided)) => divided.json(),
        }
    }

    /// Returns the JSON, if it is in one piece.
    pub fn piece(&self) -> Option<&[u8]> {
        match &self.body {
            Body::Settled(Settled::Divided(_)) => None,
            Body::Whole(_) | Body::Settled(Settled::Near(_)) => Some(self.abridged()),
        }
    }

    /// Returns the JSON, in which field sets that are shared with other objects are empty: for
    /// searches that field sets do not concern. It is valid JSON if the whole is.
    pub fn abridged(&self) -> &[u8] {
        match &self.body {
            Body::Whole(bytes) => &bytes[self.in_frame(bytes.len())],
            Body::Settled(Settled::Near(len)) => &self.room[..*len],
            Body::Settled(Settled::Divided(divided)) => divided.abridged(),
        }
    }

    /// Returns the parts of the JSON, in order. The first one ends behind `kind`, `apiVersion` and
    /// the beginning of `metadata`.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let (whole, divided) = match &self.body {
            Body::Whole(_) | Body::Settled(Settled::Near(_)) => (Some(self.abridged()), None),
            Body::Settled(Settled::Divided(divided)) => (None, Some(divided.pieces())),
        };
        whole.into_iter().chain(divided.into_iter().flatten())
    }

    /// Returns the stored watch frame, if it has the event type `kind` that the watcher must get.
    pub fn frame(&self, kind: Kind) -> Option<Bytes> {
        match &self.body {
            Body::Whole(bytes) if kind == self.kind && self.is_framed => Some(bytes.clone()),
            _ => None,
        }
    }

    const fn in_frame(&self, len: usize) -> Range<usize> {
        if self.is_framed { framed(self.kind, len) } else { 0..len }
    }

    /// Whether these bytes are known to be the object in a resource's version.
    pub(crate) fn is_view_of(&self, resource: u64) -> bool {
        resource != 0 && u64::from(self.view_of.load(Ordering::Relaxed)) == resource
    }

    /// Records that these bytes are the object in a resource's version.
    pub(crate) fn mark_view_of(&self, resource: u64) {
        self.view_of.store(small(resource), Ordering::Relaxed);
    }

    /// Returns which change made this version.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the length of the object's JSON.
    pub fn size(&self) -> usize {
        match &self.body {
            Body::Whole(bytes) => self.in_frame(bytes.len()).len(),
            Body::Settled(Settled::Near(len)) => *len,
            Body::Settled(Settled::Divided(divided)) => divided.len(),
        }
    }

    /// Returns the namespace, `""` for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        self.item.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.item.split_once('/').map_or(&*self.item, |(_, name)| name)
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// If the bytes are not valid.
    pub fn tree(&self) -> Result<Value, Unreadable> {
        let parse = match self.is_readable.load(Ordering::Relaxed) {
            true => json::parse_valid_with_raw,
            false => json::parse_with_raw,
        };
        let mut tree = parse(self.abridged(), OWNED_FIELDS).map_err(|why| self.unreadable(why))?;
        self.complete(&mut tree);
        Ok(tree)
    }

    /// Decodes only `apiVersion`, `metadata` and the members at `paths` of the stored form.
    ///
    /// # Errors
    /// If the bytes are not valid.
    pub(crate) fn head(&self, paths: &[&[&str]]) -> Result<ObjectHead, Unreadable> {
        self.check()?;
        let text = json::text(self.abridged());
        let head = read_head(&mut Reader::of_valid(&text), paths);
        let mut head = head.map_err(|why| self.unreadable(why))?;
        self.complete(&mut head.tree);
        if matches!(text, Cow::Owned(_)) {
            head.metadata = 0..0; // the text was repaired, so offsets in it are not those of the bytes
        }
        Ok(head)
    }

    /// Puts the shared field sets into a tree of the abridged JSON.
    fn complete(&self, tree: &mut Value) {
        if let Body::Settled(Settled::Divided(divided)) = &self.body {
            divided.complete(tree);
        }
    }

    /// Checks that the bytes are valid before a caller hands them out. The result is remembered.
    ///
    /// # Errors
    /// If the bytes are not valid.
    pub fn check(&self) -> Result<(), Unreadable> {
        if !self.is_readable.load(Ordering::Relaxed) {
            json::check(self.abridged()).map_err(|why| self.unreadable(why))?;
            self.is_readable.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns an object with only type, name, namespace and resource version, in place of an
    /// unreadable one.
    pub(crate) fn identity(&self, resource: &Resource) -> Value {
        let mut tree = Value::object();
        resource.stamp(&mut tree);
        let metadata = pintle_meta::object::metadata_mut(&mut tree);
        metadata.insert("name", self.name());
        if !self.namespace().is_empty() {
            metadata.insert("namespace", self.namespace());
        }
        metadata.insert("resourceVersion", self.revision.to_string());
        tree
    }

    /// Decodes only the members at `paths` of the stored form, field sets excepted. It is used where
    /// few members of many objects are needed.
    ///
    /// # Errors
    /// If the bytes are not valid.
    pub fn excerpt(&self, paths: &[&[&str]]) -> Result<Value, Unreadable> {
        self.check()?; // `json::excerpt` skips the rest unchecked
        json::excerpt(self.abridged(), paths).map_err(|why| self.unreadable(why))
    }

    /// Iterates over the members of the metadata in the [`abridged`](Self::abridged) JSON, as
    /// [`json::member_starts`] does.
    ///
    /// # Errors
    /// If the bytes are not valid.
    pub fn metadata(&self) -> Result<impl Iterator<Item = (&[u8], &[u8])>, Unreadable> {
        self.check()?;
        let mut members = json::member_starts(self.abridged());
        let metadata = members.find(|(name, _)| *name == b"metadata");
        Ok(json::member_starts(metadata.map_or(&[], |(_, metadata)| metadata)))
    }

    /// Returns the error of a value that cannot be decoded.
    pub fn unreadable(&self, why: pintle_value::Error) -> Unreadable {
        let why = why_undecryptable(self.abridged()).map_or_else(|| why.to_string(), str::to_owned);
        Unreadable { item: self.item.clone(), revision: self.revision, why }
    }

    /// Whether the bytes are known to be valid.
    pub(crate) fn is_checked(&self) -> bool {
        self.is_readable.load(Ordering::Relaxed)
    }

    /// Whether the index was read already.
    pub(crate) fn is_indexed(&self) -> bool {
        self.index.get().is_some()
    }

    /// Returns the index that a resource's selectors use.
    pub(crate) fn index(&self, resource: &Resource) -> Result<&Index, Unreadable> {
        self.index_by(resource.strategy.fields(), |tree| resource.index(tree))
    }

    /// Returns the value of a selectable field, by its position in the resource's
    /// `Strategy::fields`.
    ///
    /// # Errors
    /// If the object cannot be read.
    pub(crate) fn field(
        &self,
        resource: &Resource,
        position: usize,
    ) -> Result<Cow<'_, str>, Unreadable> {
        self.index(resource)?;
        self.field_once(resource, position)
    }

    /// Returns the same as [`Object::field`], but does not keep the index of an object that has
    /// none yet: for a look at many objects.
    ///
    /// # Errors
    /// If the object cannot be read.
    pub(crate) fn field_once(
        &self,
        resource: &Resource,
        position: usize,
    ) -> Result<Cow<'_, str>, Unreadable> {
        if let Some(index) = self.index.get()
            && index.fields_id == resource.fields_id
        {
            return Ok(Cow::Borrowed(index.fields.get(position).map_or("", Str::as_str)));
        }
        let Some(field) = resource.strategy.fields().get(position) else {
            return Ok(Cow::default());
        };
        let tree = self.selectable(std::slice::from_ref(field))?;
        Ok(Cow::Owned(field.value.of(&tree).into()))
    }

    /// Returns the index; reads it out of the object on first use if the writer did not attach it.
    ///
    /// # Errors
    /// If the object cannot be read.
    pub fn indexed(&self, fields: &[SelectableField]) -> Result<&Index, Unreadable> {
        self.index_by(fields, |tree| Index::of(tree, fields))
    }

    fn index_by(
        &self,
        fields: &[SelectableField],
        read: impl FnOnce(&Value) -> Index,
    ) -> Result<&Index, Unreadable> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let index = Arc::new(read(&self.selectable(fields)?));
        Ok(self.index.get_or_init(|| index))
    }

    /// Returns the index, to attach it to a write that changes nothing that selectors read.
    pub(crate) fn shared_index(&self, resource: &Resource) -> Result<Arc<Index>, Unreadable> {
        let index = self.index(resource)?;
        Ok(self.index.get().cloned().unwrap_or_else(|| Arc::new(index.clone())))
    }

    /// Decodes the members that selectors read.
    pub(crate) fn selectable(&self, fields: &[SelectableField]) -> Result<Value, Unreadable> {
        let mut paths = vec![vec!["metadata", "labels"]];
        paths.extend(fields.iter().flat_map(|field| field.value.reads()));
        self.excerpt(&paths.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }
}

/// A resource's number in the field of an object; 0 if it is too large.
fn small(resource: u64) -> u32 {
    u32::try_from(resource).unwrap_or(0)
}

impl Object<[u8; 0]> {
    /// Makes an object without a frame.
    fn new(body: Body, item: Arc<str>, revision: Revision, kind: Kind) -> Self {
        Self {
            body,
            is_framed: false,
            kind,
            is_readable: AtomicBool::new(false),
            item,
            revision,
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            index: OnceLock::new(),
            view_of: AtomicU32::new(0),
            encodings: Encodings::default(),
            room: [],
        }
    }

    /// Returns the object with room for its JSON.
    fn with_room<R>(self, room: R) -> Object<R> {
        Object {
            body: self.body,
            is_framed: self.is_framed,
            kind: self.kind,
            is_readable: self.is_readable,
            item: self.item,
            revision: self.revision,
            number: self.number,
            index: self.index,
            view_of: self.view_of,
            encodings: self.encodings,
            room,
        }
    }
}
