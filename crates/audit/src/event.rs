//! Events: the record of one stage of one request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use pintle_auth::User;
use pintle_meta::Status;

/// How much of a request is recorded. Each level includes the previous one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    #[default]
    None,
    /// User, target, time and outcome.
    Metadata,
    /// Also the request's object.
    Request,
    /// Also the answer's object.
    RequestResponse,
}

impl Level {
    /// All levels, the lowest first.
    pub const ALL: [Self; 4] = [Self::None, Self::Metadata, Self::Request, Self::RequestResponse];

    /// The name in policies and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// The stages of a request at which events are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// User and target are known; nothing has been done.
    RequestReceived,
    /// The answer's head was sent; only for long-running requests, such as watches.
    ResponseStarted,
    /// The answer was sent.
    ResponseComplete,
    /// The server panicked.
    Panic,
}

impl Stage {
    /// All stages, in upstream's order.
    pub const ALL: [Self; 4] =
        [Self::RequestReceived, Self::ResponseStarted, Self::ResponseComplete, Self::Panic];

    /// The name in policies and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// What is known of a request when it is received; the same for all of its events.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The ID that the events of a request have in common.
    pub audit_id: String,
    /// The path and the query, as the client sent them.
    pub uri: String,
    /// The verb; for a path that is not a resource, the method in lower case.
    pub verb: Cow<'static, str>,
    /// The user; `None` if authentication failed.
    pub user: Option<Arc<User>>,
    /// The addresses of the client and the proxies. The client can forge all but the last.
    pub source_ips: Vec<String>,
    /// The client's `User-Agent`.
    pub user_agent: String,
    /// The time of arrival, in microseconds since 1970.
    pub received_unix_micros: i64,
}

/// The object of a request. Unknown fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectReference {
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub group: String,
    pub version: String,
    pub resource_version: String,
    pub subresource: String,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// An HTTP status code.
    Code(u16),
    /// The Status of the answer, and the HTTP status code.
    Status(Arc<Status>, u16),
    /// The client disconnected before anything was sent.
    ClosedEarly,
}

/// The record of one stage of one request.
#[derive(Clone, Debug)]
pub struct Event {
    /// How much is recorded.
    pub level: Level,
    /// The stage.
    pub stage: Stage,
    /// The time of the stage, in microseconds since 1970.
    pub stage_unix_micros: i64,
    /// The parts that are the same at every stage.
    pub request: Arc<Request>,
    /// The impersonated user.
    pub impersonated: Option<Arc<User>>,
    /// The mode of constrained impersonation that permitted this, if any: `user-info`.
    pub impersonation_constraint: Option<&'static str>,
    /// The object; `None` for paths that are not resources.
    pub object: Option<ObjectReference>,
    /// The outcome, once it is known.
    pub response: Option<Response>,
    /// The request's object in JSON, Protobuf or CBOR; any other body is treated as text.
    pub request_object: Option<Bytes>,
    /// The answer's object in JSON, YAML, Protobuf or CBOR.
    pub response_object: Option<Bytes>,
    /// Whether managed fields are removed from the objects.
    pub omits_managed_fields: bool,
    /// Annotations of the parts of the server.
    pub annotations: BTreeMap<String, String>,
}

impl Event {
    /// The approximate size in memory, in bytes.
    pub fn size(&self) -> usize {
        /// The size without long texts.
        const BASE_BYTES: usize = 1024;
        let object = |object: &Option<Bytes>| object.as_ref().map_or(0, Bytes::len);
        let annotations: usize = self.annotations.iter().map(|(k, v)| k.len() + v.len()).sum();
        let request = &self.request;
        BASE_BYTES
            + object(&self.request_object)
            + object(&self.response_object)
            + annotations
            + request.uri.len()
            + request.user_agent.len()
    }
}
