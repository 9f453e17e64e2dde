//! Events: the record of one stage of one request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

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
    /// The answer's head was sent; only for long-running requests, such as watches, and for
    /// requests whose authentication failed.
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

/// The properties of a request that are known when it is received; the same for all of its events.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The ID that the events of a request have in common.
    pub audit_id: &'a str,
    /// The path and the query, as the client sent them.
    pub uri: &'a str,
    /// The verb; for a path that is not a resource, the method in lower case.
    pub verb: &'a str,
    /// The user; `None` if authentication failed.
    pub user: Option<&'a User>,
    /// The addresses of the client and the proxies. The client can forge all but the last.
    pub source_ips: &'a [IpAddr],
    /// The client's `User-Agent`.
    pub user_agent: &'a str,
    /// The time of arrival, in microseconds since 1970.
    pub received_unix_micros: i64,
    /// These properties as JSON: the first event that is written encodes them, the others copy them.
    pub text: &'a OnceLock<RequestText>,
}

/// The members that all events of a request have in common, as JSON.
#[derive(Clone, Debug)]
pub struct RequestText {
    pub(crate) members: Vec<u8>,
    /// The end of the members before the impersonated user.
    pub(crate) user_end: usize,
    /// The end of the members before the object.
    pub(crate) agent_end: usize,
}

impl RequestText {
    pub(crate) fn until_user(&self) -> &[u8] {
        &self.members[..self.user_end]
    }

    pub(crate) fn addresses_and_agent(&self) -> &[u8] {
        &self.members[self.user_end..self.agent_end]
    }

    pub(crate) fn received(&self) -> &[u8] {
        &self.members[self.agent_end..]
    }
}

/// The object of a request. Unknown fields are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectReference<'a> {
    pub resource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
    pub group: &'a str,
    pub version: &'a str,
    pub resource_version: &'a str,
    pub subresource: &'a str,
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

/// Annotations that parts of the server add, by key. Most texts are constants.
pub type Annotations = BTreeMap<Cow<'static, str>, Cow<'static, str>>;

/// The record of one stage of one request. It borrows all of its parts, so that they are copied only into the
/// text that is written.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// How much is recorded.
    pub level: Level,
    /// The stage.
    pub stage: Stage,
    /// The time of the stage, in microseconds since 1970.
    pub stage_unix_micros: i64,
    /// The parts that are the same at every stage.
    pub request: Request<'a>,
    /// The impersonated user.
    pub impersonated: Option<&'a User>,
    /// The mode of constrained impersonation that permitted this, if any, such as `user-info`.
    pub impersonation_constraint: Option<&'a str>,
    /// The object; `None` for paths that are not resources.
    pub object: Option<ObjectReference<'a>>,
    /// The outcome, once it is known.
    pub response: Option<&'a Response>,
    /// The request's object in JSON, Protobuf or CBOR; any other body is treated as text.
    pub request_object: Option<&'a [u8]>,
    /// The answer's object in JSON, YAML, Protobuf or CBOR.
    pub response_object: Option<&'a [u8]>,
    /// Whether managed fields are removed from the objects.
    pub omits_managed_fields: bool,
    /// Annotations that parts of the server have added.
    pub annotations: &'a Annotations,
}
