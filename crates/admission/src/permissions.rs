//! What users may do, as expressions ask it: the seam to who decides that.

use std::sync::Arc;

use pintle_cel::{Authorizer, ResourceCheck};
use pintle_meta::User;
use pintle_registry::admission::Attributes;

/// Who knows what users may do.
pub trait Permissions: Send + Sync {
    /// Who is asked about a user.
    fn of(&self, user: &User) -> Arc<dyn Authorizer>;
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
