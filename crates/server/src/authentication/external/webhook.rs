//! The token webhook (upstream: `plugin/pkg/authenticator/token/webhook`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pintle_auth::review::ReviewVersion;
use pintle_auth::token::Authenticated;
use pintle_auth::token_review::{self, Verdict};
use tokio::sync::Semaphore;

use crate::backends::Dialers;
use crate::config::TokenWebhook;
use crate::expiring::ExpiringCache;
use crate::webhooks::{Remote, retry};

/// The timeout of one attempt, and of all attempts together.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum number of concurrent reviews; others wait.
const QUESTIONS_MAX: usize = 512;
/// The maximum number of cached valid tokens, and of cached invalid tokens.
const TOKENS_MAX: usize = 8192;

/// The webhook.
pub(super) struct Webhook {
    remote: Remote,
    version: ReviewVersion,
    ttl: Duration,
    api_audiences: Vec<String>,
    holding: ExpiringCache<Authenticated>,
    /// The tokens that the webhook rejected. Tokens about which it did not answer are not among
    /// them.
    unknown: ExpiringCache<()>,
    open: Semaphore,
}

impl Webhook {
    /// # Errors
    /// The error of the kubeconfig.
    pub(super) fn new(
        settings: &TokenWebhook,
        api_audiences: &[String],
        dialers: &Dialers,
    ) -> Result<Self, String> {
        Ok(Self {
            remote: Remote::read(&settings.kubeconfig, dialers)?,
            version: settings.version,
            ttl: settings.ttl,
            api_audiences: api_audiences.to_vec(),
            holding: ExpiringCache::new(TOKENS_MAX),
            unknown: ExpiringCache::new(TOKENS_MAX),
            open: Semaphore::new(QUESTIONS_MAX),
        })
    }

    /// Authenticates a token; `None` if the webhook rejects it or names none of `audiences`. `key`
    /// is the hash of the token and the audiences.
    ///
    /// # Errors
    /// The reason why the webhook did not answer.
    pub(super) async fn authenticate(
        &self,
        token: &str,
        audiences: &[String],
        key: &[u8],
    ) -> Result<Option<Authenticated>, String> {
        if let Some(found) = self.holding.get(key) {
            return Ok(Some(found));
        }
        if self.unknown.get(key).is_some() {
            return Ok(None);
        }
        let body = Bytes::from(token_review::request(token, audiences, self.version));
        let asked = tokio::time::timeout(TIMEOUT, self.ask(body)).await;
        let asked = asked.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
        let verdict = asked.inspect_err(|why| {
            tracing::error!("the token webhook did not answer: {why}");
        })?;
        let until = Instant::now() + self.ttl;
        let found = self.for_audiences(verdict, audiences);
        match &found {
            _ if self.ttl.is_zero() => {}
            Some(found) => self.holding.put(key.into(), found.clone(), until),
            None => self.unknown.put(key.into(), (), until),
        }
        Ok(found)
    }

    /// Applies a verdict to the requested audiences. A webhook that returns no audiences does not
    /// support them: its tokens are for the API.
    fn for_audiences(&self, verdict: Verdict, audiences: &[String]) -> Option<Authenticated> {
        let Verdict::Holds(user, named) = verdict else { return None };
        let own = if named.is_empty() { &self.api_audiences } else { &named };
        let common: Vec<String> =
            audiences.iter().filter(|audience| own.contains(audience)).cloned().collect();
        let user = Arc::new(user.authenticated());
        (!common.is_empty()).then_some(Authenticated::new(user, common))
    }

    async fn ask(&self, body: Bytes) -> Result<Verdict, String> {
        let _permit = self.open.acquire().await.map_err(|_| "closed".to_owned())?;
        let ask = || self.remote.post(body.clone(), ATTEMPT_TIMEOUT);
        let answer = retry::with_backoff(retry::FIRST_PAUSE, ask).await;
        token_review::verdict(&answer.map_err(|why| why.to_string())?, self.version)
    }
}
