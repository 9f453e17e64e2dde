//! Lists: the shared bytes of the objects with separators between them, made as they are sent, so that
//! there is never a second copy of a collection.

use bytes::Bytes;
use pintle_meta::Status;
use pintle_meta::status::Reason;
use pintle_registry::answer::List;
use pintle_registry::request::Encoding;
use pintle_value::json;

use super::rendering::write_metadata;
use super::{Rendering, Response, document, protobuf, table};
use crate::body::{Body, CHUNK_BYTES, Pieces};
use crate::negotiation::{Form, Negotiated};

/// Answers with a list.
pub(crate) fn list(
    list: List,
    rendering: &Rendering,
    negotiated: Negotiated,
) -> Result<Response, Status> {
    let metadata = metadata(&list);
    if negotiated.encoding == Encoding::Protobuf {
        refuse_single(rendering)?;
        let items = rendering.items(&list.objects);
        return Ok(document(200, protobuf::list(rendering, &metadata, items), negotiated));
    }
    let list = in_row_order(list, rendering);
    let resource = rendering.resource.clone();
    let views = list.objects.into_iter().map(move |object| resource.view(&object));
    collection(&metadata, Box::new(views), rendering, negotiated)
}

/// Rows of a few kinds have an order of their own, within a page.
fn in_row_order(mut list: List, rendering: &Rendering) -> List {
    if let (Form::Table(_), Some(order)) = (rendering.form, rendering.printer.order()) {
        let objects =
            list.objects.into_iter().map(|object| (rendering.resource.tree(&object), object));
        let mut objects: Vec<_> = objects.collect();
        objects.sort_by(|(a, _), (b, _)| order(a, b));
        list.objects = objects.into_iter().map(|(_, object)| object).collect();
    }
    list
}

/// Answers with a list of objects, given as JSON in the resource's version.
pub(crate) fn collection(
    metadata: &[u8],
    views: Pieces,
    rendering: &Rendering,
    negotiated: Negotiated,
) -> Result<Response, Status> {
    refuse_single(rendering)?;
    let body = match negotiated.encoding {
        Encoding::Protobuf => {
            let items = views.map(|view| rendering.item(&view)).collect();
            protobuf::list(rendering, metadata, items)
        }
        Encoding::Json | Encoding::Yaml | Encoding::Cbor => {
            Body::pieces(Box::new(Items::new(rendering.clone(), metadata, views)))
        }
    };
    Ok(document(200, body, negotiated))
}

/// A list is not to be had as one object.
fn refuse_single(rendering: &Rendering) -> Result<(), Status> {
    if !matches!(rendering.form, Form::PartialObjectMetadata(_)) {
        return Ok(());
    }
    let kind = &rendering.resource.list_kind;
    let message =
        format!("you requested PartialObjectMetadata, but the requested object is a list ({kind})");
    Err(Status::failure(Reason::NotAcceptable, message))
}

/// The list's own metadata, as JSON.
fn metadata(list: &List) -> Vec<u8> {
    let mut out = format!("{{\"resourceVersion\":\"{}\"", list.revision).into_bytes();
    if !list.continue_token.is_empty() {
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
struct Items {
    rendering: Rendering,
    views: Pieces,
    /// Bytes of the next piece.
    piece: Vec<u8>,
    /// How each stored object begins, where items are to go without it (LIST-02).
    type_members: Vec<u8>,
    begun: bool,
    ended: bool,
}

impl Items {
    fn new(rendering: Rendering, metadata: &[u8], views: Pieces) -> Self {
        let mut piece = Vec::with_capacity(256);
        write_head(&rendering, metadata, &mut piece);
        let resource = &rendering.resource;
        let type_members = if resource.typed_items {
            Vec::new()
        } else {
            let (kind, api_version) = (&resource.kind, resource.api_version());
            format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",").into_bytes()
        };
        Self { rendering, views, piece, type_members, begun: false, ended: false }
    }

    fn write_item(&mut self, view: &[u8]) {
        if std::mem::replace(&mut self.begun, true) {
            self.piece.push(b',');
        }
        match self.rendering.form {
            Form::Table(version) => {
                table::write_row(&self.rendering, view, version, &mut self.piece);
            }
            Form::PartialObjectMetadata(version) | Form::PartialObjectMetadataList(version) => {
                write_metadata(view, version, &mut self.piece);
            }
            Form::Object | Form::GroupDiscovery => {
                let untyped = view.strip_prefix(self.type_members.as_slice());
                match untyped.filter(|_| !self.type_members.is_empty()) {
                    Some(rest) => {
                        self.piece.push(b'{');
                        self.piece.extend_from_slice(rest);
                    }
                    None => self.piece.extend_from_slice(view),
                }
            }
        }
    }
}

impl Iterator for Items {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        while let Some(view) = self.views.next() {
            self.write_item(&view);
            if self.piece.len() >= CHUNK_BYTES {
                // The next piece is about as long as this one.
                let room = Vec::with_capacity(self.piece.len() + 4096);
                return Some(std::mem::replace(&mut self.piece, room).into());
            }
        }
        self.ended = true;
        let is_table = matches!(self.rendering.form, Form::Table(_));
        if is_table && !self.begun && self.rendering.printer.manner().null_rows {
            self.piece.pop(); // the bracket
            self.piece.extend_from_slice(b"null}");
            return Some(std::mem::take(&mut self.piece).into());
        }
        self.piece.extend_from_slice(table::TAIL);
        Some(std::mem::take(&mut self.piece).into())
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
