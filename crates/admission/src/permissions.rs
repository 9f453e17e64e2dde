//! What users may do, as expressions ask it: the seam to who decides that.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use pintle_cel::{Authorizer, ResourceCheck};
use pintle_meta::User;
use pintle_registry::admission::Attributes;

/// Who knows what users may do.
pub trait Permissions: Send + Sync {
    /// Who is asked about a user, by the expressions about one write.
    fn of(&self, user: &User) -> Arc<dyn Asked>;
}

/// An answer on its way.
pub type Awaited<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Who is asked by expressions. They cannot wait for an answer: one that is not at hand is an error to them,
/// and they are evaluated again when it is.
pub trait Asked: Authorizer {
    /// The answer that was not at hand. If there was none, what the expressions came to counts.
    fn awaited(&self) -> Option<Awaited<'_>>;
}

/// Evaluates until every question has its answer.
pub(crate) async fn settled<T>(asked: &dyn Asked, mut evaluate: impl FnMut() -> T) -> T {
    loop {
        let evaluated = evaluate();
        match asked.awaited() {
            Some(answer) => answer.await,
            None => return evaluated,
        }
    }
}

/// What a write is about, to be asked about (`authorizer.requestResource`).
pub(crate) fn resource_of(write: &Attributes<'_>) -> ResourceCheck {
    let of = &write.resource.resource;
    ResourceCheck {
        group: of.group.to_string(),
        resource: of.resource.to_string(),
        subresource: write.subresource.to_owned(),
        namespace: write.namespace.to_owned(),
        name: write.name.to_owned(),
        ..ResourceCheck::default()
    }
}

/// Who is asked in tests: a user may get paths and what is in the namespace `n`, and service accounts may do
/// nothing.
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
