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

/// Rules on what users may do.
pub trait Authorizer: Send + Sync {
    /// May this user do this? The answer is there at once where the authorizer has in memory what it goes
    /// by, and is awaited where it asks a webhook. No thread ever waits for it.
    fn authorize<'a>(&self, attributes: &'a Attributes<'a>) -> Answer<'a>;

    /// Everything that this user may do in a namespace, as far as the authorizer can say it.
    fn rules(&self, user: &User, namespace: &str) -> Rules;
}

/// A ruling that is there, or that must be waited for: whoever cannot wait for one looks which it is.
pub enum Answer<'a> {
    /// It is there.
    Ready(Ruling),
    /// A webhook has to answer first.
    Pending(Pin<Box<dyn Future<Output = Ruling> + Send + 'a>>),
}

impl<'a> Answer<'a> {
    /// A ruling that must be waited for.
    pub fn pending(ruling: impl Future<Output = Ruling> + Send + 'a) -> Self {
        Self::Pending(Box::pin(ruling))
    }

    /// The ruling, if it is there.
    pub fn ready(self) -> Option<Ruling> {
        match self {
            Self::Ready(ruling) => Some(ruling),
            Self::Pending(_) => None,
        }
    }
}

impl From<Ruling> for Answer<'_> {
    fn from(ruling: Ruling) -> Self {
        Self::Ready(ruling)
    }
}

impl Future for Answer<'_> {
    type Output = Ruling;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ruling> {
        match &mut *self {
            Self::Ready(ruling) => Poll::Ready(mem::replace(ruling, Ruling::NO_OPINION)),
            Self::Pending(ruling) => ruling.as_mut().poll(context),
        }
    }
}

impl fmt::Debug for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(ruling) => f.debug_tuple("Ready").field(ruling).finish(),
            Self::Pending(_) => f.debug_tuple("Pending").finish(),
        }
    }
}

/// What an authorizer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// Yes, no, or nothing to say.
    pub decision: Decision,
    /// Why; for records and reviews.
    pub reason: Reason,
    /// What went wrong, if something did: an answer other than yes is then none.
    pub error: Option<String>,
}

/// Yes, no, or nothing to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes, whatever those after say.
    Allow,
    /// No, whatever those after say.
    Deny,
    /// Ask the next one.
    NoOpinion,
}

/// Why an authorizer rules as it does; put into words only for who asks, as most requests are allowed
/// and nobody does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// In so many words, or in none.
    Text(Cow<'static, str>),
    /// A binding allows it.
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

impl Ruling {
    /// Nothing to say.
    pub const NO_OPINION: Self = Self::new(Decision::NoOpinion, "");

    /// A ruling with a fixed reason.
    pub const fn new(decision: Decision, reason: &'static str) -> Self {
        Self { decision, reason: Reason::Text(Cow::Borrowed(reason)), error: None }
    }

    /// A ruling with a reason.
    pub fn with_reason(decision: Decision, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { decision, reason: Reason::Text(reason.into()), error: None }
    }

    /// Nothing to say, for a reason.
    pub(crate) const fn no_opinion(reason: String) -> Self {
        Self {
            decision: Decision::NoOpinion,
            reason: Reason::Text(Cow::Owned(reason)),
            error: None,
        }
    }

    /// Whether the answer is yes.
    pub fn allowed(&self) -> bool {
        self.decision == Decision::Allow
    }
}

/// What a user may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// On resources.
    pub resource: Vec<ResourceRule>,
    /// On other paths.
    pub non_resource: Vec<NonResourceRule>,
    /// There may be more that an authorizer could not list.
    pub incomplete: bool,
    /// What went wrong while they were collected, or `""`.
    pub error: String,
}

/// Verbs on resources; `*` stands for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRule {
    pub verbs: Vec<String>,
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    pub resource_names: Vec<String>,
}

/// Verbs on paths; a trailing `*` stands for whatever follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonResourceRule {
    pub verbs: Vec<String>,
    pub paths: Vec<String>,
}

/// Several authorizers: the first one with an opinion rules.
pub struct Chain(Arc<[Arc<dyn Authorizer>]>);

impl Chain {
    /// Asks the given ones, in order.
    pub fn new(authorizers: Vec<Arc<dyn Authorizer>>) -> Self {
        Self(authorizers.into())
    }
}

impl Authorizer for Chain {
    fn authorize<'a>(&self, attributes: &'a Attributes<'a>) -> Answer<'a> {
        let mut undecided = Undecided::default();
        for (place, authorizer) in self.0.iter().enumerate() {
            match authorizer.authorize(attributes) {
                Answer::Ready(ruling) if ruling.decision == Decision::NoOpinion => {
                    undecided.add(ruling);
                }
                Answer::Ready(ruling) => return ruling.into(),
                pending => {
                    let authorizers = self.0.clone();
                    return Answer::pending(async move {
                        let rest = &authorizers[place + 1..];
                        undecided.go_on(pending, rest, attributes).await
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

/// What those said who decided nothing.
#[derive(Default)]
struct Undecided {
    reasons: String,
    errors: Vec<String>,
}

impl Undecided {
    /// Waits for an answer, and asks the rest if that decides nothing.
    async fn go_on<'a>(
        mut self,
        pending: Answer<'a>,
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
