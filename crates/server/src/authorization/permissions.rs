//! What users may do, as admission's expressions ask it.

use std::fmt;
use std::sync::Arc;

use pintle_admission::Permissions;
use pintle_auth::{Attributes, Authorizer, Objects, Subject, User};
use pintle_cel::{Decision, Question};
use pintle_meta::user::{service_account, service_account_groups};
use pintle_meta::{fields, labels};

/// Answers by the server's authorizer.
pub(crate) struct Authorized(pub(crate) Arc<dyn Authorizer>);

/// Answers about a user, and about service accounts.
struct About {
    user: User,
    authorizer: Arc<dyn Authorizer>,
}

impl Permissions for Authorized {
    fn of(&self, user: &User) -> Arc<dyn pintle_cel::Authorizer> {
        Arc::new(About { user: user.clone(), authorizer: Arc::clone(&self.0) })
    }
}

impl fmt::Debug for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("About").field(&self.user).finish()
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
        // What cannot be read of a selector could only have allowed more.
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
        let ruling = self.authorizer.authorize(&Attributes { user, verb: question.verb, subject });
        let (allowed, reason) = (ruling.allowed(), ruling.reason.to_string());
        Decision { allowed, reason, error: ruling.error }
    }
}
