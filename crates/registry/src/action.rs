//! Actions: objects that are posted to cause an effect and are not stored: a binding, an
//! eviction. The answer is a Status or an object that nobody stores.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use pintle_meta::Status;
use pintle_value::Value;

use crate::Registry;
use crate::answer::Answer;
use crate::request::{Context, Target, WriteOptions};

/// What happens when an object of some kind is posted to a resource or a subresource.
pub trait Action: Send + Sync {
    /// The name of the type of what is posted, in the resource's schema.
    fn type_name(&self) -> &'static str;

    /// The versions in which it may be posted too, in which it is the same.
    fn old_versions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Does it. What was posted has passed admission.
    fn perform<'a>(&'a self, request: Request<'a>) -> Performed<'a>;
}

impl fmt::Debug for dyn Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.type_name().fmt(f)
    }
}

/// What takes the same is the same.
impl PartialEq for dyn Action {
    fn eq(&self, other: &Self) -> bool {
        self.type_name() == other.type_name()
    }
}

impl Eq for dyn Action {}

/// A request for an action.
pub struct Request<'a> {
    /// Where it takes effect.
    pub registry: &'a Registry,
    /// What the URL names.
    pub target: &'a Target,
    /// What was posted.
    pub posted: Value,
    /// How it was posted.
    pub options: &'a WriteOptions,
    /// Who asks, and when.
    pub context: &'a Context,
}

/// The answer to come.
pub type Performed<'a> = Pin<Box<dyn Future<Output = Result<Answer, Status>> + Send + 'a>>;
