//! Authorizers and their rulings.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::rbac::Grant;
use crate::{Attributes, User};

/// Decides what users may do.
pub trait Authorizer: Send + Sync {
    /// Authorizes a request. The answer is ready if the authorizer decides from memory, and pending
    /// if it calls a webhook. No thread waits for it.
    fn authorize<'a>(&self, attributes: &'a Attributes<'a>) -> RulingFuture<'a>;

    /// All that this user may do in a namespace, as far as the authorizer can list it.
    fn rules(&self, user: &User, namespace: &str) -> Rules;
}

/// A ruling that is ready or pending; a caller that cannot wait checks which.
pub enum RulingFuture<'a> {
    /// The ruling.
    Ready(Ruling),
    /// A webhook must answer first.
    Pending(Pin<Box<dyn Future<Output = Ruling> + Send + 'a>>),
}

impl<'a> RulingFuture<'a> {
    /// A pending ruling.
    pub fn pending(ruling: impl Future<Output = Ruling> + Send + 'a) -> Self {
        Self::Pending(Box::pin(ruling))
    }

    /// The ruling, if it is ready.
    pub fn ready(self) -> Option<Ruling> {
        match self {
            Self::Ready(ruling) => Some(ruling),
            Self::Pending(_) => None,
        }
    }
}

impl From<Ruling> for RulingFuture<'_> {
    fn from(ruling: Ruling) -> Self {
        Self::Ready(ruling)
    }
}

impl Future for RulingFuture<'_> {
    type Output = Ruling;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ruling> {
        match &mut *self {
            Self::Ready(ruling) => Poll::Ready(mem::replace(ruling, Ruling::NO_OPINION)),
            Self::Pending(ruling) => ruling.as_mut().poll(context),
        }
    }
}

impl fmt::Debug for RulingFuture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(ruling) => f.debug_tuple("Ready").field(ruling).finish(),
            Self::Pending(_) => f.debug_tuple("Pending").finish(),
        }
    }
}

/// The decision of an authorizer, with its reason and errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// Yes, no, or nothing to say.
    pub decision: Decision,
    /// The reason, for audit and reviews.
    pub reason: Reason,
    /// The error, if there was one. If no authorizer allows the request, it fails with this error
    /// instead of a 403.
    pub error: Option<String>,
}

/// Yes, no, or nothing to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Allowed; later authorizers are not called.
    Allow,
    /// Denied; later authorizers are not called.
    Deny,
    /// The next authorizer decides.
    NoOpinion,
}

/// The reason of a ruling. It is formatted only when it is shown, as most requests are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A text, which may be empty.
    Text(Cow<'static, str>),
    /// The binding that allows the request.
    Granted(Grant),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Granted(grant) => write!(f, "RBAC: allowed by {grant}"),
        }
    }
}

impl Reason {
    /// The reason in words.
    pub fn words(&self) -> Cow<'static, str> {
        match self {
            Self::Text(text) => text.clone(),
            Self::Granted(_) => self.to_string().into(),
        }
    }
}

impl Ruling {
    /// No opinion.
    pub const NO_OPINION: Self = Self::new(Decision::NoOpinion, "");

    /// A ruling with a fixed reason.
    pub const fn new(decision: Decision, reason: &'static str) -> Self {
        Self { decision, reason: Reason::Text(Cow::Borrowed(reason)), error: None }
    }

    /// A ruling with a reason.
    pub fn with_reason(decision: Decision, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { decision, reason: Reason::Text(reason.into()), error: None }
    }

    /// No opinion, with a reason.
    pub(crate) const fn no_opinion(reason: String) -> Self {
        Self {
            decision: Decision::NoOpinion,
            reason: Reason::Text(Cow::Owned(reason)),
            error: None,
        }
    }

    /// Whether allowed.
    pub fn allowed(&self) -> bool {
        self.decision == Decision::Allow
    }
}

/// The permissions of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Permissions on resources.
    pub resource: Vec<ResourceRule>,
    /// Permissions on paths that name no resource.
    pub non_resource: Vec<NonResourceRule>,
    /// Whether an authorizer could not list all rules.
    pub incomplete: bool,
    /// The errors of the listing, or `""`.
    pub error: String,
}

/// Verbs on resources; `*` matches every text, except among the resource names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRule {
    pub verbs: Vec<String>,
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    pub resource_names: Vec<String>,
}

/// Verbs on paths. A path that ends with `*` matches every path that begins with the text before
/// the `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonResourceRule {
    pub verbs: Vec<String>,
    pub paths: Vec<String>,
}

/// A chain of authorizers: the first one with an opinion decides.
pub struct Chain(Arc<[Arc<dyn Authorizer>]>);

impl Chain {
    /// Calls these authorizers, in order.
    pub fn new(authorizers: Vec<Arc<dyn Authorizer>>) -> Self {
        Self(authorizers.into())
    }
}

impl Authorizer for Chain {
    fn authorize<'a>(&self, attributes: &'a Attributes<'a>) -> RulingFuture<'a> {
        let mut undecided = Undecided::default();
        for (index, authorizer) in self.0.iter().enumerate() {
            match authorizer.authorize(attributes) {
                RulingFuture::Ready(ruling) if ruling.decision == Decision::NoOpinion => {
                    undecided.add(ruling);
                }
                RulingFuture::Ready(ruling) => return ruling.into(),
                pending => {
                    let authorizers = self.0.clone();
                    return RulingFuture::pending(async move {
                        let rest = &authorizers[index + 1..];
                        undecided.continue_chain(pending, rest, attributes).await
                    });
                }
            }
        }
        undecided.into_ruling().into()
    }

    fn rules(&self, user: &User, namespace: &str) -> Rules {
        let mut all = Rules::default();
        for rules in self.0.iter().map(|authorizer| authorizer.rules(user, namespace)) {
            all.resource.extend(rules.resource);
            all.non_resource.extend(rules.non_resource);
            all.incomplete |= rules.incomplete;
            append(&mut all.error, &rules.error, ", ");
        }
        all
    }
}

/// The reasons and errors of authorizers without an opinion.
#[derive(Default)]
struct Undecided {
    reasons: String,
    errors: Vec<String>,
}

impl Undecided {
    /// Waits for a ruling, and calls the rest of the chain if it has no opinion.
    async fn continue_chain<'a>(
        mut self,
        pending: RulingFuture<'a>,
        rest: &[Arc<dyn Authorizer>],
        attributes: &'a Attributes<'a>,
    ) -> Ruling {
        let mut ruling = pending.await;
        for authorizer in rest {
            if ruling.decision != Decision::NoOpinion {
                return ruling;
            }
            self.add(ruling);
            ruling = authorizer.authorize(attributes).await;
        }
        if ruling.decision != Decision::NoOpinion {
            return ruling;
        }
        self.add(ruling);
        self.into_ruling()
    }

    fn add(&mut self, ruling: Ruling) {
        append(&mut self.reasons, &ruling.reason.to_string(), "\n");
        self.errors.extend(ruling.error);
    }

    fn into_ruling(self) -> Ruling {
        let error = match self.errors.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            all => Some(format!("[{}]", all.join(", "))),
        };
        Ruling { error, ..Ruling::no_opinion(self.reasons) }
    }
}

/// Joins texts that are not empty.
fn append(to: &mut String, text: &str, separator: &str) {
    if !to.is_empty() && !text.is_empty() {
        to.push_str(separator);
    }
    to.push_str(text);
}
