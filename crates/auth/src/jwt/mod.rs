//! JSON Web Tokens of OpenID providers: whether they hold, and whose they are (upstream:
//! `k8s.io/apiserver/plugin/pkg/authenticator/token/oidc`).
//!
//! Must not know: how a provider's keys are fetched, and when. The server brings a [`KeySet`] and the time.
//!
//! Invariant: a token counts only if one of its issuer's keys signed it by an algorithm that is allowed and
//! that fits the key. Symmetric algorithms and `none` are not among them.

mod configuration;
mod keys;
mod mapping;
mod token;

#[cfg(test)]
mod tests;

pub use configuration::{Anonymous, Configuration, Egress, Issuer, OidcFlags};
pub use keys::{Algorithm, KeySet};
pub use mapping::Mapping;
pub use token::{Signing, WebToken};
