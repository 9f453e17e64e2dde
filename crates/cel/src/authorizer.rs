//! Authorization checks by expressions: `authorizer` and `authorizer.requestResource`.

use std::fmt;
use std::sync::Arc;

use crate::types::Type;
use crate::types::declaration::Declaration;

/// Decides authorization checks, for the user of the evaluation or for a service account.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Decides a check.
    fn authorize(&self, question: &Question<'_>) -> Decision;
}

/// An authorization check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// The namespace and name of a service account; `None` for the user of the evaluation.
    pub account: Option<(&'a str, &'a str)>,
    /// The verb.
    pub verb: &'a str,
    /// The path or resource.
    pub subject: Subject<'a>,
}

/// The target of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A non-resource path.
    Path(&'a str),
    /// Objects of a resource.
    Resource(&'a ResourceCheck),
}

/// Objects of a resource, as specified by `authorizer.group('apps').resource('deployments')` etc.
/// An unspecified attribute is `""`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceCheck {
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub field_selector: String,
    pub label_selector: String,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether the action is allowed.
    pub allowed: bool,
    /// The reason.
    pub reason: String,
    /// An error that occurred during the check.
    pub error: Option<String>,
}

/// An authorizer with the user to check.
#[derive(Clone, Debug)]
pub(crate) struct UserAuthorizer {
    pub(crate) authorizer: Arc<dyn Authorizer>,
    /// A service account's namespace and name; `None` for the user of the evaluation.
    pub(crate) account: Option<(Arc<str>, Arc<str>)>,
}

pub(crate) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
pub(crate) const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
pub(crate) const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
pub(crate) const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
pub(crate) const DECISION: &str = "kubernetes.authorization.Decision";

impl UserAuthorizer {
    pub(crate) fn ask(&self, verb: &str, subject: Subject<'_>) -> Decision {
        let account = self.account.as_ref().map(|(namespace, name)| (&**namespace, &**name));
        self.authorizer.authorize(&Question { account, verb, subject })
    }
}

impl Declaration {
    /// The declaration of `authorizer`.
    pub const AUTHORIZER: Self = Self::Typed(Type::Struct(AUTHORIZER));

    /// The declaration of `authorizer.requestResource`: a check of the request's resource.
    pub const RESOURCE_CHECK: Self = Self::Typed(Type::Struct(RESOURCE_CHECK));
}
