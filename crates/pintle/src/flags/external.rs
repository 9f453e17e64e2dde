//! Flags about the tokens that others issue.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use pintle_server::{ExternalTokens, OidcFlags, ReviewVersion, TokenWebhook, read_authorities};

use super::duration;

#[derive(Args, Debug)]
#[command(next_help_heading = "Tokens of others")]
pub(super) struct ExternalTokenFlags {
    /// An AuthenticationConfiguration: OpenID providers whose tokens hold, and who may be anonymous;
    /// changes of it count once all its providers have answered
    #[arg(long, value_name = "FILE")]
    authentication_config: Option<PathBuf>,
    /// The URL of an OpenID provider whose tokens hold, as their claim iss has it; https only
    #[arg(long, value_name = "URL")]
    oidc_issuer_url: Option<String>,
    /// The client that tokens must be for, as their claim aud has it
    #[arg(long, value_name = "ID")]
    oidc_client_id: Option<String>,
    /// The authorities of the provider's certificate, as PEM [default: the system's]
    #[arg(long, value_name = "FILE")]
    oidc_ca_file: Option<PathBuf>,
    /// The claim that is the user's name [default: sub]
    #[arg(long, value_name = "CLAIM")]
    oidc_username_claim: Option<String>,
    /// What is put before the user's name; - for nothing [default: the issuer's URL and #, but nothing for
    /// the claim email]
    #[arg(long, value_name = "PREFIX")]
    oidc_username_prefix: Option<String>,
    /// The claim that is the user's groups, a string or a list of strings
    #[arg(long, value_name = "CLAIM")]
    oidc_groups_claim: Option<String>,
    /// What is put before each group
    #[arg(long, value_name = "PREFIX")]
    oidc_groups_prefix: Option<String>,
    /// The algorithms that tokens may be signed by: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384,
    /// PS512 [default: RS256]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    oidc_signing_algs: Vec<String>,
    /// A claim that tokens must have with this value; may be repeated
    #[arg(long, value_name = "CLAIM=VALUE")]
    oidc_required_claim: Vec<String>,
    /// The kubeconfig that says where a webhook is that is asked about tokens that nobody else knows
    #[arg(long, value_name = "FILE")]
    authentication_token_webhook_config_file: Option<PathBuf>,
    /// The version of TokenReviews that the webhook is asked by: v1beta1 or v1
    #[arg(long, value_name = "VERSION", default_value = "v1beta1")]
    authentication_token_webhook_version: String,
    /// How long answers of the webhook are cached; 0 for not at all
    #[arg(long, value_name = "DURATION", default_value = "2m0s", value_parser = duration)]
    authentication_token_webhook_cache_ttl: Duration,
}

impl ExternalTokenFlags {
    /// What the flags say; upstream's words where they contradict one another.
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

    /// The issuer of the flags, if any of them is given.
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
        // As upstream has it, an empty name or an empty file is none: the system's authorities are trusted.
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
