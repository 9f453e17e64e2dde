//! What becomes known of one request, and the events that are made of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use parking_lot::Mutex;
use pintle_audit::{Event, Level, ObjectReference, Recording, Request, Response, Stage, TRUNCATED};
use pintle_auth::{Decision, Ruling, User};
use pintle_meta::{Reason, Status, object};
use pintle_registry::request::{Encoding, PatchType, Recorder};
use pintle_value::{Value, cbor, json, yaml};

use super::{Audit, Received};
use crate::body::Pieces;
use crate::machine::now;
use crate::options::recorded_options;
use crate::request_info::{RequestInfo, ResourceInfo};
use crate::respond;

/// How many bytes of a request's annotations are recorded; more are left out.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;
/// The longest answer that is recorded as an object, in bytes.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

const DECISION: &str = "authorization.k8s.io/decision";
const REASON: &str = "authorization.k8s.io/reason";

/// What is known of a request by now.
pub(crate) struct Record {
    audit: Arc<Audit>,
    recording: Recording,
    request: Arc<Request>,
    /// Only that it was refused is recorded: nobody knows who asked.
    is_refusal: bool,
    has_ended: AtomicBool,
    collected: Mutex<Collected>,
}

#[derive(Clone, Default)]
struct Collected {
    impersonated: Option<Arc<User>>,
    impersonation_constraint: Option<&'static str>,
    object: Option<ObjectReference>,
    response: Option<Response>,
    request_object: Option<Bytes>,
    response_object: Option<Bytes>,
    annotations: BTreeMap<String, String>,
    annotations_bytes: usize,
}

impl Record {
    pub(super) fn new(
        audit: Arc<Audit>,
        recording: Recording,
        received: &Received<'_>,
        info: &RequestInfo,
        user: Option<&Arc<User>>,
    ) -> Self {
        let request =
            Request { verb: info.verb.to_text(), user: user.cloned(), ..received.request() };
        let object = info.resource.as_ref().map(reference);
        Self {
            audit,
            recording,
            request: Arc::new(request),
            is_refusal: user.is_none(),
            has_ended: AtomicBool::new(false),
            collected: Mutex::new(Collected { object, ..Collected::default() }),
        }
    }

    /// The request was received. `false` where it must be refused, for that cannot be recorded.
    pub(crate) async fn received(&self) -> bool {
        if self.is_refusal || self.recording.omits(Stage::RequestReceived) {
            return true;
        }
        let at = self.request.received_unix_micros;
        let event = self.event(Stage::RequestReceived, at, self.collected.lock().clone());
        let is_recorded = self.audit.process(event).await;
        if !is_recorded {
            self.audit.measures.rejected.add(1);
            self.has_ended.store(true, Ordering::Relaxed);
        }
        is_recorded
    }

    /// The user acts as another one, by a verb of constrained impersonation or by none.
    pub(crate) fn impersonated(&self, user: &Arc<User>, constraint: Option<&'static str>) {
        let mut collected = self.collected.lock();
        collected.impersonated = Some(user.clone());
        collected.impersonation_constraint = constraint;
    }

    /// The authorizer decided.
    pub(crate) fn authorized(&self, ruling: &Ruling) {
        let decision = match ruling.decision {
            Decision::Allow => "allow",
            _ if ruling.error.is_some() => return self.annotate(REASON, "internal error"),
            _ => "forbid",
        };
        self.annotate(DECISION, decision);
        self.annotate(REASON, &ruling.reason.to_string());
    }

    /// A patch, as the client sent it; one that is no JSON is recorded as such.
    pub(crate) fn patch(&self, bytes: &Bytes, patch_type: PatchType) {
        if self.wants_objects() {
            let json = match patch_type {
                PatchType::Apply(Encoding::Yaml) => yaml::parse(bytes).ok(),
                PatchType::Apply(Encoding::Cbor) => cbor::parse(bytes).ok(),
                _ => None,
            };
            let json = json.map(|object| json::to_string(&object).into());
            self.request_object(json.unwrap_or_else(|| bytes.clone()));
        }
    }

    /// The options of a deletion, as the client sent them.
    pub(crate) fn delete_options(&self, bytes: &[u8], encoding: Encoding) {
        if self.wants_objects()
            && let Some(json) = recorded_options(bytes, encoding)
        {
            self.request_object(json.into());
        }
    }

    /// The head of the answer is known. Its body is recorded where the level says so.
    pub(crate) fn answered(self: &Arc<Self>, mut answer: respond::Response) -> respond::Response {
        let code = answer.status().as_u16();
        let status = answer.extensions_mut().remove::<Arc<Status>>();
        let is_object = status.is_some() || self.collected.lock().object.is_some();
        let response = status.map_or(Response::Code(code), |status| Response::Status(status, code));
        self.collected.lock().response = Some(response);
        let is_encoded = answer.headers().get(CONTENT_TYPE).is_some_and(is_encoding);
        if self.recording.level < Level::RequestResponse || !is_object || !is_encoded {
            return answer;
        }
        if let Some(whole) = answer.body().whole() {
            self.collected.lock().response_object = Some(whole.clone());
            return answer;
        }
        let (head, body) = answer.into_parts();
        let record = self.clone();
        let sent = Some(Vec::new());
        let body = body.map_made(|pieces| Box::new(Recorded { pieces, sent, record }));
        respond::Response::from_parts(head, body)
    }

    /// The request runs long, and the head of its answer is sent.
    pub(crate) async fn started(&self) {
        if !self.recording.omits(Stage::ResponseStarted) {
            let collected = self.collected.lock().clone();
            let event = self.event(Stage::ResponseStarted, now().unix_micros, collected);
            self.audit.process(event).await;
        }
    }

    /// The answer is there as a whole: its end is recorded before it is sent, where requests wait for that.
    pub(crate) async fn completed(&self) {
        if self.audit.blocks()
            && let Some(event) = self.last()
        {
            self.audit.process(event).await;
        }
    }

    /// Nothing more is sent. What was recorded by [`Self::completed`] is not recorded again.
    pub(crate) fn ended(&self) {
        if let Some(event) = self.last() {
            self.audit.hand_over(event);
        }
    }

    /// The last event of the request; once.
    fn last(&self) -> Option<Event> {
        if self.has_ended.swap(true, Ordering::Relaxed) {
            return None;
        }
        let mut collected = std::mem::take(&mut *self.collected.lock());
        let stage = if std::thread::panicking() {
            let why = "APIServer panic'd: the handler of the request failed";
            let status = Arc::new(Status::failure(Reason::InternalError, why));
            collected.response = Some(Response::Status(status, 500));
            Stage::Panic
        } else if self.is_refusal {
            Stage::ResponseStarted
        } else {
            Stage::ResponseComplete
        };
        collected.response.get_or_insert(Response::ClosedEarly);
        (!self.recording.omits(stage)).then(|| self.event(stage, now().unix_micros, collected))
    }

    /// An event of what is known.
    fn event(&self, stage: Stage, stage_unix_micros: i64, collected: Collected) -> Event {
        Event {
            level: self.recording.level,
            stage,
            stage_unix_micros,
            request: self.request.clone(),
            impersonated: collected.impersonated,
            impersonation_constraint: collected.impersonation_constraint,
            object: collected.object,
            response: collected.response,
            request_object: collected.request_object,
            response_object: collected.response_object,
            omits_managed_fields: self.recording.omits_managed_fields,
            annotations: collected.annotations,
        }
    }
}

impl Recorder for Record {
    fn object(&self, sent: &Value) {
        let mut collected = self.collected.lock();
        let Some(reference) = &mut collected.object else { return };
        let metadata = |member| object::text(sent, member);
        for (known, said) in [
            (&mut reference.namespace, metadata("namespace")),
            (&mut reference.name, metadata("name")),
            (&mut reference.uid, metadata("uid")),
            (&mut reference.resource_version, metadata("resourceVersion")),
        ] {
            if known.is_empty() {
                said.clone_into(known);
            }
        }
    }

    fn wants_objects(&self) -> bool {
        self.recording.level >= Level::Request
    }

    fn request_object(&self, json: Bytes) {
        self.collected.lock().request_object = Some(json);
    }

    fn annotate(&self, key: &str, value: &str) {
        let mut collected = self.collected.lock();
        let bytes = collected.annotations_bytes + key.len() + value.len();
        if collected.annotations.contains_key(key) {
            return;
        }
        if bytes > ANNOTATIONS_BYTES_MAX {
            collected.annotations.insert(TRUNCATED.to_owned(), "true".to_owned());
            return;
        }
        collected.annotations_bytes = bytes;
        collected.annotations.insert(key.to_owned(), value.to_owned());
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("audit_id", &self.request.audit_id).finish_non_exhaustive()
    }
}

/// An answer whose pieces are recorded as they are sent.
struct Recorded {
    pieces: Box<dyn Pieces>,
    /// What was sent; `None` where that is too much.
    sent: Option<Vec<u8>>,
    record: Arc<Record>,
}

impl Pieces for Recorded {
    fn next(&mut self) -> Option<Bytes> {
        let piece = self.pieces.next();
        match &piece {
            Some(piece) => {
                let fits = |sent: &Vec<u8>| sent.len() + piece.len() <= ANSWER_BYTES_MAX;
                match self.sent.take().filter(fits) {
                    Some(mut sent) => {
                        sent.extend_from_slice(piece);
                        self.sent = Some(sent);
                    }
                    // A part of an object is none.
                    None => self.record.annotate(TRUNCATED, "true"),
                }
            }
            None => {
                let whole = self.sent.take().filter(|sent| !sent.is_empty());
                if let Some(whole) = whole {
                    self.record.collected.lock().response_object = Some(whole.into());
                }
            }
        }
        piece
    }

    fn takes_work(&mut self) -> bool {
        self.pieces.takes_work()
    }
}

fn reference(named: &ResourceInfo) -> ObjectReference {
    ObjectReference {
        resource: named.resource.clone(),
        namespace: named.namespace.clone(),
        name: named.name.clone(),
        group: named.group.clone(),
        version: named.version.clone(),
        subresource: named.subresource.clone(),
        ..ObjectReference::default()
    }
}

/// Whether an answer is an object in an encoding from which JSON is made when the event is written.
fn is_encoding(content_type: &HeaderValue) -> bool {
    const ENCODINGS: [&[u8]; 4] = [
        b"application/json",
        b"application/vnd.kubernetes.protobuf",
        b"application/cbor",
        b"application/yaml",
    ];
    ENCODINGS.iter().any(|encoding| content_type.as_bytes().starts_with(encoding))
}
