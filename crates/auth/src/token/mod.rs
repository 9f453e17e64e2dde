//! Bearer tokens: static tokens of a file, service account tokens, and bootstrap tokens.
//!
//! The caller passes the current time and a way to look up objects ([`Objects`]). This module knows
//! neither a clock nor a store.

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

/// The user of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    /// The token's user.
    pub user: Arc<User>,
    /// The requested audiences that the token is valid for.
    pub audiences: Vec<String>,
    /// For a token with an extended lifetime: the seconds since the expiration that its client
    /// requested, after which the client should have replaced it.
    pub stale_seconds: Option<i64>,
}

impl Authenticated {
    /// The user of a token that is not stale.
    pub const fn new(user: Arc<User>, audiences: Vec<String>) -> Self {
        Self { user, audiences, stale_seconds: None }
    }

    /// The audit annotation for a stale token, with upstream's text.
    pub fn staleness(&self) -> Option<String> {
        let (subject, seconds) = (&self.user.name, self.stale_seconds?);
        Some(format!("subject: {subject}, seconds after warning threshold: {seconds}"))
    }
}
