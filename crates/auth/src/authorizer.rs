//! Authorizers and their rulings.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use crate::rbac::Grant;
use crate::{Attributes, User};

/// A ruling that may have to be waited for.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Ruling> + Send + 'a>>;

/// Rules on what users may do. Most authorizers answer from what they hold in memory.
pub trait Authorizer: Send + Sync {
    /// May this user do this? One that has to ask somebody else keeps the thread meanwhile.
    fn authorize(&self, attributes: &Attributes<'_>) -> Ruling;

    /// The same, and nobody's thread is kept.
    fn ask<'a>(&'a self, attributes: &'a Attributes<'a>) -> Asking<'a> {
        Box::pin(ready(self.authorize(attributes)))
    }

    /// Whether somebody else may have to be asked.
    fn asks(&self) -> bool {
        false
    }

    /// Everything that this user may do in a namespace, as far as the authorizer can say it.
    fn rules(&self, user: &User, namespace: &str) -> Rules;
}

/// What an authorizer answers.
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
pub struct Chain(Vec<Arc<dyn Authorizer>>);

impl Chain {
    /// Asks the given ones, in order.
    pub const fn new(authorizers: Vec<Arc<dyn Authorizer>>) -> Self {
        Self(authorizers)
    }
}

impl Authorizer for Chain {
    fn authorize(&self, attributes: &Attributes<'_>) -> Ruling {
        let mut undecided = Undecided::default();
        for authorizer in &self.0 {
            let ruling = authorizer.authorize(attributes);
            if ruling.decision != Decision::NoOpinion {
                return ruling;
            }
            undecided.add(ruling);
        }
        undecided.into_ruling()
    }

    fn ask<'a>(&'a self, attributes: &'a Attributes<'a>) -> Asking<'a> {
        Box::pin(async move {
            let mut undecided = Undecided::default();
            for authorizer in &self.0 {
                let ruling = if authorizer.asks() {
                    authorizer.ask(attributes).await
                } else {
                    authorizer.authorize(attributes)
                };
                if ruling.decision != Decision::NoOpinion {
                    return ruling;
                }
                undecided.add(ruling);
            }
            undecided.into_ruling()
        })
    }

    fn asks(&self) -> bool {
        self.0.iter().any(|authorizer| authorizer.asks())
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
