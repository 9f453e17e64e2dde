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
}
