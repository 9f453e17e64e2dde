//! Actions: the effects of posted objects that are not stored, such as a binding or an eviction.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use pintle_meta::Status;
use pintle_value::Value;

use crate::Registry;
use crate::request::{Context, Target, WriteOptions};
use crate::results::ResponseBody;

/// The effect of a POST of some kind to a resource or a subresource.
pub trait Action: Send + Sync {
    /// The name of the posted type in the resource's schema.
    fn type_name(&self) -> &'static str;

    /// Other versions of the posted kind that are accepted and have the same fields.
    fn old_versions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Performs the action. The posted object has passed admission.
    fn perform<'a>(&'a self, request: Request<'a>) -> Performed<'a>;
}

impl fmt::Debug for dyn Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.type_name().fmt(f)
    }
}

/// Actions are equal if they take the same type.
impl PartialEq for dyn Action {
    fn eq(&self, other: &Self) -> bool {
        self.type_name() == other.type_name()
    }
}

impl Eq for dyn Action {}

/// A request for an action.
pub struct Request<'a> {
    /// The registry in which the action takes effect.
    pub registry: &'a Registry,
    /// The target of the URL.
    pub target: &'a Target,
    /// The posted object.
    pub posted: Value,
    /// The options of the POST.
    pub options: &'a WriteOptions,
    /// The user and the time of the request.
    pub context: &'a Context,
}

/// The future of the response.
pub type Performed<'a> = Pin<Box<dyn Future<Output = Result<ResponseBody, Status>> + Send + 'a>>;
