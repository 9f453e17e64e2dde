//! Who asks, and whether they may.
//!
//! Purpose: the [`User`] behind a credential, the [`Attributes`] of what is asked, and the
//! [`Authorizer`] that rules on them.
//!
//! Must not know: kinds, storage, HTTP. The server brings a verified credential or a parsed request and
//! takes away a user or a ruling. New ways to authenticate (tokens, front proxies) make a [`User`] in a
//! module of their own; authorizers are members of a [`Chain`].
//!
//! Invariants:
//! - A credential that is given and does not hold is an error, never anonymity (AUTHN-03).
//! - Whatever no authorizer allows is forbidden.

pub mod abac;
mod attributes;
mod authorizer;
pub mod certificate;
pub mod certificate_request;
mod conditions;
pub mod configuration;
mod der;
pub mod distinguished_name;
pub mod jwt;
mod mode;
pub mod node;
pub mod rbac;
pub mod review;
pub mod token;
pub mod token_review;

pub use attributes::{Attributes, Objects, OwnedAttributes, Subject};
pub use authorizer::{
    Answer, Authorizer, Chain, Decision, NonResourceRule, Reason, ResourceRule, Rules, Ruling,
};
pub use mode::{AlwaysAllow, AlwaysDeny, Masters, Mode};
pub use pintle_meta::User;
pub use pintle_meta::user::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED};

/// Why a credential is no good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The certificate is no X.509.
    #[error("the client certificate cannot be read: {0}")]
    Certificate(String),
    /// The request for a certificate is none.
    #[error("the certificate request cannot be read: {0}")]
    CertificateRequest(String),
    /// Nothing says that its issuer is to be trusted.
    #[error("the client certificate is not trusted: {0}")]
    Untrusted(String),
    /// The token is not known.
    #[error("invalid bearer token")]
    Token,
    /// The token is that of a service account, and does not hold.
    #[error("{0}")]
    Account(String),
    /// The token is that of an OpenID provider or of a webhook, and does not hold.
    #[error("{0}")]
    External(String),
    /// A key cannot be used.
    #[error("the key cannot be used: {0}")]
    Key(&'static str),
    /// The file of tokens cannot be read.
    #[error("{0}")]
    TokenFile(String),
    /// Who comes without credentials is not let in (`--anonymous-auth=false`).
    #[error("no credentials were given")]
    Missing,
    /// A policy of the file for ABAC is none.
    #[error("{0}")]
    Abac(String),
    /// The authorizers that are wanted do not make sense.
    #[error("{0}")]
    Mode(String),
}
