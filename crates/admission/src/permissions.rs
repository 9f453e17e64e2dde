//! The interface by which CEL expressions authorize users.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use pintle_cel::{Authorizer, ResourceCheck};
use pintle_meta::User;
use pintle_registry::admission::Attributes;

use crate::request::namespace;

/// Authorizes users for expressions.
pub trait Permissions: Send + Sync {
    /// Returns the authorizer of a user, for the expressions of one write.
    fn of(&self, user: &User) -> Arc<dyn ExpressionAuthorizer>;
}

/// Completes when the pending ruling is known.
pub type PendingRuling<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// An authorizer for expressions. The evaluation of an expression cannot wait: a pending ruling
/// makes it fail, and the expression is evaluated again when the ruling is known.
pub trait ExpressionAuthorizer: Authorizer {
    /// The pending ruling; if there is none, the result of the evaluation is valid.
    fn pending(&self) -> Option<PendingRuling<'_>>;
}

/// Evaluates until no ruling is pending.
pub(crate) async fn evaluate_with_rulings<T>(
    rulings: &dyn ExpressionAuthorizer,
    mut evaluate: impl FnMut() -> T,
) -> T {
    loop {
        let evaluated = evaluate();
        match rulings.pending() {
            Some(answer) => answer.await,
            None => return evaluated,
        }
    }
}

/// The subject of `authorizer.requestResource`.
pub(crate) fn resource_of(write: &Attributes<'_>) -> ResourceCheck {
    let of = &write.resource.resource;
    ResourceCheck {
        group: of.group.to_string(),
        resource: of.resource.to_string(),
        subresource: write.subresource.to_owned(),
        namespace: namespace(write).to_owned(),
        name: write.name.to_owned(),
        ..ResourceCheck::default()
    }
}

/// The authorizer of tests: a user may get all paths and the objects in the namespace `n`, and
/// service accounts may do nothing.
#[cfg(test)]
pub(crate) fn strict() -> Arc<dyn Authorizer> {
    use pintle_cel::{Decision, Question, Subject};

    #[derive(Debug)]
    struct Strict;

    impl Authorizer for Strict {
        fn authorize(&self, question: &Question<'_>) -> Decision {
            let known = match question.subject {
                Subject::Path(_) => true,
                Subject::Resource(check) => check.namespace == "n",
            };
            let allowed = known && question.verb == "get" && question.account.is_none();
            let reason = if allowed { "may get" } else { "" };
            Decision { allowed, reason: reason.to_owned(), error: None }
        }
    }
    Arc::new(Strict)
}
