//! Configuration of authorizers, tokens and front proxies.

use std::path::PathBuf;
use std::time::Duration;

use pintle_auth::configuration::{self, Configured};
pub use pintle_auth::jwt::OidcFlags;
use pintle_auth::review::ReviewVersion;
use pintle_auth::{Decision, Mode};

use crate::Error;

/// The files and cache times of authorizers: `--authorization-…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationFiles {
    /// The AuthorizationConfiguration, which lists the authorizers.
    pub config: Option<PathBuf>,
    /// The policy file of the mode ABAC.
    pub policies: Option<PathBuf>,
    /// The kubeconfig of the mode Webhook.
    pub webhook: Option<PathBuf>,
    /// The version of the SubjectAccessReviews that this webhook gets.
    pub webhook_version: ReviewVersion,
    /// How long this webhook's allow decisions are cached; zero disables the cache.
    pub webhook_authorized_ttl: Duration,
    /// How long its other decisions are cached.
    pub webhook_unauthorized_ttl: Duration,
}

impl Default for AuthorizationFiles {
    fn default() -> Self {
        Self {
            config: None,
            policies: None,
            webhook: None,
            webhook_version: ReviewVersion::default(),
            webhook_authorized_ttl: configuration::AUTHORIZED_TTL,
            webhook_unauthorized_ttl: configuration::UNAUTHORIZED_TTL,
        }
    }
}

impl AuthorizationFiles {
    /// The timeout of the webhook of the flags; upstream's.
    const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);

    /// The webhook of the flags. If it fails, the next authorizer decides.
    pub(crate) fn webhook(&self) -> Result<Configured, Error> {
        let kubeconfig = self.webhook.clone().ok_or_else(|| Error::Flag {
            flag: "authorization-webhook-config-file",
            reason: "authorization-mode Webhook's authorization config file not passed".to_owned(),
        })?;
        let webhook = configuration::Webhook {
            kubeconfig,
            version: self.webhook_version,
            timeout: Self::WEBHOOK_TIMEOUT,
            authorized_ttl: self.webhook_authorized_ttl,
            unauthorized_ttl: self.webhook_unauthorized_ttl,
            on_failure: Decision::NoOpinion,
            conditions: configuration::Conditions::default(),
        };
        Ok(Configured { mode: Mode::Webhook, name: "default".to_owned(), webhook: Some(webhook) })
    }
}

/// The external sources of tokens: `--authentication-config`, `--oidc-…`,
/// `--authentication-token-webhook-…`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalTokens {
    /// The AuthenticationConfiguration.
    pub config: Option<PathBuf>,
    /// The issuer of the flags.
    pub oidc: Option<OidcFlags>,
    /// The webhook that reviews tokens that no other authenticator accepts.
    pub webhook: Option<TokenWebhook>,
    /// Whether `--anonymous-auth` is set: then the file must not configure anonymous requests.
    pub anonymous_is_given: bool,
}

/// A webhook that reviews tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenWebhook {
    /// The kubeconfig of the webhook.
    pub kubeconfig: PathBuf,
    /// The version of the TokenReviews that it gets.
    pub version: ReviewVersion,
    /// How long its responses are cached; zero disables the cache.
    pub ttl: Duration,
}

/// Service account tokens: `--service-account-…` and `--api-audiences`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceAccounts {
    /// PEM files of verification keys: public keys, certificates, or private keys. By default, the
    /// public half of the signing key.
    pub key_files: Vec<PathBuf>,
    /// PEM file of the signing key. By default `sa.key` beside the certificates, generated at the
    /// first start.
    pub signing_key_file: Option<PathBuf>,
    /// The accepted issuers; the first one issues. By default [`ServiceAccounts::DEFAULT_ISSUER`].
    pub issuers: Vec<String>,
    /// The audiences of the API; by default the issuers.
    pub api_audiences: Vec<String>,
    /// The longest lifetime of a token; `None` is no limit.
    pub max_token_expiration: Option<Duration>,
    /// Extends tokens that pods request for an hour and seven seconds to a year.
    pub extend_token_expiration: bool,
    /// The URL of the published keys, if it is not this server's.
    pub jwks_uri: Option<String>,
}

impl ServiceAccounts {
    /// The usual issuer of clusters.
    pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
}

/// The headers of front proxies: `--requestheader-…`. They are trusted only if there is a CA for
/// front proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// The CA of front proxies' certificates.
    pub client_ca_file: Option<PathBuf>,
    /// The allowed common names; empty allows any.
    pub allowed_names: Vec<String>,
    /// The headers of the user's name; the first that is present wins.
    pub username_headers: Vec<String>,
    /// The headers of the user's uid.
    pub uid_headers: Vec<String>,
    /// The headers of groups.
    pub group_headers: Vec<String>,
    /// The prefixes of headers of extra attributes.
    pub extra_header_prefixes: Vec<String>,
}

impl Default for RequestHeader {
    fn default() -> Self {
        let one = |name: &str| vec![name.to_owned()];
        Self {
            client_ca_file: None,
            allowed_names: Vec::new(),
            username_headers: one("x-remote-user"),
            uid_headers: Vec::new(),
            group_headers: one("x-remote-group"),
            extra_header_prefixes: one("x-remote-extra-"),
        }
    }
}
