//! Authentication and authorization: from credentials to users, and from users to rulings.
//!
//! Provides the [`User`] of a credential, the [`Attributes`] of a request, and the [`Authorizer`]
//! that rules on them.
//!
//! Must not know kinds, storage or HTTP. The server passes a verified credential or a parsed
//! request and gets a user or a ruling. Each authentication method is a module that returns a
//! [`User`]; authorizers are members of a [`Chain`].
//!
//! Invariants:
//! - An invalid credential is an error and never anonymous (AUTHN-03).
//! - A request that no authorizer allows is forbidden.

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
    Authorizer, Chain, Decision, NonResourceRule, Reason, ResourceRule, Rules, Ruling, RulingFuture,
};
pub use mode::{AlwaysAllow, AlwaysDeny, Masters, Mode};
pub use pintle_meta::User;
pub use pintle_meta::user::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED};

/// Why a credential or a configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The certificate cannot be parsed.
    #[error("the client certificate cannot be read: {0}")]
    Certificate(String),
    /// The certificate request cannot be parsed.
    #[error("the certificate request cannot be read: {0}")]
    CertificateRequest(String),
    /// The certificate is not trusted.
    #[error("the client certificate is not trusted: {0}")]
    Untrusted(String),
    /// The token is unknown.
    #[error("invalid bearer token")]
    Token,
    /// The service account token is invalid.
    #[error("{0}")]
    Account(String),
    /// The token of an OpenID provider or webhook is invalid.
    #[error("{0}")]
    External(String),
    /// A key cannot be used.
    #[error("the key cannot be used: {0}")]
    Key(&'static str),
    /// The token file is invalid.
    #[error("{0}")]
    TokenFile(String),
    /// There are no credentials, and anonymous requests are refused (`--anonymous-auth=false`).
    #[error("no credentials were given")]
    Missing,
    /// A policy of the ABAC file is invalid.
    #[error("{0}")]
    Abac(String),
    /// The configured authorizers or token issuers are invalid.
    #[error("{0}")]
    Mode(String),
}
