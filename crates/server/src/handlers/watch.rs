//! Watches. The response in JSON is one document a line, and each batch of events is one frame; on
//! a WebSocket each event is a message (WS-08).
//!
//! All watches of a change send the same bytes: if an object has a cached frame in the watch's
//! encoding and form, nothing is encoded or copied here.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{CONTENT_TYPE, HeaderValue};
use pintle_meta::Status;
use pintle_registry::request::Encoding;
use pintle_registry::results::Event;
use pintle_registry::watch::Watch;
use pintle_registry::{Extra, Object, event_type, work};
use pintle_store::{Kind, Revision};
use pintle_value::cbor;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::Call;
use crate::api::Api;
use crate::body::{Body, CHUNK_BYTES, Frames};
use crate::fairness::{InitialSeat, Seat, begins_with_state};
use crate::metrics::ResourceRequests;
use crate::negotiation::{Form, watch_type};
use crate::options::{self, list_options, watch_timeout};
use crate::respond::{
    self, Rendering, Response, STATUS_TYPE, Shown, document, protobuf, status_json,
};
use crate::target::Found;
use crate::websocket::{self, Handshake, Opcode};

/// The approximate interval of bookmarks (BM-01).
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// The last bookmark comes this long before the end of the watch, so that the client resumes at a
/// recent revision.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// Serves GET of a collection with `watch`.
pub(super) async fn watch(call: &Call<'_>, found: &Found) -> Result<Response, Status> {
    let (negotiated, rendering) = call.negotiate(found)?;
    let mut options = list_options(call.query)?;
    if call.info.resource.as_ref().is_some_and(|info| info.watch_prefix && info.named) {
        options.field_selector = format!("metadata.name={}", found.target.name).into(); // OAS-12
    }
    if !call.api.settings.watch_list && options.send_initial_events.is_some() {
        return Err(options::no_initial_events());
    }
    let timeout = watch_timeout(call.query)?.unwrap_or_else(|| call.api.watch_timeout());
    let began = Instant::now();
    let watch = call.api.registry.watch(&found.collection(), &options).await?;
    call.preferences().watch(found.forms(), found.encodings())?;
    let mut stopping = call.api.lifecycle.stopping();
    let on_socket = websocket::is_asked_for(&call.head.headers);
    let (api, user) = (call.api.clone(), call.user.clone());
    let stream = Stream {
        watch,
        frame_bytes: if on_socket { 1 } else { CHUNK_BYTES },
        encoder: Encoder { rendering, encoding: negotiated.encoding, columns_sent: false },
        pending: Vec::new().into_iter(),
        end: Box::pin(async move {
            tokio::select! {
                () = stopping.wait() => {}
                () = sleep(timeout) => {}
            }
        }),
        bookmarks: Bookmarks::new(Instant::now() + timeout),
        measures: call.api.metrics.requests.of(&found.target.resource),
        seat: begins_with_state(call.query)
            .then(|| call.seat.lock().take())
            .flatten()
            .map(Seat::until_initialised),
        list: Some(List { began, scope: list_scope(call), api: call.api.clone() }),
        ended: timeout.is_zero(),
    };
    let frames = futures_util::stream::unfold(stream, move |mut stream| {
        let (api, user) = (api.clone(), user.clone());
        async move {
            let frame = api.compute.run(&user, stream.next()).await?;
            Some((frame, stream))
        }
    });
    if on_socket {
        let (messages, opcode) = messages(Box::pin(frames), negotiated.encoding);
        let handshake = Handshake::read(call.head)?;
        // A watch has no subprotocol of its own: it accepts the only one that the client offers.
        let subprotocol = match handshake.offered.as_slice() {
            [] => String::new(),
            [one] => one.clone(),
            _ => return Err(Status::bad_request("missing or bad WebSocket-Protocol")),
        };
        let session = move |stream| websocket::send_messages(stream, messages, opcode);
        return Ok(handshake.accept(&subprotocol, session));
    }
    let mut response = document(200, Body::frames(Box::pin(frames)), negotiated);
    let content_type = HeaderValue::from_static(watch_type(negotiated.encoding));
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(response)
}

/// Wraps frames of one event each as WebSocket messages.
fn messages(frames: Frames, encoding: Encoding) -> (Frames, Opcode) {
    const LENGTH_BYTES: usize = 4;
    match encoding {
        Encoding::Json | Encoding::Yaml => (frames, Opcode::Text),
        Encoding::Cbor => (frames, Opcode::Binary),
        Encoding::Protobuf => {
            (Box::pin(frames.map(|frame| frame.slice(LENGTH_BYTES..))), Opcode::Binary)
        }
    }
}

/// The scope label of the metric of initial events.
fn list_scope(call: &Call<'_>) -> &'static str {
    match &call.info.resource {
        Some(info) if !info.name.is_empty() => "resource",
        Some(info) if !info.namespace.is_empty() => "namespace",
        _ => "cluster",
    }
}

/// The start and scope of a streaming list, until its initial events are sent.
struct List {
    began: Instant,
    scope: &'static str,
    api: Arc<Api>,
}

/// The body of a watch.
struct Stream {
    watch: Watch,
    /// A frame that has reached this size is sent before further events are added.
    frame_bytes: usize,
    encoder: Encoder,
    /// Events left over from the last frame.
    pending: std::vec::IntoIter<Event>,
    /// Resolves when the watch's timeout has passed or the server stops.
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
    bookmarks: Bookmarks,
    measures: Arc<ResourceRequests>,
    /// Held until the initial events are written.
    seat: Option<InitialSeat>,
    list: Option<List>,
    ended: bool,
}

impl Stream {
    /// Returns the next frame; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        while self.pending.len() == 0 {
            tokio::select! {
                biased;
                () = &mut self.end => {
                    self.ended = true;
                    let bookmark = self.watch.bookmark().filter(|_| self.bookmarks.is_last_bookmark_due());
                    self.pending = bookmark_event(bookmark?);
                }
                events = self.watch.next() => {
                    let events: Vec<_> = events?.into_iter().map(Event::checked).collect();
                    self.pending = events.into_iter();
                }
                // All initial events are written.
                () = std::future::ready(()), if self.seat.is_some() => self.seat = None,
                () = self.bookmarks.due() => {
                    self.bookmarks.schedule();
                    if let Some(revision) = self.watch.bookmark() {
                        self.pending = bookmark_event(revision);
                    }
                }
            }
        }
        work::ahead(self.work()).await;
        Some(self.frame())
    }

    /// The bytes of work of the next frame ([`work::ahead`]).
    fn work(&self) -> usize {
        let Encoder { rendering, encoding, .. } = &self.encoder;
        let is_stored = *encoding == Encoding::Json && rendering.resource.is_stored_version();
        if is_stored && rendering.form == Form::Object {
            return 0;
        }
        let mut bytes = 0;
        for event in self.pending.as_slice() {
            bytes += event.object().map_or(0, |object| object.size());
            if bytes > work::SHARED_BYTES_MAX || bytes > self.frame_bytes {
                break;
            }
        }
        bytes
    }

    /// Writes the pending events as one frame. A long batch (the initial events) becomes several
    /// frames. A long cached frame is sent alone: its watchers share the bytes, however slowly they
    /// read.
    fn frame(&mut self) -> Bytes {
        let mut frame = Vec::new();
        let measures = self.measures.watch();
        while let Some(event) = self.pending.as_slice().first() {
            let before = frame.len();
            let is_long = |bytes: &Bytes| bytes.len() >= self.frame_bytes;
            match self.encoder.cached_frame(event) {
                Some(bytes) if frame.is_empty() && (self.pending.len() == 1 || is_long(&bytes)) => {
                    self.pending.next();
                    measures.sent(bytes.len());
                    return bytes;
                }
                Some(bytes) if is_long(&bytes) => break,
                Some(bytes) => frame.extend_from_slice(&bytes),
                None => self.ended = self.encoder.write(event, &mut frame).is_break(),
            }
            measures.sent(frame.len() - before);
            if matches!(event, Event::Bookmark { initial_end: true, .. })
                && let Some(List { began, scope, api }) = self.list.take()
            {
                let resource = &self.encoder.rendering.resource.resource;
                api.metrics.watch_list(resource, scope, began.elapsed());
            }
            self.pending.next();
            if self.ended || frame.len() >= self.frame_bytes {
                break;
            }
        }
        frame.into()
    }
}

fn bookmark_event(revision: Revision) -> std::vec::IntoIter<Event> {
    vec![Event::Bookmark { revision, initial_end: false }].into_iter()
}

/// The times of bookmarks.
struct Bookmarks {
    timer: Pin<Box<Sleep>>,
    /// The time of the last bookmark.
    before_end: Instant,
}

impl Bookmarks {
    fn new(end: Instant) -> Self {
        let before_end = end - BOOKMARK_BEFORE_END.min(end.duration_since(Instant::now()));
        let mut bookmarks = Self { timer: Box::pin(sleep_until(end)), before_end };
        bookmarks.schedule();
        bookmarks
    }

    /// Returns when the next bookmark is due. Cancel safe.
    async fn due(&mut self) {
        self.timer.as_mut().await;
    }

    /// Whether the time of the last bookmark has passed and the server was too busy to send it.
    fn is_last_bookmark_due(&self) -> bool {
        Instant::now() >= self.before_end && self.timer.deadline() <= self.before_end
    }

    /// Schedules the next bookmark.
    fn schedule(&mut self) {
        let now = Instant::now();
        let next = now + BOOKMARK_INTERVAL;
        // No other bookmark follows the last one, and a watch that is too short has none.
        let next = if now < self.before_end { next.min(self.before_end) } else { next };
        self.timer.as_mut().reset(next);
    }
}

/// Encodes events.
struct Encoder {
    rendering: Rendering,
    encoding: Encoding,
    /// Of most kinds, only the first Table of a watch has columns (OAS-14).
    columns_sent: bool,
}

impl Encoder {
    /// The cached frame of an event, if it has one.
    fn cached_frame(&self, event: &Event) -> Option<Bytes> {
        let (kind, object) = match event {
            Event::Added(object) => (Kind::Created, object),
            Event::Modified(object) => (Kind::Updated, object),
            Event::Deleted(object) => (Kind::Deleted, object),
            Event::Bookmark { .. } | Event::Error(_) => return None,
        };
        let resource = &self.rendering.resource;
        match (self.encoding, self.rendering.form) {
            (Encoding::Json, Form::Object) if resource.is_stored_version() => object.frame(kind),
            (Encoding::Json, Form::Object) => resource.encoded(object, Extra::Json).frame(kind),
            (encoding, _) => {
                let extra = self.rendering.cached(encoding)?;
                resource.encoded(object, extra).frame(kind)
            }
        }
    }

    /// Encodes an event without a cached frame; `Break` after an error, which is the last event.
    fn write(&mut self, event: &Event, out: &mut Vec<u8>) -> ControlFlow<()> {
        match event {
            Event::Added(object) => self.write_object(Kind::Created, object, out),
            Event::Modified(object) => self.write_object(Kind::Updated, object, out),
            Event::Deleted(object) => self.write_object(Kind::Deleted, object, out),
            Event::Bookmark { revision, initial_end } => {
                let json = &self.bookmark(*revision, *initial_end);
                self.write_event("BOOKMARK", &Shown { json, stored: None }, out);
            }
            Event::Error(status) => {
                self.write_document("ERROR", STATUS_TYPE, &status_json(status), out);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn write_object(&mut self, kind: Kind, object: &Arc<Object>, out: &mut Vec<u8>) {
        let (event_type, resource) = (event_type(kind), &self.rendering.resource);
        if let Some(extra) = self.rendering.cached(self.encoding) {
            let document = resource.encoded(object, extra).document();
            return self.write_encoded(event_type, &document, out);
        }
        let shown = Shown { json: &resource.view(object), stored: Some(object) };
        self.write_event(event_type, &shown, out);
    }

    fn write_event(&mut self, event_type: &str, shown: &Shown<'_>, out: &mut Vec<u8>) {
        let repeated = self.rendering.printer.variant().repeats_columns;
        let with_columns = !std::mem::replace(&mut self.columns_sent, true) || repeated;
        if self.encoding == Encoding::Json {
            begin(event_type, out);
            self.rendering.write(shown, with_columns, out);
            return end(out);
        }
        let mut document = Vec::with_capacity(shown.json.len());
        self.rendering.write(shown, with_columns, &mut document);
        self.write_document(event_type, self.rendering.type_name(), &document, out);
    }

    /// Writes an event with a document of the named type.
    fn write_document(&self, event_type: &str, type_name: &str, json: &[u8], out: &mut Vec<u8>) {
        match self.encoding {
            Encoding::Protobuf => {
                self.write_encoded(event_type, &protobuf::object(type_name, json), out);
            }
            Encoding::Cbor => self.write_encoded(event_type, &respond::cbor(json), out),
            Encoding::Json | Encoding::Yaml => self.write_encoded(event_type, json, out),
        }
    }

    /// Writes an event with a document in the watch's encoding.
    fn write_encoded(&self, event_type: &str, document: &[u8], out: &mut Vec<u8>) {
        match self.encoding {
            Encoding::Protobuf => {
                pintle_schema::protobuf::encode_event(event_type, document, out);
            }
            Encoding::Cbor => cbor::write_event(event_type, document, out),
            Encoding::Json | Encoding::Yaml => {
                begin(event_type, out);
                out.extend_from_slice(document);
                end(out);
            }
        }
    }

    /// The object of a bookmark: nothing but kind and resource version (BM-02), with the annotation
    /// that ends the initial events (SL-02).
    fn bookmark(&self, revision: Revision, initial_end: bool) -> Vec<u8> {
        let resource = &self.rendering.resource;
        let mut tree = resource.zero();
        let metadata = tree.make_object().entry_object("metadata");
        metadata.insert("resourceVersion", revision.to_string());
        if initial_end {
            let annotations = metadata.entry_object("annotations");
            annotations.insert("k8s.io/initial-events-end", "true");
        }
        let mut json = Vec::with_capacity(256);
        pintle_schema::encode::write(&resource.schema, resource.ty, &tree, &mut json);
        json
    }
}

fn begin(event_type: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(event_type.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
}

fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"}\n");
}
