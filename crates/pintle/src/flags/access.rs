//! Flags about authentication and authorization.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use clap::builder::BoolishValueParser;
use pintle_server::{
    AuthorizationFiles, Config, Mode, RequestHeader, ReviewVersion, ServiceAccounts,
};

use super::duration;
use super::external::ExternalTokenFlags;

/// The valid values of `--service-account-max-token-expiration`.
const EXPIRATIONS: RangeInclusive<Duration> =
    Duration::from_secs(3600)..=Duration::from_secs(1 << 32);

#[derive(Args, Debug)]
#[command(next_help_heading = "Authentication and authorization")]
pub(super) struct AccessFlags {
    /// Accept client certificates that these authorities signed, as PEM. The common name is the
    /// user, the organizations are the groups
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,
    /// Accept requests without credentials, as the user system:anonymous; disabled with the
    /// authorization mode AlwaysAllow [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = BoolishValueParser::new())]
    anonymous_auth: Option<bool>,
    #[command(flatten)]
    authorization: AuthorizationFlags,
    /// A CSV file of static bearer tokens, a token per line: token,user,uid,"group1,group2"
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// Accept bootstrap tokens, with which nodes join the cluster: secrets of the type
    /// bootstrap.kubernetes.io/token in the namespace kube-system
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    enable_bootstrap_token_auth: bool,
    #[command(flatten)]
    external: ExternalTokenFlags,
    #[command(flatten)]
    service_accounts: ServiceAccountFlags,
    #[command(flatten)]
    request_header: RequestHeaderFlags,
}

#[derive(Args, Debug)]
struct AuthorizationFlags {
    /// The authorizers, in the order in which they are asked: Node, RBAC, Webhook, ABAC,
    /// AlwaysAllow, AlwaysDeny. Members of system:masters are always authorized
    #[arg(long, value_name = "MODE,…", default_value = "RBAC", value_delimiter = ',')]
    authorization_mode: Vec<String>,
    /// The file of an AuthorizationConfiguration, instead of the other flags. A change of the file
    /// takes effect within a second
    #[arg(long, value_name = "FILE", conflicts_with_all = ["authorization_mode",
          "authorization_webhook_config_file", "authorization_webhook_version",
          "authorization_webhook_cache_authorized_ttl", "authorization_webhook_cache_unauthorized_ttl"])]
    authorization_config: Option<PathBuf>,
    /// The policies of the mode ABAC: a JSON object per line
    #[arg(long, value_name = "FILE")]
    authorization_policy_file: Option<PathBuf>,
    /// A kubeconfig with the address and the credentials of the webhook of the mode Webhook
    #[arg(long, value_name = "FILE")]
    authorization_webhook_config_file: Option<PathBuf>,
    /// The API version of the SubjectAccessReviews that are sent to the webhook: v1beta1 or v1
    #[arg(long, value_name = "VERSION", default_value = "v1beta1")]
    authorization_webhook_version: String,
    /// How long an answer of the webhook that allows a request is cached; 0 disables this cache
    #[arg(long, value_name = "DURATION", default_value = "5m0s", value_parser = duration)]
    authorization_webhook_cache_authorized_ttl: Duration,
    /// How long any other answer of the webhook is cached; 0 disables this cache
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    authorization_webhook_cache_unauthorized_ttl: Duration,
}

impl AuthorizationFlags {
    fn apply(self, config: &mut Config) -> anyhow::Result<()> {
        config.authorization_modes =
            Mode::list(&self.authorization_mode.join(",")).map_err(|why| {
                let names = Mode::ALL.map(Mode::name).join(", ");
                anyhow!("--authorization-mode: {why}; the modes are {names}")
            })?;
        let has = |mode| config.authorization_modes.contains(&mode);
        let modes_are_flags = self.authorization_config.is_none();
        if modes_are_flags && self.authorization_policy_file.is_some() && !has(Mode::Abac) {
            bail!("cannot specify --authorization-policy-file without mode ABAC");
        }
        if self.authorization_webhook_config_file.is_some() && !has(Mode::Webhook) {
            bail!("cannot specify --authorization-webhook-config-file without mode Webhook");
        }
        let version = &self.authorization_webhook_version;
        let webhook_version = ReviewVersion::parse(version).ok_or_else(|| {
            anyhow!("--authorization-webhook-version: {version:?} is neither v1 nor v1beta1")
        })?;
        config.authorization_files = AuthorizationFiles {
            config: self.authorization_config,
            policies: self.authorization_policy_file,
            webhook: self.authorization_webhook_config_file,
            webhook_version,
            webhook_authorized_ttl: self.authorization_webhook_cache_authorized_ttl,
            webhook_unauthorized_ttl: self.authorization_webhook_cache_unauthorized_ttl,
        };
        Ok(())
    }
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Tokens of service accounts")]
struct ServiceAccountFlags {
    /// The keys that verify tokens, as PEM: public keys, certificates or private keys; may be
    /// repeated [default: the signing key]
    #[arg(long, value_name = "FILE")]
    service_account_key_file: Vec<PathBuf>,
    /// The key that signs tokens, as PEM: RSA, or EC P-256, P-384 or P-521. If the flag is
    /// repeated, the last one is used [default: sa.key beside the certificates, generated at the
    /// first start]
    #[arg(long, value_name = "FILE")]
    service_account_signing_key_file: Vec<PathBuf>,
    /// The issuer of tokens; may be repeated. The first one is written into new tokens; tokens of
    /// all of them are accepted [default: https://kubernetes.default.svc.cluster.local]
    #[arg(long, value_name = "NAME")]
    service_account_issuer: Vec<String>,
    /// The URL at which the keys that verify tokens are published [default: at this server]
    #[arg(long, value_name = "URL")]
    service_account_jwks_uri: Option<String>,
    /// The audiences of the API: a token must be for one of them [default: the issuers]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    api_audiences: Vec<String>,
    /// The longest lifetime of a token; 0 grants the lifetime that was requested
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    service_account_max_token_expiration: Duration,
    /// Extend the lifetime of tokens that are projected into pods to one year, for programs that do
    /// not read their token again
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    service_account_extend_token_expiration: bool,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Front proxies")]
struct RequestHeaderFlags {
    /// The authority that signs the certificates of front proxies, as PEM. A front proxy
    /// authenticates users by the headers below
    #[arg(long, value_name = "FILE")]
    requestheader_client_ca_file: Option<PathBuf>,
    /// The common names that certificates of front proxies may have [default: any]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    requestheader_allowed_names: Vec<String>,
    /// The headers with the name of the user
    #[arg(long, value_name = "HEADER,…", value_delimiter = ',', default_value = "x-remote-user")]
    requestheader_username_headers: Vec<String>,
    /// The headers with the UID of the user, such as x-remote-uid [default: none, because a front
    /// proxy that does not know such a header passes on the client's]
    #[arg(long, value_name = "HEADER,…", value_delimiter = ',')]
    requestheader_uid_headers: Vec<String>,
    /// The headers with the groups of the user
    #[arg(long, value_name = "HEADER,…", value_delimiter = ',', default_value = "x-remote-group")]
    requestheader_group_headers: Vec<String>,
    /// The prefixes of headers with extra information about the user
    #[arg(long, value_name = "PREFIX,…", value_delimiter = ',', default_value = "x-remote-extra-")]
    requestheader_extra_headers_prefix: Vec<String>,
}

impl AccessFlags {
    /// Writes the flags into the configuration.
    pub(super) fn apply(self, config: &mut Config) -> anyhow::Result<()> {
        config.client_ca_file = self.client_ca_file;
        config.anonymous_auth = self.anonymous_auth.unwrap_or(true);
        config.external_tokens = self.external.read(self.anonymous_auth.is_some())?;
        self.authorization.apply(config)?;
        config.token_auth_file = self.token_auth_file;
        config.bootstrap_tokens = self.enable_bootstrap_token_auth;
        let flags = self.service_accounts;
        let longest = flags.service_account_max_token_expiration;
        if !longest.is_zero() && !EXPIRATIONS.contains(&longest) {
            bail!(
                "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"
            );
        }
        config.service_accounts = ServiceAccounts {
            key_files: flags.service_account_key_file,
            signing_key_file: flags.service_account_signing_key_file.into_iter().next_back(),
            issuers: flags.service_account_issuer,
            api_audiences: flags.api_audiences,
            max_token_expiration: (!longest.is_zero()).then_some(longest),
            extend_token_expiration: flags.service_account_extend_token_expiration,
            jwks_uri: flags.service_account_jwks_uri,
        };
        let flags = self.request_header;
        let allowed_names = flags.requestheader_allowed_names;
        config.request_header = RequestHeader {
            client_ca_file: flags.requestheader_client_ca_file,
            allowed_names: not_blank("allowed-names", allowed_names)?,
            username_headers: headers("username-headers", flags.requestheader_username_headers)?,
            uid_headers: headers("uid-headers", flags.requestheader_uid_headers)?,
            group_headers: headers("group-headers", flags.requestheader_group_headers)?,
            extra_header_prefixes: headers(
                "extra-headers-prefix",
                flags.requestheader_extra_headers_prefix,
            )?,
        };
        Ok(())
    }
}

/// The list of a flag `--requestheader-…`, or upstream's error for an empty entry. A flag without a
/// value is an empty list.
fn not_blank(flag: &str, list: Vec<String>) -> anyhow::Result<Vec<String>> {
    if list == [""] {
        return Ok(Vec::new());
    }
    if list.iter().any(|entry| entry.trim().is_empty()) {
        bail!("empty value in \"requestheader-{flag}\"");
    }
    Ok(list)
}

/// A list of header names. An invalid name is an error, because the server would never find that
/// header, and would treat a request of a user as one of the front proxy itself.
fn headers(flag: &str, list: Vec<String>) -> anyhow::Result<Vec<String>> {
    let list = not_blank(flag, list)?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let names: Vec<String> = list.iter().map(|name| name.trim().to_owned()).collect();
    match names.iter().find(|name| !name.bytes().all(is_part)) {
        Some(name) => bail!("--requestheader-{flag}: {name:?} is not the name of a header"),
        None => Ok(names),
    }
}
