//! Authorization checks of CEL expressions in admission.

use std::fmt;
use std::sync::Arc;

use pintle_admission::{ExpressionAuthorizer, PendingRuling, Permissions};
use pintle_auth::{Attributes, Authorizer, Objects, Subject, User};
use pintle_cel::{Decision, Question};
use pintle_meta::user::{service_account, service_account_groups};
use pintle_meta::{fields, labels};

use super::Inquiry;

/// Checks with the server's authorizer.
pub(crate) struct Authorized(pub(crate) Arc<dyn Authorizer>);

/// The checks for one user, or for service accounts.
struct About {
    user: User,
    inquiry: Inquiry,
}

impl Permissions for Authorized {
    fn of(&self, user: &User) -> Arc<dyn ExpressionAuthorizer> {
        Arc::new(About { user: user.clone(), inquiry: Inquiry::new(&self.0) })
    }
}

impl fmt::Debug for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("About").field(&self.user).finish()
    }
}

impl ExpressionAuthorizer for About {
    fn pending(&self) -> Option<PendingRuling<'_>> {
        self.inquiry.pending()
    }
}

impl pintle_cel::Authorizer for About {
    fn authorize(&self, question: &Question<'_>) -> Decision {
        let account = question.account.map(|(namespace, name)| User {
            name: service_account(namespace, name),
            groups: service_account_groups(namespace),
            ..User::default()
        });
        let user = account.as_ref().unwrap_or(&self.user);
        // A selector that cannot be parsed is ignored: it could only narrow the request.
        let (fields, labels) = match question.subject {
            pintle_cel::Subject::Resource(check) => (
                fields::Selector::parse(&check.field_selector).unwrap_or_default(),
                labels::Selector::parse(&check.label_selector)
                    .unwrap_or(labels::Selector::everything()),
            ),
            pintle_cel::Subject::Path(_) => {
                (fields::Selector::default(), labels::Selector::everything())
            }
        };
        let subject = match question.subject {
            pintle_cel::Subject::Path(path) => Subject::Path(path),
            pintle_cel::Subject::Resource(check) => Subject::Resource(Objects {
                group: &check.group,
                resource: &check.resource,
                subresource: &check.subresource,
                namespace: &check.namespace,
                name: &check.name,
                fields: fields.requirements(),
                labels: labels.requirements(),
                version: "*",
            }),
        };
        let asked = Attributes { user, verb: question.verb, subject };
        let Some(ruling) = self.inquiry.authorize(&asked) else {
            let error = Some("the answer is still to come".to_owned());
            return Decision { error, ..Decision::default() };
        };
        let (allowed, reason) = (ruling.allowed(), ruling.reason.to_string());
        Decision { allowed, reason, error: ruling.error }
    }
}
