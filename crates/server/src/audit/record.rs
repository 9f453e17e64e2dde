//! The record of one request: collects its facts, and makes an event at each stage.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use parking_lot::Mutex;
use pintle_audit::{Level, Recording, RequestText, Response, Stage, TRUNCATED};
use pintle_auth::token::Authenticated;
use pintle_auth::{Decision, Ruling, User};
use pintle_meta::{Reason, Status};
use pintle_registry::Verb;
use pintle_registry::request::{Encoding, PatchType, Recorder};
use pintle_trace::Timing;
use pintle_value::{Value, cbor, json, yaml};

use super::headers::Head;
use super::moment::{Facts, Moment};
use super::{Audit, Received, latency};
use crate::audit_notes;
use crate::body::Pieces;
use crate::machine::now;
use crate::options::recorded_options;
use crate::request_info::RequestInfo;
use crate::respond;

/// The longest response that is recorded as an object if it is sent in pieces, in bytes.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

const DECISION: &str = "authorization.k8s.io/decision";
const REASON: &str = "authorization.k8s.io/reason";
const STALE_TOKEN: &str = "authentication.k8s.io/stale-token";

/// The facts of a request that are known so far.
pub(crate) struct Record {
    audit: Arc<Audit>,
    pub(super) recording: Recording,
    pub(super) head: Head,
    pub(super) info: Arc<RequestInfo>,
    /// The text that all events of the request contain; set when the first event is encoded.
    pub(super) request_text: OnceLock<RequestText>,
    /// The user. Without an authenticated user only the refusal is recorded.
    pub(super) user: Option<Arc<User>>,
    /// The time that the request spends in each layer.
    timing: Arc<Timing>,
    has_ended: AtomicBool,
    facts: Mutex<Facts>,
}

impl Record {
    pub(super) fn new(
        audit: Arc<Audit>,
        recording: Recording,
        received: &Received<'_>,
        info: &Arc<RequestInfo>,
        user: Option<&Arc<User>>,
    ) -> Self {
        Self {
            audit,
            recording,
            head: received.head(),
            info: info.clone(),
            request_text: OnceLock::new(),
            user: user.cloned(),
            timing: received.timing.clone(),
            has_ended: AtomicBool::new(false),
            facts: Mutex::default(),
        }
    }

    /// Records the stage `RequestReceived`. Returns false if the request must be refused because
    /// the event cannot be recorded.
    pub(crate) async fn received(self: &Arc<Self>) -> bool {
        if self.user.is_none() || self.recording.omits(Stage::RequestReceived) {
            return true;
        }
        self.add_notes();
        let facts = self.facts.lock().clone();
        let at = self.head.received_unix_micros;
        let outcomes = self.audit.record(self.moment(Stage::RequestReceived, at, facts));
        let is_recorded = outcomes.finished().await;
        if !is_recorded {
            self.audit.measures.rejected.add(1);
            self.has_ended.store(true, Ordering::Relaxed);
        }
        is_recorded
    }

    /// Annotates the request if a valid token is stale: the request's token, or that of a
    /// TokenReview.
    pub(crate) fn presented(&self, known: &Authenticated) {
        if let Some(text) = known.staleness() {
            self.annotate(STALE_TOKEN, &text);
        }
    }

    /// Annotates the request with the notes that were added since the last call.
    fn add_notes(&self) {
        let notes = audit_notes::take();
        if !notes.is_empty() {
            let mut facts = self.facts.lock();
            notes.into_iter().for_each(|(key, value)| facts.annotate(key.into(), value.into()));
        }
    }

    /// Records an impersonation; `constraint` is the verb of a constrained one.
    pub(crate) fn impersonated(&self, user: &Arc<User>, constraint: Option<&'static str>) {
        let mut facts = self.facts.lock();
        facts.impersonated = Some(user.clone());
        facts.impersonation_constraint = constraint;
    }

    /// Records the authorizer's decision.
    pub(crate) fn authorized(&self, ruling: &Ruling) {
        let (decision, reason) = match (ruling.decision, &ruling.reason) {
            (Decision::Allow, reason) => (Some("allow"), reason.words()),
            _ if ruling.error.is_some() => (None, "internal error".into()),
            (_, reason) => (Some("forbid"), reason.words()),
        };
        let mut facts = self.facts.lock();
        decision.into_iter().for_each(|text| facts.annotate(DECISION.into(), text.into()));
        facts.annotate(REASON.into(), reason);
    }

    /// Records a patch as the client sent it. A patch in YAML or CBOR is recorded as JSON.
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

    /// Records the options of a deletion as the client sent them.
    pub(crate) fn delete_options(&self, bytes: &[u8], encoding: Encoding) {
        if self.wants_objects()
            && let Some(json) = recorded_options(bytes, encoding)
        {
            self.request_object(json.into());
        }
    }

    /// Records the response's head. Returns the response with a body that records itself while it
    /// is sent, if the level is `RequestResponse`.
    pub(crate) fn answered(self: &Arc<Self>, mut answer: respond::Response) -> respond::Response {
        self.add_notes();
        let code = answer.status().as_u16();
        let status = answer.extensions_mut().remove::<Arc<Status>>();
        let is_object = status.is_some() || self.info.resource.is_some();
        let response = status.map_or(Response::Code(code), |status| Response::Status(status, code));
        {
            let mut facts = self.facts.lock();
            facts.response = Some(response);
        }
        let is_encoded = answer.headers().get(CONTENT_TYPE).is_some_and(is_encoding);
        if self.recording.level < Level::RequestResponse || !is_object || !is_encoded {
            return answer;
        }
        if let Some(whole) = answer.body().whole() {
            self.facts.lock().response_object = Some(whole.clone());
            return answer;
        }
        let (head, body) = answer.into_parts();
        let record = self.clone();
        let sent = Some(Vec::new());
        let body = body.map_made(|pieces| Box::new(Recorded { pieces, sent, record }));
        respond::Response::from_parts(head, body)
    }

    /// Records the stage `ResponseStarted` of a long-running request. Without an authenticated user
    /// that is the last stage, and a request that was refused because its first event could not be
    /// recorded has none.
    pub(crate) async fn started(self: &Arc<Self>) {
        let is_due = self.user.is_some() && !self.has_ended.load(Ordering::Relaxed);
        if is_due && !self.recording.omits(Stage::ResponseStarted) {
            let facts = self.facts.lock().clone();
            let moment = self.moment(Stage::ResponseStarted, now().unix_micros, facts);
            self.audit.record(moment).finished().await;
        }
    }

    /// Records the last stage before the complete response is sent, if requests wait for a backend.
    pub(crate) async fn completed(self: &Arc<Self>) {
        if self.audit.blocks()
            && let Some(moment) = self.last()
        {
            self.audit.record(moment).finished().await;
        }
    }

    /// Records the last stage after the response was sent, unless [`Self::completed`] has recorded
    /// it.
    pub(crate) fn ended(self: &Arc<Self>) {
        if let Some(moment) = self.last() {
            self.audit.enqueue(moment);
        }
    }

    /// The last moment of the request; `None` after the first call, or if the policy omits the
    /// stage.
    fn last(self: &Arc<Self>) -> Option<Moment> {
        if self.has_ended.swap(true, Ordering::Relaxed) {
            return None;
        }
        let mut facts = std::mem::take(&mut *self.facts.lock());
        let stage = if std::thread::panicking() {
            let why = "APIServer panic'd: the handler of the request failed";
            let status = Arc::new(Status::failure(Reason::InternalError, why));
            facts.response = Some(Response::Status(status, 500));
            Stage::Panic
        } else if self.user.is_none() {
            Stage::ResponseStarted
        } else {
            Stage::ResponseComplete
        };
        facts.response.get_or_insert(Response::ClosedEarly);
        if stage == Stage::ResponseComplete && !self.info.verb.is(Verb::Watch) {
            self.annotate_latency(&mut facts, now().unix_micros);
        }
        (!self.recording.omits(stage)).then(|| self.moment(stage, now().unix_micros, facts))
    }

    /// Annotates a slow request with the time that it spent in each layer.
    fn annotate_latency(&self, facts: &mut Facts, unix_micros: i64) {
        let micros = unix_micros - self.head.received_unix_micros;
        let total = Duration::from_micros(u64::try_from(micros).unwrap_or_default());
        for (key, text) in latency::annotations(&self.timing, total) {
            facts.annotate(key.into(), text.into());
        }
    }

    fn moment(self: &Arc<Self>, stage: Stage, unix_micros: i64, facts: Facts) -> Moment {
        Moment { record: self.clone(), stage, unix_micros, facts }
    }
}

impl Recorder for Record {
    fn object(&self, sent: &Value) {
        if self.info.resource.is_some() {
            self.facts.lock().body.add(sent);
        }
    }

    fn wants_objects(&self) -> bool {
        self.recording.level >= Level::Request
    }

    fn request_object(&self, json: Bytes) {
        self.facts.lock().request_object = Some(json);
    }

    fn annotate(&self, key: &str, value: &str) {
        self.facts.lock().annotate(key.to_owned().into(), value.to_owned().into());
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("audit_id", &self.head.audit_id).finish_non_exhaustive()
    }
}

/// A response body that records its pieces while they are sent.
struct Recorded {
    pieces: Box<dyn Pieces>,
    /// The bytes that were sent; `None` if they exceed the limit.
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
                    // A part of an object is not recorded.
                    None => self.record.annotate(TRUNCATED, "true"),
                }
            }
            None => {
                let whole = self.sent.take().filter(|sent| !sent.is_empty());
                if let Some(whole) = whole {
                    self.record.facts.lock().response_object = Some(whole.into());
                }
            }
        }
        piece
    }

    fn takes_work(&mut self) -> bool {
        self.pieces.takes_work()
    }
}

/// Whether a response is an object in an encoding that is converted to JSON when the event is
/// encoded.
fn is_encoding(content_type: &HeaderValue) -> bool {
    const ENCODINGS: [&[u8]; 4] = [
        b"application/json",
        b"application/vnd.kubernetes.protobuf",
        b"application/cbor",
        b"application/yaml",
    ];
    ENCODINGS.iter().any(|encoding| content_type.as_bytes().starts_with(encoding))
}
