//! Tokens of OpenID providers and of a token webhook. They are tried in this order, after this
//! server's own tokens (upstream: `pkg/kubeapiserver/authenticator`).
//!
//! A provider's valid token is cached briefly under a keyed hash, so that the cache reveals no
//! token. A provider's refusal is not cached. The webhook has its own cache.

mod fetch;
mod provider;
mod webhook;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use aws_lc_rs::hmac;
use pintle_auth::jwt::{Anonymous, Configuration, Egress, Issuer, WebToken};
use pintle_auth::token::Authenticated;
use pintle_auth::{Error, User};
use pintle_registry::request::Now;
use pintle_value::yaml;

use crate::backends::{Dialer, Dialers};
use crate::config::Config;
use crate::expiring::ExpiringCache;
use crate::followed_file::{Content, FollowedFile, Unusable};
use crate::machine::random;
use crate::reloads::Reloads;
use provider::Provider;
pub(crate) use provider::{JWT_BOUNDS, ProviderMeasures};
use webhook::Webhook;

/// The time for which a verified token is cached; upstream's.
const TTL: Duration = Duration::from_secs(10);
/// The maximum number of cached tokens.
const TOKENS_MAX: usize = 32 * 1024;
/// The time that the providers of a new configuration have to become ready; after that the
/// configuration is rejected.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

const CONFIG: &str = "authentication-config";

/// The external token authenticators.
pub(crate) struct External {
    providers: ArcSwap<Providers>,
    webhook: Option<Webhook>,
    /// The key of the cache's hashes.
    key: hmac::Key,
    api_audiences: Vec<String>,
    pub(crate) measures: Measures,
    source: Source,
}

/// The providers of one configuration, and the tokens that they verified. A token that is still in
/// verification when the configuration is replaced is cached here, where no later request looks.
struct Providers {
    list: Vec<Arc<Provider>>,
    verified: ExpiringCache<Authenticated>,
}

/// Measures of external tokens.
pub(crate) struct Measures {
    pub(crate) reloads: Reloads,
    pub(crate) providers: Arc<ProviderMeasures>,
}

/// The source of the configuration, and the settings of new providers that it does not contain.
struct Source {
    /// The configuration file and its contents at the start.
    file: Option<(PathBuf, Vec<u8>)>,
    /// The file's settings of anonymous requests at the start, which must not change.
    anonymous: Option<Anonymous>,
    /// The issuers of service account tokens, which a provider must not have.
    disallowed: Vec<String>,
    dialers: Dialers,
}

impl External {
    /// Reads the configuration. [`External::run`] contacts the providers later.
    ///
    /// # Errors
    /// `Error::Flag` or `Error::Named`, with the flag that is invalid, or whose file is invalid or
    /// cannot be read.
    pub(crate) fn new(
        config: &Config,
        disallowed: Vec<String>,
        api_audiences: Vec<String>,
        dialers: Dialers,
    ) -> Result<Self, crate::Error> {
        let settings = &config.external_tokens;
        let refused = |flag, reason| crate::Error::Flag { flag, reason };
        let mut file = None;
        let configuration = match &settings.config {
            None => Configuration::default(),
            Some(path) => {
                let content = fs::read(path).map_err(|why| {
                    crate::Error::File { action: "read", path: path.clone(), why }.of(CONFIG)
                })?;
                let found = read(&content, &disallowed)
                    .map_err(|why| refused(CONFIG, format!("{}: {why}", path.display())))?;
                file = Some((path.clone(), content));
                found
            }
        };
        if configuration.anonymous.is_some() && settings.anonymous_is_given {
            let reason = "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous \
                          field is configured in authentication configuration file";
            return Err(refused(CONFIG, reason.to_owned()));
        }
        let mut issuers = configuration.issuers;
        if let Some(flags) = &settings.oidc {
            let issuer = flags.issuer(&disallowed);
            issuers.push(issuer.map_err(|why| refused("oidc-issuer-url", why.to_string()))?);
        }
        let webhook = settings.webhook.as_ref().map(|webhook| {
            Webhook::new(webhook, &api_audiences, &dialers).map_err(|why| {
                let reason = format!("{}: {why}", webhook.kubeconfig.display());
                refused("authentication-token-webhook-config-file", reason)
            })
        });
        let measures =
            Measures { reloads: Reloads::new("authentication"), providers: Arc::default() };
        file.iter().for_each(|(_, content)| measures.reloads.set_current(content));
        let anonymous = configuration.anonymous;
        let source = Source { file, anonymous, disallowed, dialers };
        let providers = source.providers(issuers, &measures.providers);
        let flag = if source.file.is_some() { CONFIG } else { "oidc-ca-file" };
        let providers = providers.map_err(|reason| refused(flag, reason))?;
        let mut secret = [0; 32];
        random(&mut secret);
        Ok(Self {
            providers: ArcSwap::from_pointee(Providers::new(providers)),
            webhook: webhook.transpose()?,
            key: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            api_audiences,
            measures,
            source,
        })
    }

    /// The file's settings of anonymous requests, if it has any.
    pub(crate) const fn anonymous(&self) -> Option<&Anonymous> {
        self.source.anonymous.as_ref()
    }

    /// Authenticates a token that is for at least one of these audiences; `None` if no
    /// authenticator accepts the token for them and none fails.
    ///
    /// # Errors
    /// The reasons why a provider rejected the token, why the webhook did not answer, or both.
    pub(crate) async fn authenticate(
        &self,
        token: &str,
        audiences: &[String],
        now: Now,
    ) -> Result<Option<Authenticated>, Error> {
        let providers = self.providers.load_full();
        if providers.list.is_empty() && self.webhook.is_none() {
            return Ok(None);
        }
        let key = self.cache_key(token, audiences);
        let mut refusal = None;
        match providers.authenticate(token, now).await {
            Some(Ok(user)) => {
                let Some(found) = self.for_api_audiences(user, audiences) else { return Ok(None) };
                providers.verified.put(key, found.clone(), Instant::now() + TTL);
                return Ok(Some(found));
            }
            Some(Err(why)) => refusal = Some(why),
            None => {}
        }
        if let Some(webhook) = &self.webhook {
            match webhook.authenticate(token, audiences, &key).await {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => {}
                Err(why) => {
                    refusal = Some(refusal.map_or(why.clone(), |first| format!("{first}, {why}")))
                }
            }
        }
        refusal.map_or(Ok(None), |why| Err(Error::External(why)))
    }

    /// The user of a provider's token that was verified a short time ago.
    pub(super) fn cached(&self, token: &str, audiences: &[String]) -> Option<Authenticated> {
        let providers = self.providers.load();
        if providers.list.is_empty() {
            return None;
        }
        providers.verified.get(&self.cache_key(token, audiences))
    }

    /// The keyed hash of a token and its requested audiences.
    fn cache_key(&self, token: &str, audiences: &[String]) -> Box<[u8]> {
        let mut context = hmac::Context::with_key(&self.key);
        for text in audiences.iter().map(String::as_str).chain([token]) {
            context.update(&(text.len() as u64).to_be_bytes());
            context.update(text.as_bytes());
        }
        context.sign().as_ref().into()
    }

    /// A provider's tokens name audiences of the provider, not of the API. A valid one is valid for
    /// all audiences of the API. `None` if `audiences` contains no audience of the API.
    fn for_api_audiences(&self, user: User, audiences: &[String]) -> Option<Authenticated> {
        let known = self.api_audiences.iter();
        let common: Vec<_> = known.filter(|known| audiences.contains(known)).cloned().collect();
        let user = Arc::new(user.authenticated());
        (!common.is_empty()).then_some(Authenticated::new(user, common))
    }

    /// Initializes the providers, and reloads the configuration when its file changes. An invalid
    /// file changes nothing.
    pub(crate) async fn run(self: Arc<Self>) {
        let first = self.providers.load_full();
        tokio::join!(first.initialize(), self.follow_file());
    }

    async fn follow_file(&self) {
        let Some((path, content)) = &self.source.file else { return };
        let file = FollowedFile::new(path, content);
        file.follow(&self.measures.reloads, |content| self.reload(content)).await;
    }

    /// Replaces the configuration once all its providers are ready.
    async fn reload(&self, content: Content) -> Result<(), Unusable> {
        let configuration = read(&content, &self.source.disallowed).map_err(Unusable::Invalid)?;
        if configuration.anonymous != self.source.anonymous {
            let why = "anonymous: Forbidden: changed from initial configuration file";
            return Err(Unusable::Invalid(why.to_owned()));
        }
        let providers = self.source.providers(configuration.issuers, &self.measures.providers)?;
        let providers = Providers::new(providers);
        if tokio::time::timeout(READY_TIMEOUT, providers.initialize()).await.is_err() {
            let silent = providers.list.iter().filter_map(|one| one.health().err());
            return Err(Unusable::NotReady(silent.collect::<Vec<_>>().join(", ")));
        }
        self.providers.store(Arc::new(providers));
        self.measures.providers.retain(&self.providers.load().list);
        self.measures.reloads.set_current(&content);
        Ok(())
    }
}

impl Providers {
    fn new(list: Vec<Arc<Provider>>) -> Self {
        Self { list, verified: ExpiringCache::new(TOKENS_MAX) }
    }

    /// Contacts the providers until all are ready.
    async fn initialize(&self) {
        futures_util::future::join_all(self.list.iter().map(|one| one.initialize())).await;
    }

    /// Authenticates a token with the provider that it names as its issuer; `None` if the token is
    /// not a JWT, or no provider is configured under that name.
    async fn authenticate(&self, token: &str, now: Now) -> Option<Result<User, String>> {
        if self.list.is_empty() {
            return None;
        }
        let token = WebToken::parse(token)?;
        let provider = self.list.iter().find(|one| one.issuer.url == token.issuer())?;
        Some(provider.authenticate(&token, now.unix_seconds()).await)
    }
}

impl Source {
    fn providers(
        &self,
        issuers: Vec<Issuer>,
        measures: &Arc<ProviderMeasures>,
    ) -> Result<Vec<Arc<Provider>>, String> {
        let of = |issuer: Issuer| {
            let dialer = match issuer.egress {
                None => Dialer::Direct,
                Some(Egress::ControlPlane) => self.dialers.control_plane.clone(),
                Some(Egress::Cluster) => self.dialers.cluster.clone(),
            };
            Provider::new(issuer, dialer, measures.clone()).map(Arc::new)
        };
        issuers.into_iter().map(of).collect()
    }
}

fn read(content: &[u8], disallowed: &[String]) -> Result<Configuration, String> {
    let file = yaml::parse_strict(content).map_err(|why| why.to_string())?;
    Configuration::read(&file, disallowed).map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests;
