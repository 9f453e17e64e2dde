//! The items of a list, and how each is written.

use bytes::Bytes;
use pintle_registry::request::Encoding;
use pintle_registry::{Extra, Object, View, work};
use pintle_value::{cbor, yaml};

use crate::body::CHUNK_BYTES;
use crate::negotiation::Form;
use crate::respond::rendering::{Shown, write_metadata};
use crate::respond::{Rendering, parse_own, protobuf};

use super::Item;
use super::runs::Writing;

/// Writes items.
#[derive(Clone)]
pub(super) struct ItemWriter {
    rendering: Rendering,
    encoding: Encoding,
    /// The encoding that is cached with the objects, if it is the requested one.
    cached: Option<Extra>,
    /// The kind and version with which each stored object begins in JSON, if list items omit them
    /// (LIST-02); otherwise empty.
    type_members: Vec<u8>,
}

impl ItemWriter {
    pub(super) fn new(rendering: Rendering, encoding: Encoding) -> Self {
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

    /// How the items at a list's beginning are written; `None` if that depends on more than their
    /// objects, as the ages in Tables do.
    pub(super) fn writing(&self) -> Option<Writing> {
        let (encoding, form) = (self.encoding, self.rendering.form);
        let resource = self.rendering.resource.number();
        let is_pure = !matches!(form, Form::Table(_));
        is_pure.then_some(Writing { resource, encoding, form, begins: true })
    }

    /// True if writing the item only copies bytes. An object that is not stored counts as such,
    /// because these objects are few and short.
    pub(super) fn is_preencoded(&self, item: &Item) -> bool {
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

    /// The bytes of JSON that must be encoded for the first piece ([`work::ahead`]).
    pub(super) fn work(&self, items: &[Item]) -> usize {
        let (mut seen, mut bytes) = (0, 0);
        for item in items {
            let size = item.size();
            seen += size;
            bytes += if self.is_preencoded(item) { 0 } else { size };
            // The first piece is written now, the others when they are sent.
            if bytes > work::SHARED_BYTES_MAX || seen > CHUNK_BYTES {
                break;
            }
        }
        bytes
    }

    /// The total length of the items as Protobuf messages, which comes before them in a list.
    /// Encodes each item whose length is not known, and caches the encoding if there is room.
    pub(super) async fn measure(&self, items: &[Item]) -> usize {
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
    pub(super) fn begin_shared(&self, item: &Item, out: &mut Vec<u8>) -> Option<Bytes> {
        let Item::Stored(object) = item else { return None };
        let resource = &self.rendering.resource;
        let is_stored = self.encoding == Encoding::Json
            && self.rendering.form == Form::Object
            && resource.is_stored_version();
        if !is_stored || object.size() < CHUNK_BYTES {
            return None;
        }
        let view = resource.json(object);
        let Some(rest) = self.untyped(&view) else { return Some(view) };
        out.push(b'{');
        Some(view.slice_ref(rest))
    }

    pub(super) fn write(&self, item: &Item, out: &mut Vec<u8>) {
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
        let tree = parse_own(&text);
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
        if let Item::Stored(object) = item
            && self.rendering.form == Form::Object
            && self.rendering.resource.is_stored_version()
        {
            return self.write_stored(object, out);
        }
        let (view, stored) = match item {
            Item::Stored(object) => (self.rendering.resource.view(object), Some(object)),
            Item::Made(json) => (View::Made(json.clone()), None),
        };
        match self.rendering.form {
            Form::Table(version) => {
                self.rendering.write_row(&Shown { json: &view, stored }, version, out);
            }
            Form::PartialObjectMetadata(version) | Form::PartialObjectMetadataList(version) => {
                write_metadata(&self.rendering.resource, &view, version, out);
            }
            Form::Object | Form::GroupDiscovery => self.write_untyped(&view, out),
        }
    }

    /// Copies the stored JSON.
    fn write_stored(&self, object: &Object, out: &mut Vec<u8>) {
        let mut pieces = object.pieces();
        if let Some(first) = pieces.next() {
            self.write_untyped(first, out);
        }
        pieces.for_each(|piece| out.extend_from_slice(piece));
    }

    /// Writes an object's bytes, or the first of them, without kind and version if list items omit
    /// them.
    fn write_untyped(&self, view: &[u8], out: &mut Vec<u8>) {
        match self.untyped(view) {
            Some(rest) => {
                out.push(b'{');
                out.extend_from_slice(rest);
            }
            None => out.extend_from_slice(view),
        }
    }

    /// The object's bytes behind kind and version, if list items omit them.
    fn untyped<'v>(&self, view: &'v [u8]) -> Option<&'v [u8]> {
        let rest = view.strip_prefix(self.type_members.as_slice());
        rest.filter(|_| !self.type_members.is_empty())
    }
}
