//! Flags about tokens that OpenID providers issue or a webhook reviews.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use pintle_server::{ExternalTokens, OidcFlags, ReviewVersion, TokenWebhook, read_authorities};

use super::duration;

#[derive(Args, Debug)]
#[command(next_help_heading = "OpenID and webhook tokens")]
pub(super) struct ExternalTokenFlags {
    /// The file of an AuthenticationConfiguration: OpenID providers whose tokens are accepted, and
    /// the paths that are open to anonymous requests. A change of the file takes effect when all
    /// its providers have answered
    #[arg(long, value_name = "FILE")]
    authentication_config: Option<PathBuf>,
    /// The URL of an OpenID provider whose tokens are accepted, as in their claim iss; https only
    #[arg(long, value_name = "URL")]
    oidc_issuer_url: Option<String>,
    /// The client ID that tokens must have in their claim aud
    #[arg(long, value_name = "ID")]
    oidc_client_id: Option<String>,
    /// The authorities that sign the provider's serving certificate, as PEM [default: the system's]
    #[arg(long, value_name = "FILE")]
    oidc_ca_file: Option<PathBuf>,
    /// The claim with the name of the user [default: sub]
    #[arg(long, value_name = "CLAIM")]
    oidc_username_claim: Option<String>,
    /// The prefix of user names; - is no prefix [default: the issuer's URL and #, but no prefix for
    /// the claim email]
    #[arg(long, value_name = "PREFIX")]
    oidc_username_prefix: Option<String>,
    /// The claim with the groups of the user, a string or a list of strings
    #[arg(long, value_name = "CLAIM")]
    oidc_groups_claim: Option<String>,
    /// The prefix of groups
    #[arg(long, value_name = "PREFIX")]
    oidc_groups_prefix: Option<String>,
    /// The accepted signature algorithms: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384,
    /// PS512 [default: RS256]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    oidc_signing_algs: Vec<String>,
    /// A claim and the value that tokens must have for it; may be repeated
    #[arg(long, value_name = "CLAIM=VALUE")]
    oidc_required_claim: Vec<String>,
    /// A kubeconfig with the address and the credentials of a webhook that reviews tokens which no
    /// other authenticator accepts
    #[arg(long, value_name = "FILE")]
    authentication_token_webhook_config_file: Option<PathBuf>,
    /// The API version of the TokenReviews that are sent to the webhook: v1beta1 or v1
    #[arg(long, value_name = "VERSION", default_value = "v1beta1")]
    authentication_token_webhook_version: String,
    /// How long an answer of the webhook is cached; 0 disables the cache
    #[arg(long, value_name = "DURATION", default_value = "2m0s", value_parser = duration)]
    authentication_token_webhook_cache_ttl: Duration,
}

impl ExternalTokenFlags {
    /// The configuration that the flags make, or upstream's error if they contradict one another.
    pub(super) fn read(self, anonymous_is_given: bool) -> anyhow::Result<ExternalTokens> {
        let oidc = self.oidc()?;
        if oidc.is_some() && self.authentication_config.is_some() {
            bail!("authentication-config file and oidc-* flags are mutually exclusive");
        }
        let version = &self.authentication_token_webhook_version;
        let version = ReviewVersion::parse(version).ok_or_else(|| {
            anyhow!("--authentication-token-webhook-version: {version:?} is neither v1 nor v1beta1")
        })?;
        let ttl = self.authentication_token_webhook_cache_ttl;
        let webhook = self.authentication_token_webhook_config_file;
        let webhook = webhook.map(|kubeconfig| TokenWebhook { kubeconfig, version, ttl });
        Ok(ExternalTokens { config: self.authentication_config, oidc, webhook, anonymous_is_given })
    }

    /// The issuer that the flags `--oidc-*` describe, if any of them is given.
    fn oidc(&self) -> anyhow::Result<Option<OidcFlags>> {
        let texts = [
            &self.oidc_issuer_url,
            &self.oidc_client_id,
            &self.oidc_username_claim,
            &self.oidc_username_prefix,
            &self.oidc_groups_claim,
            &self.oidc_groups_prefix,
        ];
        let is_given = texts.into_iter().any(Option::is_some)
            || self.oidc_ca_file.is_some()
            || !self.oidc_signing_algs.is_empty()
            || !self.oidc_required_claim.is_empty();
        if !is_given {
            return Ok(None);
        }
        let text = |flag: &Option<String>| flag.clone().unwrap_or_default();
        let (issuer_url, client_id) = (text(&self.oidc_issuer_url), text(&self.oidc_client_id));
        if issuer_url.is_empty() || client_id.is_empty() {
            bail!(
                "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* \
                 flags are set"
            );
        }
        // As upstream, an empty name or an empty file counts as absent: the system's authorities
        // are trusted.
        let is_empty = |path: &&PathBuf| {
            path.as_os_str().is_empty() || fs::metadata(path).is_ok_and(|file| file.len() == 0)
        };
        let authorities_pem = match self.oidc_ca_file.as_ref().filter(|path| !is_empty(path)) {
            Some(path) => read_authorities(path, "oidc-ca-file")?,
            None => String::new(),
        };
        let mut signing_algorithms = self.oidc_signing_algs.clone();
        if signing_algorithms.is_empty() {
            signing_algorithms.push("RS256".to_owned());
        }
        let required = self.oidc_required_claim.iter().map(|pair| {
            let (claim, value) = pair.split_once('=').ok_or_else(|| {
                anyhow!("--oidc-required-claim: {pair:?} is not of the form CLAIM=VALUE")
            })?;
            Ok((claim.trim().to_owned(), value.trim().to_owned()))
        });
        Ok(Some(OidcFlags {
            issuer_url,
            client_id,
            authorities_pem,
            username_claim: self.oidc_username_claim.clone().unwrap_or_else(|| "sub".to_owned()),
            username_prefix: text(&self.oidc_username_prefix),
            groups_claim: text(&self.oidc_groups_claim),
            groups_prefix: text(&self.oidc_groups_prefix),
            signing_algorithms,
            required_claims: required.collect::<anyhow::Result<BTreeMap<_, _>>>()?,
        }))
    }
}
