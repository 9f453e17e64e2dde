//! Further encodings of committed objects: each is made when it is first wanted, kept with the object,
//! and shared by all who read or watch it (law 3).
//!
//! Must not know: who wants which encoding, and why.
//!
//! Invariants:
//! - What is kept takes no more memory than the [`Shelf`] has room for. What has to go is chosen
//!   blindly: when a list that is a little longer than the shelf is read again and again, most of it
//!   stays, while the oldest would always be the one that is wanted next.
//! - No lock is held while another is taken.

use std::ops::Range;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use pintle_schema::{encode, protobuf};
use pintle_store::Kind;
use pintle_value::{Value, cbor, json};

use crate::object::{FRAME_TAIL, frame_head};
use crate::{Object, Resource};

/// What an object may be encoded as, besides its stored JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// JSON of a version that is not the stored one.
    Json,
    /// Kubernetes' Protobuf.
    Protobuf,
    /// A PartialObjectMetadata in Protobuf.
    Metadata,
    /// CBOR.
    Cbor,
}

/// An encoding of an object in a resource's version.
#[derive(Debug)]
pub struct Encoded {
    /// The number of the resource.
    resource: u64,
    extra: Extra,
    /// The watch frame of the write that made the object's version, as the object itself has it.
    frame: Bytes,
    kind: Kind,
    /// The object as a document of its own, within the frame.
    document: Range<usize>,
    /// The object as it stands in a list, within the frame.
    item: Range<usize>,
}

impl Encoded {
    /// The object as a document of its own.
    pub fn document(&self) -> Bytes {
        self.frame.slice(self.document.clone())
    }

    /// The object as it stands in a list: the same, or a message without its envelope.
    pub fn item(&self) -> Bytes {
        self.frame.slice(self.item.clone())
    }

    /// The watch frame of the write that made this version, if that is what a watcher should be told.
    pub fn frame(&self, kind: Kind) -> Option<Bytes> {
        (kind == self.kind).then(|| self.frame.clone())
    }

    fn of(resource: &Resource, object: &Object, extra: Extra) -> Self {
        let kind = object.kind();
        let mut frame = Vec::with_capacity(object.size());
        let (document, item) = match extra {
            Extra::Json => {
                let tree = resource.tree(object);
                frame.extend_from_slice(frame_head(kind));
                let begin = frame.len();
                encode::write(&resource.schema, resource.ty, &tree, &mut frame);
                let document = begin..frame.len();
                frame.extend_from_slice(FRAME_TAIL);
                (document.clone(), document)
            }
            Extra::Protobuf => {
                let tree = resource.tree(object);
                framed(kind, &mut frame, |message| {
                    protobuf::encode(&resource.schema, resource.ty, &tree, message)
                })
            }
            Extra::Cbor => {
                let mut document = Vec::with_capacity(object.size());
                cbor::write(&resource.tree(object), &mut document);
                cbor::write_event(event_type(kind), &document, &mut frame);
                let document = frame.len() - document.len()..frame.len();
                (document.clone(), document)
            }
            Extra::Metadata => {
                let partial = partial(resource, object);
                framed(kind, &mut frame, |message| {
                    let schema = pintle_schema::builtin();
                    let ty = schema.find(METADATA_TYPE).expect("the built-in table has it");
                    protobuf::encode(schema, ty, &partial, message)
                })
            }
        };
        let frame = Bytes::from(frame);
        Self { resource: resource.number, extra, frame, kind, document, item }
    }

    fn is(&self, resource: u64, extra: Extra) -> bool {
        self.resource == resource && self.extra == extra
    }
}

/// The type of what has nothing but metadata.
const METADATA_TYPE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata";

/// The object without all but its metadata.
fn partial(resource: &Resource, object: &Object) -> Value {
    let metadata = if resource.is_stored_version() {
        let bytes = object.json_bytes();
        let metadata = json::member(bytes, "metadata").and_then(|range| bytes.get(range));
        // What is read here was written here; a failure would show as an empty object.
        metadata.and_then(|bytes| json::parse(bytes).ok())
    } else {
        resource.tree(object).get("metadata").cloned()
    };
    Value::from([
        ("kind", Value::from("PartialObjectMetadata")),
        ("apiVersion", Value::from("meta.k8s.io/v1")),
        ("metadata", metadata.unwrap_or_default()),
    ])
}

/// Writes a message and an event around it; says where in the event the message is, and where what is
/// in its envelope.
fn framed(
    kind: Kind,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Range<usize>,
) -> (Range<usize>, Range<usize>) {
    let mut message = Vec::with_capacity(1024);
    let item = write(&mut message);
    protobuf::encode_event(event_type(kind), &message, out);
    // The event ends with the message.
    let begin = out.len() - message.len();
    (begin..out.len(), begin + item.start..begin + item.end)
}

/// What a watch calls the write.
pub const fn event_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Created => "ADDED",
        Kind::Updated => "MODIFIED",
        Kind::Deleted => "DELETED",
    }
}

/// The encodings that are kept with one object: few, if any.
#[derive(Debug, Default)]
pub(crate) struct Encodings(Mutex<Vec<Arc<Encoded>>>);

impl Encodings {
    /// The encoding that is kept, or the one that `make` makes; true if it is new. Others who want it
    /// wait, so that it is made once.
    fn get_or_make(
        &self,
        resource: u64,
        extra: Extra,
        make: impl FnOnce() -> Encoded,
    ) -> (Arc<Encoded>, bool) {
        let mut kept = self.0.lock();
        if let Some(encoded) = kept.iter().find(|encoded| encoded.is(resource, extra)) {
            return (encoded.clone(), false);
        }
        let encoded = Arc::new(make());
        kept.reserve_exact(1);
        kept.push(encoded.clone());
        (encoded, true)
    }

    fn forget(&self, gone: &Weak<Encoded>) {
        self.0.lock().retain(|encoded| !std::ptr::eq(Arc::as_ptr(encoded), gone.as_ptr()));
    }
}

impl Resource {
    /// The object in this resource's version and in a further encoding.
    pub fn encoded(&self, object: &Arc<Object>, extra: Extra) -> Arc<Encoded> {
        let make = || Encoded::of(self, object, extra);
        let (encoded, is_new) = object.encodings.get_or_make(self.number, extra, make);
        if is_new {
            self.shelf.keep(object, &encoded);
        }
        encoded
    }
}

/// How much of all further encodings is kept.
#[derive(Debug)]
pub(crate) struct Shelf {
    bytes_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: Vec<Entry>,
    bytes: usize,
    /// What the blind choices follow from.
    count: u64,
}

#[derive(Debug)]
struct Entry {
    object: Weak<Object>,
    encoded: Weak<Encoded>,
    bytes: usize,
}

impl Shelf {
    /// A shelf with so much room.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, kept: Mutex::default() }
    }

    /// Counts a new encoding of an object, and takes others away where there is no room.
    fn keep(&self, object: &Arc<Object>, encoded: &Arc<Encoded>) {
        let entry = Entry {
            object: Arc::downgrade(object),
            encoded: Arc::downgrade(encoded),
            bytes: encoded.frame.len(),
        };
        let gone = self.kept.lock().add(entry, self.bytes_max);
        for entry in gone {
            if let Some(object) = entry.object.upgrade() {
                object.encodings.forget(&entry.encoded);
            }
        }
    }

    /// How many bytes are kept, at most.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.kept.lock().bytes
    }
}

impl Kept {
    /// How many entries are looked at when one is added, so that those of objects that are no more do
    /// not pile up.
    const SWEPT: usize = 2;

    /// Adds an entry; what has to go for it.
    fn add(&mut self, entry: Entry, bytes_max: usize) -> Vec<Entry> {
        for _ in 0..Self::SWEPT {
            let at = self.choose();
            if self.entries.get(at).is_some_and(|entry| entry.object.strong_count() == 0) {
                self.take(at);
            }
        }
        self.bytes += entry.bytes;
        self.entries.push(entry);
        let mut gone = Vec::new();
        while self.bytes > bytes_max && !self.entries.is_empty() {
            let at = self.choose();
            gone.push(self.take(at));
        }
        gone
    }

    fn take(&mut self, at: usize) -> Entry {
        let entry = self.entries.swap_remove(at);
        self.bytes -= entry.bytes;
        entry
    }

    /// An entry, any of them. Numbers that follow a rule could fall into step with a list that is read
    /// again and again, so they are mixed (SplitMix64).
    fn choose(&mut self) -> usize {
        self.count = self.count.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.count;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((mixed >> 32) * self.entries.len() as u64) >> 32) as usize
    }
}

#[cfg(test)]
mod tests;
