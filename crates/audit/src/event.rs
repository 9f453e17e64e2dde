//! Events: what is recorded of one stage of one request.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use pintle_auth::User;
use pintle_meta::Status;

/// How much of a request is recorded. Each level has all that the one before has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    #[default]
    None,
    /// Who asked for what, when, and what became of it.
    Metadata,
    /// The request's object, too.
    Request,
    /// The answer's object, too.
    RequestResponse,
}

impl Level {
    /// All levels, the lowest first.
    pub const ALL: [Self; 4] = [Self::None, Self::Metadata, Self::Request, Self::RequestResponse];

    /// Its name in policies and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// The stages of a request at which events are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It is known who asks for what; nothing is done yet.
    RequestReceived,
    /// The answer's head was sent; only of requests that run long, such as watches.
    ResponseStarted,
    /// The answer was sent.
    ResponseComplete,
    /// The server failed in the midst of it.
    Panic,
}

impl Stage {
    /// All stages, in upstream's order.
    pub const ALL: [Self; 4] =
        [Self::RequestReceived, Self::ResponseStarted, Self::ResponseComplete, Self::Panic];

    /// Its name in policies and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// What is known of a request when it is received; it stays the same for all of its events.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The id by which the events of a request belong together.
    pub audit_id: String,
    /// The path and the query, as the client sent them.
    pub uri: String,
    /// The verb, or for a path that is no resource the method in lower case.
    pub verb: &'static str,
    /// Who asks; `None` where no credential holds.
    pub user: Option<Arc<User>>,
    /// The addresses that it came from and through. All but the last can be chosen by the client.
    pub source_ips: Vec<String>,
    /// What the client says it is.
    pub user_agent: String,
    /// When it came, in microseconds since 1970.
    pub received_unix_micros: i64,
}

/// The object that a request is about. What is unknown is empty.
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

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// A code of HTTP.
    Code(u16),
    /// What the answer's Status says; the code is HTTP's.
    Status(Arc<Status>, u16),
    /// The client was gone before anything was sent.
    ClosedEarly,
}

/// What is recorded of one stage of one request.
#[derive(Clone, Debug)]
pub struct Event {
    /// How much is recorded.
    pub level: Level,
    /// The stage.
    pub stage: Stage,
    /// When the stage was reached, in microseconds since 1970.
    pub stage_unix_micros: i64,
    /// What is the same at every stage.
    pub request: Arc<Request>,
    /// As whom the user acts.
    pub impersonated: Option<Arc<User>>,
    /// The way of constrained impersonation that allowed this, if it was one: `user-info`.
    pub impersonation_constraint: Option<&'static str>,
    /// What it is about; `None` for paths that are no resources.
    pub object: Option<ObjectReference>,
    /// What became of it, once that is known.
    pub response: Option<Response>,
    /// The request's object in JSON, Protobuf or CBOR; any other body is taken for text.
    pub request_object: Option<Bytes>,
    /// The answer's object in JSON, YAML, Protobuf or CBOR.
    pub response_object: Option<Bytes>,
    /// Whether managed fields are left out of the objects.
    pub omits_managed_fields: bool,
    /// What the parts of the server add.
    pub annotations: BTreeMap<String, String>,
}

impl Event {
    /// How many bytes it keeps in memory, more or less.
    pub fn size(&self) -> usize {
        /// What an event takes without long texts.
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
