//! Who is asked by expressions that ask who may do what: `authorizer` and `authorizer.requestResource`.

use std::fmt;
use std::sync::Arc;

use crate::types::Type;
use crate::types::declaration::Declaration;

/// Answers what may be done, by whom an evaluation is about or by a service account.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// May this be done?
    fn authorize(&self, question: &Question<'_>) -> Decision;
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// Who would do it, where that is a service account: its namespace and name.
    pub account: Option<(&'a str, &'a str)>,
    /// What would be done.
    pub verb: &'a str,
    /// To what.
    pub subject: Subject<'a>,
}

/// To what something would be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A path that is no resource.
    Path(&'a str),
    /// Objects of a resource.
    Resource(&'a ResourceCheck),
}

/// Objects of a resource, as `authorizer.group('apps').resource('deployments')` and so on tells them.
/// What is not told is `""`.
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

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may be done.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong when it was found out.
    pub error: Option<String>,
}

/// Who is asked, about whom.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) authorizer: Arc<dyn Authorizer>,
    /// A service account's namespace and name; `None` for whom the evaluation is about.
    pub(crate) account: Option<(Arc<str>, Arc<str>)>,
}

pub(crate) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
pub(crate) const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
pub(crate) const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
pub(crate) const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
pub(crate) const DECISION: &str = "kubernetes.authorization.Decision";

impl Asker {
    pub(crate) fn ask(&self, verb: &str, subject: Subject<'_>) -> Decision {
        let account = self.account.as_ref().map(|(namespace, name)| (&**namespace, &**name));
        self.authorizer.authorize(&Question { account, verb, subject })
    }
}

impl Declaration {
    /// Who is asked: `authorizer`.
    pub const AUTHORIZER: Self = Self::Typed(Type::Struct(AUTHORIZER));

    /// What a request is about, to be asked about: `authorizer.requestResource`.
    pub const RESOURCE_CHECK: Self = Self::Typed(Type::Struct(RESOURCE_CHECK));
}
