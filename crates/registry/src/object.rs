//! A committed object: its one encoding, and what selection needs of it.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pintle_meta::Status;
use pintle_store::{Kind, Record, Revision, Template, why_undecryptable};
use pintle_value::{Str, Value, json};

use crate::encodings::Encodings;
use crate::{Resource, ResourceDefinition, SelectableField};

/// An object as it is stored and sent. Shared by the cache, every list and every watch.
///
/// The bytes are the watch frame of the write that made this version (`{"type":"MODIFIED","object":`
/// … `}` and a newline), and the object's JSON is a slice of it: encoded once, held once. An object
/// that was read back from the disk has no frame around it.
#[derive(Debug)]
pub struct Object {
    bytes: Bytes,
    /// Whether there is a frame around it. Where the object is follows from that and the kind: there are
    /// many objects, so what follows is not kept.
    is_framed: bool,
    kind: Kind,
    /// See [`Object::message_len`]; 0 where it is not known.
    message_len: AtomicU32,
    /// It is known that its bytes can be read.
    is_readable: AtomicBool,
    /// `namespace/name`, or `name`: the key in its collection.
    pub item: Arc<str>,
    /// The write that made this version.
    pub revision: Revision,
    index: OnceLock<Arc<Index>>,
    /// The number of the resource whose view of the object these very bytes are known to be; only asked
    /// where a definition has a [`crate::StorageConverter`].
    view_of: AtomicU64,
    /// What it is in other encodings.
    pub(crate) encodings: Encodings,
}

/// Why a stored object cannot be used: its bytes are not what this program writes. It is never taken for
/// an empty object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored object {item:?} of revision {revision} cannot be read: {why}")]
pub struct Unreadable {
    /// Its namespace and name.
    pub item: Arc<str>,
    /// The write that made this version of it.
    pub revision: Revision,
    /// What is wrong with its bytes, or why they could not be decrypted.
    pub why: String,
}

impl From<Unreadable> for Status {
    fn from(unreadable: Unreadable) -> Self {
        Self::internal(unreadable)
    }
}

/// What selectors look at, apart from name and namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Labels, sorted by key.
    pub labels: Vec<(Str, Str)>,
    /// The values of the resource's selectable fields, in the order of `Strategy::fields`.
    pub fields: Vec<Str>,
    /// Which fields they are ([`Resource::fields_id`]): a definition may come to have others.
    pub(crate) fields_id: u64,
    /// See [`Object::is_view_of`]; 0 where nothing is known.
    pub(crate) view_of: u64,
}

impl Index {
    /// Reads the index out of an object of the stored form, or of an excerpt that has what it goes by.
    pub fn of(object: &Value, fields: &[SelectableField]) -> Self {
        let labels = pintle_meta::object::labels(object);
        Self {
            labels: labels
                .into_iter()
                .flat_map(pintle_value::Map::iter)
                .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().into()))
                .collect(),
            fields: fields.iter().map(|field| field.value.of(object)).collect(),
            fields_id: 0,
            view_of: 0,
        }
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }
}

impl Object {
    /// The object that a record holds. The note of the registry's own writes is the object's index.
    pub(crate) fn from_record(record: &Record) -> Self {
        let index = OnceLock::new();
        let view_of = AtomicU64::new(0);
        if let Some(note) = record.note.clone().and_then(|note| note.downcast::<Index>().ok()) {
            view_of.store(note.view_of, Ordering::Relaxed);
            index.get_or_init(|| note);
        }
        let is_framed = record.body == framed(record.kind, record.bytes.len());
        // What has a note was encoded by this process, from a tree that could be read.
        let is_readable = AtomicBool::new(index.get().is_some());
        Self {
            bytes: if is_framed { record.bytes.clone() } else { record.value() },
            is_framed,
            is_readable,
            kind: record.kind,
            message_len: AtomicU32::new(0),
            item: record.key.item.clone(),
            revision: record.revision,
            index,
            view_of,
            encodings: Encodings::default(),
        }
    }

    /// Whether its value could not be decrypted.
    pub(crate) fn is_undecryptable(&self) -> bool {
        why_undecryptable(&self.bytes).is_some()
    }

    /// An object without a frame, whose bytes were just encoded.
    pub(crate) fn bare(bytes: Bytes, item: Arc<str>, revision: Revision, kind: Kind) -> Self {
        let (index, view_of) = (OnceLock::new(), AtomicU64::new(0));
        let encodings = Encodings::default();
        let message_len = AtomicU32::new(0);
        let is_readable = AtomicBool::new(true);
        Self {
            bytes,
            is_framed: false,
            kind,
            message_len,
            is_readable,
            item,
            revision,
            index,
            view_of,
            encodings,
        }
    }

    /// The object's last state, at the revision of its deletion.
    pub(crate) fn deleted_at(&self, revision: Revision) -> Self {
        let json = self.json_bytes();
        let bytes = match json::at(json, &["metadata", "resourceVersion"]) {
            Some(version) => {
                let version = (&json[..version.start], &json[version.end..]);
                [version.0, format!("\"{revision}\"").as_bytes(), version.1].concat().into()
            }
            None => self.json(), // a mark, or what cannot be read
        };
        Self::bare(bytes, self.item.clone(), revision, Kind::Deleted)
    }

    /// The object's JSON in its stored form, compact; built-in kinds have `kind` and `apiVersion`
    /// first.
    pub fn json(&self) -> Bytes {
        self.bytes.slice(self.body())
    }

    /// The object's JSON, borrowed.
    pub fn json_bytes(&self) -> &[u8] {
        &self.bytes[self.body()]
    }

    /// The watch frame of the write that made this version, if that is what a watcher should be told
    /// (`kind`) and the frame is at hand.
    pub fn frame(&self, kind: Kind) -> Option<Bytes> {
        (kind == self.kind && self.is_framed).then(|| self.bytes.clone())
    }

    const fn body(&self) -> Range<usize> {
        let len = self.bytes.len();
        if self.is_framed { framed(self.kind, len) } else { 0..len }
    }

    /// Whether these very bytes are what a resource shows of the object.
    pub(crate) fn is_view_of(&self, resource: u64) -> bool {
        self.view_of.load(Ordering::Relaxed) == resource
    }

    /// Remembers that these very bytes are what a resource shows of the object.
    pub(crate) fn mark_view_of(&self, resource: u64) {
        self.view_of.store(resource, Ordering::Relaxed);
    }

    /// How long the object is as a Protobuf message in a list, if it has been one: lists say so before
    /// their items, and the message itself is often no longer kept.
    pub(crate) fn message_len(&self) -> Option<usize> {
        let len = self.message_len.load(Ordering::Relaxed);
        usize::try_from(len).ok().filter(|len| *len > 0)
    }

    /// See [`message_len`](Self::message_len).
    pub(crate) fn remember_message_len(&self, len: usize) {
        self.message_len.store(u32::try_from(len).unwrap_or(0), Ordering::Relaxed);
    }

    /// What became of the key when this version was made.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The memory that the object's bytes take.
    pub const fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The namespace, `""` for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        self.item.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.item.split_once('/').map_or(&*self.item, |(_, name)| name)
    }

    /// The stored form as a tree.
    ///
    /// # Errors
    /// If the bytes are not what an encoder wrote.
    pub fn tree(&self) -> Result<Value, Unreadable> {
        json::parse_without(self.json_bytes(), OWNED_FIELDS).map_err(|why| self.unreadable(why))
    }

    /// Makes sure that the object can be read, before its bytes are given to anybody. It is looked at once.
    ///
    /// # Errors
    /// If the bytes are not what an encoder wrote.
    pub fn check(&self) -> Result<(), Unreadable> {
        if !self.is_readable.load(Ordering::Relaxed) {
            json::check(self.json_bytes()).map_err(|why| self.unreadable(why))?;
            self.is_readable.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn unreadable(&self, why: pintle_value::Error) -> Unreadable {
        let why = why_undecryptable(&self.bytes).map_or_else(|| why.to_string(), str::to_owned);
        Unreadable { item: self.item.clone(), revision: self.revision, why }
    }

    /// What is left of an object that cannot be read: where it is and what it is called.
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

    /// The members at `paths` of the stored form: much is said of many objects by few members, and the rest
    /// is not decoded for it.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn excerpt(&self, paths: &[&[&str]]) -> Result<Value, Unreadable> {
        self.check()?; // the rest, which is passed over
        json::excerpt(self.json_bytes(), paths).map_err(|why| self.unreadable(why))
    }

    /// Whether what selectors look at is at hand.
    pub(crate) fn is_indexed(&self) -> bool {
        self.index.get().is_some()
    }

    /// What selectors of a resource look at.
    pub(crate) fn index(&self, resource: &Resource) -> Result<&Index, Unreadable> {
        self.index_by(resource.strategy.fields(), |tree| resource.index(tree))
    }

    /// What selectors look at; read out of the object on first use where the writer did not leave it.
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

    /// The members that selectors look at.
    pub(crate) fn selectable(&self, fields: &[SelectableField]) -> Result<Value, Unreadable> {
        let mut paths = vec![vec!["metadata", "labels"]];
        paths.extend(fields.iter().flat_map(|field| field.value.reads()));
        self.excerpt(&paths.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }
}

/// Members that their schema keeps unread.
const OWNED_FIELDS: &[&str] = &["metadata", "managedFields", "fieldsV1"];

/// Where the object is in a watch frame of so many bytes.
const fn framed(kind: Kind, len: usize) -> Range<usize> {
    frame_head(kind).len()..len.saturating_sub(FRAME_TAIL.len())
}

/// Encodes an object of the stored form for the store, with the frame that its watchers get.
pub(crate) fn template(definition: &ResourceDefinition, object: &Value, kind: Kind) -> Template {
    let head = frame_head(kind);
    let mut bytes = Vec::with_capacity(1024);
    bytes.extend_from_slice(head);
    let hole = pintle_schema::encode::write_object(
        &definition.schema,
        definition.stored_type(),
        object,
        &mut bytes,
    );
    let body = head.len()..bytes.len();
    bytes.extend_from_slice(FRAME_TAIL);
    Template::framed(bytes, body, hole)
}

/// What stands before the object in a watch frame.
pub const fn frame_head(kind: Kind) -> &'static [u8] {
    match kind {
        Kind::Created => br#"{"type":"ADDED","object":"#,
        Kind::Updated => br#"{"type":"MODIFIED","object":"#,
        Kind::Deleted => br#"{"type":"DELETED","object":"#,
    }
}

/// What stands after the object in a watch frame.
pub const FRAME_TAIL: &[u8] = b"}\n";
