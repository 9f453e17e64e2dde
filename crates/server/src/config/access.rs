//! What can be told a server about authorizers, tokens and front proxies.

use std::path::PathBuf;
use std::time::Duration;

use pintle_auth::configuration::{self, Configured};
pub use pintle_auth::jwt::OidcFlags;
use pintle_auth::review::ReviewVersion;
use pintle_auth::{Decision, Mode};

use crate::Error;

/// What authorizers read: `--authorization-…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationFiles {
    /// An AuthorizationConfiguration, which says which authorizers there are.
    pub config: Option<PathBuf>,
    /// The policies of the mode ABAC.
    pub policies: Option<PathBuf>,
    /// The kubeconfig of the mode Webhook.
    pub webhook: Option<PathBuf>,
    /// The version of the reviews that this webhook is asked by.
    pub webhook_version: ReviewVersion,
    /// How long answers of this webhook are remembered that allow; zero for not at all.
    pub webhook_authorized_ttl: Duration,
    /// The same for other answers.
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
    /// How long the webhook of the flags is waited for, as upstream does.
    const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);

    /// The webhook of the flags. Where it does not answer, the next authorizer is asked.
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

/// Whose tokens of others hold: `--authentication-config`, `--oidc-…`, `--authentication-token-webhook-…`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalTokens {
    /// An AuthenticationConfiguration.
    pub config: Option<PathBuf>,
    /// The issuer of the flags.
    pub oidc: Option<OidcFlags>,
    /// The webhook that is asked about tokens that nobody else knows.
    pub webhook: Option<TokenWebhook>,
    /// Whether `--anonymous-auth` is given: then the file must not say who may be anonymous.
    pub anonymous_is_given: bool,
}

/// A webhook that is asked about tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenWebhook {
    /// The kubeconfig that says where it is.
    pub kubeconfig: PathBuf,
    /// The version of the reviews that it is asked by.
    pub version: ReviewVersion,
    /// How long its answers are cached; zero for not at all.
    pub ttl: Duration,
}

/// Service accounts' tokens: `--service-account-…` and `--api-audiences`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceAccounts {
    /// Keys that verify tokens, as PEM: public keys, certificates, or private keys. Where none is given,
    /// the signing key's public half does.
    pub key_files: Vec<PathBuf>,
    /// The key that signs tokens, as PEM; `sa.key` beside the certificates, made at the first start,
    /// where nothing is said.
    pub signing_key_file: Option<PathBuf>,
    /// Under which names tokens are accepted; they are issued under the first.
    /// [`ServiceAccounts::DEFAULT_ISSUER`] where nothing is said.
    pub issuers: Vec<String>,
    /// For whom tokens of the API are; the issuers where nothing is said.
    pub api_audiences: Vec<String>,
    /// How long tokens live at most; `None` for as long as is asked for.
    pub max_token_expiration: Option<Duration>,
    /// Let tokens of pods that ask for an hour and seven seconds live for a year.
    pub extend_token_expiration: bool,
    /// Where the keys are published, if not at this server.
    pub jwks_uri: Option<String>,
}

impl ServiceAccounts {
    /// The issuer that clusters mostly have.
    pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
}

/// How front proxies say who asks: `--requestheader-…`. They may where there is an authority for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// The authority of front proxies' certificates.
    pub client_ca_file: Option<PathBuf>,
    /// The common names that they may have; any where none is given.
    pub allowed_names: Vec<String>,
    /// Headers that hold the user's name; the first that does counts.
    pub username_headers: Vec<String>,
    /// Headers that hold the user's uid.
    pub uid_headers: Vec<String>,
    /// Headers that hold groups.
    pub group_headers: Vec<String>,
    /// How headers begin that hold what else is known.
    pub extra_header_prefixes: Vec<String>,
}

impl Default for RequestHeader {
    fn default() -> Self {
        let one = |name: &str| vec![name.to_owned()];
        Self {
            client_ca_file: None,
            allowed_names: Vec::new(),
            username_headers: one("x-remote-user"),
            uid_headers: one("x-remote-uid"),
            group_headers: one("x-remote-group"),
            extra_header_prefixes: one("x-remote-extra-"),
        }
    }
}
