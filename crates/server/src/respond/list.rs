//! Lists: cached encodings of objects with a head and a tail, written while they are sent, so that
//! no list is a second copy of a collection. The head of a Protobuf list has the length of its
//! items, so the items are measured first. An item for which the cache has no room is encoded again
//! when it is sent.

use std::sync::Arc;

use bytes::Bytes;
use pintle_meta::Status;
use pintle_meta::status::Reason;
use pintle_registry::answer::List;
use pintle_registry::request::Encoding;
use pintle_registry::{Extra, Object, work};
use pintle_value::{cbor, json, yaml};

use super::rendering::{Shown, write_metadata};
use super::{Rendering, Response, document, encoded, protobuf, table};
use crate::body::{Body, CHUNK_BYTES, Pieces};
use crate::negotiation::{Form, Negotiated};

/// An item of a list.
pub(crate) enum Item {
    /// A stored object of the resource.
    Stored(Arc<Object>),
    /// An object that is not stored, as JSON in the resource's version.
    Made(Bytes),
}

impl Item {
    /// The item's approximate length in JSON.
    fn size(&self) -> usize {
        match self {
            Self::Stored(object) => object.size(),
            Self::Made(json) => json.len(),
        }
    }
}

/// The bytes of a list that are written before its first byte is sent ([`Body::pieces`]).
const BEGIN_BYTES: usize = 2 * CHUNK_BYTES;

/// The response of a list.
pub(crate) async fn list(
    list: List,
    rendering: &Rendering,
    negotiated: Negotiated,
) -> Result<Response, Status> {
    let metadata = metadata(&list, rendering.form);
    let objects = in_row_order(list.objects, rendering).await?;
    let items = objects.into_iter().map(Item::Stored).collect();
    collection(&metadata, items, rendering, negotiated).await
}

/// Sorts the rows of a Table by the printer's own order, which a few kinds have.
async fn in_row_order(
    objects: Vec<Arc<Object>>,
    rendering: &Rendering,
) -> Result<Vec<Arc<Object>>, Status> {
    let (Form::Table(_), Some(order)) = (rendering.form, rendering.printer.order()) else {
        return Ok(objects);
    };
    work::ahead(objects.iter().map(|object| object.size()).sum()).await;
    let trees = objects.into_iter().map(|object| Ok((rendering.resource.tree(&object)?, object)));
    let mut objects: Vec<_> = trees.collect::<Result<_, Status>>()?;
    objects.sort_by(|(a, _), (b, _)| order(a, b));
    Ok(objects.into_iter().map(|(_, object)| object).collect())
}

/// The response of a list with these items; `metadata` is the list's, as JSON.
pub(crate) async fn collection(
    metadata: &[u8],
    items: Vec<Item>,
    rendering: &Rendering,
    negotiated: Negotiated,
) -> Result<Response, Status> {
    refuse_single(rendering)?;
    let encoding = negotiated.encoding;
    let writer = ItemWriter::new(rendering.clone(), encoding);
    work::ahead(writer.work(&items)).await;
    let around = if encoding == Encoding::Protobuf {
        let bytes = writer.measure(&items).await;
        Delimiters::of_messages(protobuf::list_head(rendering, metadata, bytes))
    } else {
        Delimiters::new(rendering, metadata, items.len(), encoding)
    };
    let body = Body::pieces(ListPieces::new(around, items, writer));
    Ok(match encoding {
        Encoding::Json => document(200, body, negotiated),
        encoding => encoded(200, body, encoding),
    })
}

/// Refuses the form PartialObjectMetadata, which is for one object.
fn refuse_single(rendering: &Rendering) -> Result<(), Status> {
    if !matches!(rendering.form, Form::PartialObjectMetadata(_)) {
        return Ok(());
    }
    let kind = rendering.resource.internal_type(true);
    let message =
        format!("you requested PartialObjectMetadata, but the requested object is a list ({kind})");
    Err(Status::failure(Reason::NotAcceptable, message))
}

/// The list's own metadata, as JSON.
fn metadata(list: &List, form: Form) -> Vec<u8> {
    let mut out = format!("{{\"resourceVersion\":\"{}\"", list.revision).into_bytes();
    // Upstream's lists of custom resources are untyped and do not omit an empty `continue`.
    if !list.continue_token.is_empty() || list.resource.typed_items && form == Form::Object {
        out.extend_from_slice(br#","continue":"#);
        json::write_string(&list.continue_token, &mut out);
    }
    if let Some(remaining) = list.remaining.filter(|remaining| *remaining > 0) {
        out.extend_from_slice(format!(",\"remainingItemCount\":{remaining}").as_bytes());
    }
    out.push(b'}');
    out
}

/// The pieces of a list's body.
struct ListPieces {
    /// `None` when everything has been written.
    around: Option<Delimiters>,
    items: std::vec::IntoIter<Item>,
    writer: ItemWriter,
    /// Bytes of the next piece.
    piece: Vec<u8>,
    /// The stored JSON of a long item, which is the next piece, so that all readers share its
    /// bytes.
    shared: Option<Bytes>,
    begun: bool,
}

impl ListPieces {
    fn new(mut around: Delimiters, items: Vec<Item>, writer: ItemWriter) -> Self {
        let piece = std::mem::take(&mut around.head);
        let (around, items) = (Some(around), items.into_iter());
        Self { around, items, writer, piece, shared: None, begun: false }
    }

    /// Writes items until the piece is full or no item is left, and returns true. With
    /// `only_preencoded`, returns false at the first item that must be encoded.
    fn fill(&mut self, only_preencoded: bool) -> bool {
        let Some(around) = &self.around else { return true };
        while let Some(item) = self.items.as_slice().first() {
            if self.piece.len() >= CHUNK_BYTES || self.shared.is_some() {
                return true;
            }
            if only_preencoded && !self.writer.is_preencoded(item) {
                return false;
            }
            if std::mem::replace(&mut self.begun, true) {
                self.piece.extend_from_slice(around.between);
            }
            self.shared = self.writer.begin_shared(item, &mut self.piece);
            if self.shared.is_none() {
                self.writer.write(item, &mut self.piece);
            }
            self.items.next();
        }
        true
    }
}

impl Pieces for ListPieces {
    fn next(&mut self) -> Option<Bytes> {
        self.fill(false);
        let around = self.around.as_ref()?;
        if let Some(shared) = self.shared.take_if(|_| self.piece.is_empty()) {
            return Some(shared);
        }
        if self.items.len() > 0 || self.shared.is_some() {
            // The next piece is about as long as this one, so its buffer has the same capacity.
            let room = Vec::with_capacity(self.piece.len() + 4096);
            return Some(std::mem::replace(&mut self.piece, room).into());
        }
        self.piece.extend_from_slice(&around.tail);
        self.around = None;
        Some(std::mem::take(&mut self.piece).into())
    }

    fn takes_work(&mut self) -> bool {
        !self.fill(true)
    }
}

/// Writes items.
struct ItemWriter {
    rendering: Rendering,
    encoding: Encoding,
    /// The encoding that is cached with the objects, if it is the requested one.
    cached: Option<Extra>,
    /// The kind and version with which each stored object begins in JSON, if list items omit them
    /// (LIST-02); otherwise empty.
    type_members: Vec<u8>,
}

impl ItemWriter {
    fn new(rendering: Rendering, encoding: Encoding) -> Self {
        let cached = rendering.cached(encoding).map(Extra::of_item);
        let resource = &rendering.resource;
        let type_members = if resource.typed_items {
            Vec::new()
        } else {
            let (kind, api_version) = (&resource.kind, resource.api_version());
            format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",").into_bytes()
        };
        Self { rendering, encoding, cached, type_members }
    }

    /// True if writing the item only copies bytes. An object that is not stored counts as such,
    /// because these objects are few and short.
    fn is_preencoded(&self, item: &Item) -> bool {
        let Item::Stored(object) = item else { return true };
        let resource = &self.rendering.resource;
        let cached = match (self.cached, self.rendering.form) {
            (Some(extra), _) => extra,
            (None, _) if self.encoding != Encoding::Json => return false,
            (None, Form::Table(_)) => Extra::Row,
            (None, _) if resource.is_stored_version() => return true,
            (None, _) => Extra::Json,
        };
        resource.has_encoded(object, cached)
    }

    /// The bytes of JSON that must be encoded for the first pieces ([`work::ahead`]).
    fn work(&self, items: &[Item]) -> usize {
        let (mut seen, mut bytes) = (0, 0);
        for item in items {
            let size = item.size();
            seen += size;
            bytes += if self.is_preencoded(item) { 0 } else { size };
            // The first pieces are written now, the others when they are sent.
            if bytes > work::SHARED_BYTES_MAX || seen > BEGIN_BYTES {
                break;
            }
        }
        bytes
    }

    /// The total length of the items as Protobuf messages, which comes before them in a list.
    /// Encodes each item whose length is not known, and caches the encoding if there is room.
    async fn measure(&self, items: &[Item]) -> usize {
        let (mut bytes, mut made) = (0, 0);
        for item in items {
            let known = match (item, self.cached) {
                (Item::Stored(object), Some(extra)) => {
                    self.rendering.resource.item_len(object, extra)
                }
                _ => None,
            };
            bytes += known.unwrap_or_else(|| {
                made += item.size();
                self.message(item).len()
            });
            if made > work::YIELD_BYTES {
                made = 0;
                work::pause().await;
            }
        }
        bytes
    }

    /// Writes the beginning of a long item that is sent as its stored JSON, and returns the rest;
    /// `None` for other items, which [`Self::write`] writes.
    fn begin_shared(&self, item: &Item, out: &mut Vec<u8>) -> Option<Bytes> {
        let Item::Stored(object) = item else { return None };
        let resource = &self.rendering.resource;
        let is_stored = self.encoding == Encoding::Json
            && self.rendering.form == Form::Object
            && resource.is_stored_version();
        if !is_stored || object.size() < CHUNK_BYTES {
            return None;
        }
        let view = resource.view(object);
        let Some(rest) = self.untyped(&view) else { return Some(view) };
        out.push(b'{');
        Some(view.slice_ref(rest))
    }

    fn write(&self, item: &Item, out: &mut Vec<u8>) {
        if self.encoding == Encoding::Protobuf {
            return out.extend_from_slice(&self.message(item));
        }
        if let (Item::Stored(object), Some(extra)) = (item, self.cached) {
            return self.rendering.resource.encoded(object, extra).write_item(out);
        }
        if self.encoding == Encoding::Json {
            return self.write_json(item, out);
        }
        let mut text = Vec::with_capacity(1024);
        self.write_json(item, &mut text);
        // The JSON was written by this server; a failure would send an empty item.
        let tree = json::parse(&text).unwrap_or_default();
        match self.encoding {
            Encoding::Yaml => yaml::write_item(&tree, out),
            _ => cbor::write_item(&tree, out),
        }
    }

    /// An item in Protobuf.
    fn message(&self, item: &Item) -> Bytes {
        match (item, self.cached) {
            (Item::Stored(object), Some(extra)) => {
                self.rendering.resource.encoded(object, extra).item()
            }
            _ => {
                let mut text = Vec::with_capacity(1024);
                self.write_json(item, &mut text);
                protobuf::item(self.rendering.type_name(), &text)
            }
        }
    }

    fn write_json(&self, item: &Item, out: &mut Vec<u8>) {
        let (view, stored) = match item {
            Item::Stored(object) => (self.rendering.resource.view(object), Some(object)),
            Item::Made(json) => (json.clone(), None),
        };
        match self.rendering.form {
            Form::Table(version) => {
                table::write_row(&self.rendering, &Shown { json: &view, stored }, version, out);
            }
            Form::PartialObjectMetadata(version) | Form::PartialObjectMetadataList(version) => {
                write_metadata(&self.rendering.resource, &view, version, out);
            }
            Form::Object | Form::GroupDiscovery => match self.untyped(&view) {
                Some(rest) => {
                    out.push(b'{');
                    out.extend_from_slice(rest);
                }
                None => out.extend_from_slice(&view),
            },
        }
    }

    /// The object's bytes behind kind and version, if list items omit them.
    fn untyped<'v>(&self, view: &'v [u8]) -> Option<&'v [u8]> {
        let rest = view.strip_prefix(self.type_members.as_slice());
        rest.filter(|_| !self.type_members.is_empty())
    }
}

/// The head, separator and tail of a list.
struct Delimiters {
    head: Vec<u8>,
    between: &'static [u8],
    tail: Vec<u8>,
}

impl Delimiters {
    fn new(rendering: &Rendering, metadata: &[u8], items: usize, encoding: Encoding) -> Self {
        let mut head = Vec::with_capacity(256);
        write_head(rendering, metadata, &mut head);
        let mut tail = table::TAIL.to_vec();
        let is_table = matches!(rendering.form, Form::Table(_));
        // Go encodes a nil slice as null.
        let null = match rendering.form {
            Form::Table(_) => rendering.printer.variant().null_rows,
            Form::PartialObjectMetadata(_) | Form::PartialObjectMetadataList(_) => true,
            Form::Object | Form::GroupDiscovery => false,
        };
        if items == 0 && null {
            head.pop(); // the bracket
            tail = b"null}".to_vec();
        }
        if encoding == Encoding::Json {
            return Self { head, between: b",", tail };
        }
        head.extend_from_slice(&tail);
        Self::of_empty(&head, if is_table { "rows" } else { "items" }, items, encoding)
    }

    /// The head and tail of a Protobuf list, whose items delimit themselves.
    fn of_messages(head: Vec<u8>) -> Self {
        Self { head, between: b"", tail: pintle_schema::protobuf::LIST_TAIL.to_vec() }
    }

    /// The head and tail of a list in YAML or CBOR, made from an empty list in JSON.
    fn of_empty(empty: &[u8], key: &str, items: usize, encoding: Encoding) -> Self {
        let mut tree = json::parse(empty).unwrap_or_default();
        let (mut head, mut tail) = (Vec::with_capacity(256), Vec::new());
        if encoding == Encoding::Cbor {
            if items == 0 {
                cbor::write(&tree, &mut head);
            } else {
                tree.make_object().remove(key);
                cbor::write_list_head(&tree, key, items, &mut head);
            }
        } else {
            yaml::write(&tree, &mut head);
            // Only top-level members begin a line without indentation.
            let (line, none) = (format!("\n{key}: []\n"), " []".len());
            let start = head.windows(line.len()).position(|part| part == line.as_bytes());
            if let Some(start) = start.filter(|_| items > 0) {
                let end = start + line.len();
                tail = head.split_off(end);
                head.truncate(end - none - 1);
                head.push(b'\n');
            }
        }
        Self { head, between: b"", tail }
    }
}

fn write_head(rendering: &Rendering, metadata: &[u8], out: &mut Vec<u8>) {
    let resource = &rendering.resource;
    let (kind, api_version) = match rendering.form {
        Form::Table(version) => {
            return table::write_head(rendering, metadata, version, true, out);
        }
        Form::PartialObjectMetadata(version) | Form::PartialObjectMetadataList(version) => {
            ("PartialObjectMetadataList", version.api_version().to_owned())
        }
        Form::Object | Form::GroupDiscovery => {
            (resource.list_kind.as_str(), resource.api_version())
        }
    };
    let head = format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":");
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(metadata);
    out.extend_from_slice(br#","items":["#);
}
