//! Authorizers and their rulings.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::rbac::Grant;
use crate::{Attributes, User};

/// Rules on what users may do. An authorizer answers from what it holds in memory.
pub trait Authorizer: Send + Sync {
    /// May this user do this?
    fn authorize(&self, attributes: &Attributes<'_>) -> Ruling;

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
        Self { decision, reason: Reason::Text(Cow::Borrowed(reason)) }
    }

    /// Nothing to say, for a reason.
    pub(crate) const fn no_opinion(reason: String) -> Self {
        Self { decision: Decision::NoOpinion, reason: Reason::Text(Cow::Owned(reason)) }
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
        let mut reasons = String::new();
        for authorizer in &self.0 {
            let ruling = authorizer.authorize(attributes);
            if ruling.decision != Decision::NoOpinion {
                return ruling;
            }
            append(&mut reasons, &ruling.reason.to_string(), "\n");
        }
        Ruling::no_opinion(reasons)
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

/// Joins texts that are not empty.
fn append(to: &mut String, text: &str, separator: &str) {
    if !to.is_empty() && !text.is_empty() {
        to.push_str(separator);
    }
    to.push_str(text);
}
