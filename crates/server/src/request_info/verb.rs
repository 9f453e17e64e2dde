//! The verb of a request.

use std::borrow::Cow;

use http::Method;
use pintle_registry::Verb;

/// The verb of a request. Its text is for authorization, audit, flow schemas and logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestVerb {
    /// A verb on a resource.
    Resource(Verb),
    /// The method in lower case, of a request whose path names no resource.
    Path(Cow<'static, str>),
    /// The path names a resource, and the method is no verb on resources: OPTIONS, for example.
    None,
}

impl RequestVerb {
    /// The verb of a request whose path names no resource.
    pub(super) fn of_path(method: &Method) -> Self {
        Self::Path(match *method {
            Method::GET => "get".into(),
            Method::HEAD => "head".into(),
            Method::POST => "post".into(),
            Method::PUT => "put".into(),
            Method::PATCH => "patch".into(),
            Method::DELETE => "delete".into(),
            Method::OPTIONS => "options".into(),
            Method::CONNECT => "connect".into(),
            Method::TRACE => "trace".into(),
            _ => method.as_str().to_lowercase().into(),
        })
    }

    /// The verb as authorization and audit name it; `""` where there is none.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Resource(verb) => verb.as_str(),
            Self::Path(method) => method,
            Self::None => "",
        }
    }

    /// [`Self::as_str`] as a text that can outlive the request.
    pub(crate) fn to_text(&self) -> Cow<'static, str> {
        match self {
            Self::Resource(verb) => verb.as_str().into(),
            Self::Path(method) => method.clone(),
            Self::None => "".into(),
        }
    }

    /// The verb on a resource; `None` if the path names no resource or the method is no such verb.
    pub(crate) fn on_resource(&self) -> Option<Verb> {
        match self {
            Self::Resource(verb) => Some(*verb),
            Self::Path(_) | Self::None => None,
        }
    }

    /// True for this verb on a resource.
    pub(crate) fn is(&self, verb: Verb) -> bool {
        self.on_resource() == Some(verb)
    }

    /// True for a verb that changes nothing.
    pub(super) fn is_read_only(&self) -> bool {
        match self {
            Self::Resource(verb) => matches!(verb, Verb::Get | Verb::List | Verb::Watch),
            Self::Path(method) => matches!(&**method, "get" | "head" | "options"),
            Self::None => false,
        }
    }
}
