//! Lists: cached encodings of objects with a head and a tail, written while they are sent, so that
//! no list is a second copy of a collection. The head of a Protobuf list has the length of its
//! items, so the items are measured first. An item for which the cache has no room is encoded again
//! when it is sent.

mod compressed;
mod delimiters;
mod items;
mod runs;

use std::sync::Arc;

use bytes::Bytes;
use pintle_meta::Status;
use pintle_meta::status::Reason;
use pintle_registry::request::Encoding;
use pintle_registry::results::List;
use pintle_registry::{Object, work};
use pintle_value::json;

use super::{Rendering, Response, document, encoded, protobuf};
use crate::body::{Body, CHUNK_BYTES, NEWLINE, Pieces};
use crate::negotiation::{Form, Negotiated};
use compressed::CompressedList;
use delimiters::Delimiters;
use items::ItemWriter;
pub(crate) use runs::Runs;

/// An item of a list.
pub(crate) enum Item {
    /// A stored object of the resource.
    Stored(Arc<Object>),
    /// An object that is not stored, as JSON in the resource's version.
    Made(Bytes),
}

impl Item {
    /// The stored object.
    const fn stored(&self) -> Option<&Arc<Object>> {
        match self {
            Self::Stored(object) => Some(object),
            Self::Made(_) => None,
        }
    }

    /// The item's approximate length in JSON.
    fn size(&self) -> usize {
        match self {
            Self::Stored(object) => object.size(),
            Self::Made(json) => json.len(),
        }
    }
}

/// The response of a list.
pub(crate) async fn list(
    list: List,
    rendering: &Rendering,
    negotiated: Negotiated,
    runs: &Arc<Runs>,
) -> Result<Response, Status> {
    let metadata = metadata(&list, rendering.form);
    let objects = in_row_order(list.objects, rendering).await?;
    let items = objects.into_iter().map(Item::Stored).collect();
    collection(&metadata, items, rendering, negotiated, runs).await
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
    runs: &Arc<Runs>,
) -> Result<Response, Status> {
    refuse_single(rendering)?;
    let encoding = negotiated.encoding;
    let writer = ItemWriter::new(rendering.clone(), encoding);
    work::ahead(writer.work(&items)).await;
    let mut around = if encoding == Encoding::Protobuf {
        let bytes = writer.measure(&items).await;
        Delimiters::of_messages(protobuf::list_head(rendering, metadata, bytes))
    } else {
        Delimiters::new(rendering, metadata, items.len(), encoding)
    };
    let is_line = encoding == Encoding::Json && !negotiated.pretty;
    if is_line {
        around.tail.extend_from_slice(NEWLINE);
    }
    let mut pieces = ListPieces::new(around, items, writer, runs.clone());
    let body = pieces.whole().map_or_else(|| Body::long(pieces), Body::full);
    Ok(match encoding {
        Encoding::Json if !is_line => document(200, body, negotiated),
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
    items: Vec<Item>,
    /// The number of items that have been written.
    written: usize,
    writer: ItemWriter,
    /// Bytes of the next piece.
    piece: Vec<u8>,
    /// The stored JSON of a long item, which is the next piece, so that all readers share its
    /// bytes.
    shared: Option<Bytes>,
    runs: Arc<Runs>,
}

impl ListPieces {
    fn new(around: Delimiters, items: Vec<Item>, writer: ItemWriter, runs: Arc<Runs>) -> Self {
        let piece = around.head.clone();
        Self { around: Some(around), items, written: 0, writer, piece, shared: None, runs }
    }

    /// The whole list, if it fits into one piece.
    fn whole(&mut self) -> Option<Bytes> {
        self.fill(false);
        if self.is_rest() { self.next() } else { None }
    }

    /// Whether the next piece is the last one.
    const fn is_rest(&self) -> bool {
        self.written == self.items.len() && self.shared.is_none()
    }

    /// Writes items until the piece is full or no item is left, and returns true. With
    /// `only_preencoded`, returns false at the first item that must be encoded.
    fn fill(&mut self, only_preencoded: bool) -> bool {
        let Some(around) = &self.around else { return true };
        while let Some(item) = self.items.get(self.written) {
            if self.piece.len() >= CHUNK_BYTES || self.shared.is_some() {
                return true;
            }
            if only_preencoded && !self.writer.is_preencoded(item) {
                return false;
            }
            if self.written > 0 {
                self.piece.extend_from_slice(around.between);
            }
            self.shared = self.writer.begin_shared(item, &mut self.piece);
            if self.shared.is_none() {
                self.writer.write(item, &mut self.piece);
            }
            self.written += 1;
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
        if !self.is_rest() {
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

    fn compressed(&mut self) -> Option<Box<dyn Pieces>> {
        CompressedList::of(self).map(|list| Box::new(list) as Box<dyn Pieces>)
    }
}
