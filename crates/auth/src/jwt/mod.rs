//! JSON Web Tokens of OpenID providers: verification, and mapping to users (upstream:
//! `k8s.io/apiserver/plugin/pkg/authenticator/token/oidc`).
//!
//! Must not know how and when a provider's keys are fetched. The server passes a [`KeySet`] and the
//! time.
//!
//! Invariant: a token is valid only if one of its issuer's keys signed it with an allowed algorithm
//! that fits the key. Symmetric algorithms and `none` are never allowed.

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
