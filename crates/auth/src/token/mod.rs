//! Bearer tokens: those in a file, those that service accounts have, and those of machines that join.
//!
//! Who asks about a token brings the time and a way to look objects up; nothing here knows where they
//! are kept.

mod bootstrap;
mod claims;
mod issuer;
mod key;
mod list;
mod measures;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use bootstrap::{BOOTSTRAP_NAMESPACE, BootstrapToken};
pub use claims::{Binding, Claims, EXTENSION_SECONDS, Reference, WARN_AFTER_SECONDS};
pub use issuer::{
    AccountTokens, Issuer, LEGACY_INVALID_SINCE, LEGACY_LAST_USED, Objects, StoredKind,
    StoredObject,
};
pub use key::{PublicKey, SigningKey, public_keys};
pub use list::TokenList;
pub use measures::{Measures, TOKEN_BOUNDS};

use crate::User;

/// A token that holds, and for whom it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    /// Who has it.
    pub user: Arc<User>,
    /// Those of the audiences that were asked for which it is for.
    pub audiences: Vec<String>,
    /// For how many seconds it has been older than was asked for: it was given more time than that.
    pub stale_seconds: Option<i64>,
}

impl Authenticated {
    /// Who has a token that is not stale.
    pub const fn new(user: Arc<User>, audiences: Vec<String>) -> Self {
        Self { user, audiences, stale_seconds: None }
    }

    /// What an audit log is told of a stale token, in upstream's words.
    pub fn staleness(&self) -> Option<String> {
        let (subject, seconds) = (&self.user.name, self.stale_seconds?);
        Some(format!("subject: {subject}, seconds after warning threshold: {seconds}"))
    }
}
