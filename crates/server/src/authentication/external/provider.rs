//! An OpenID provider and its keys. The server fetches the keys at the start, and again when a
//! token names an unknown key.
//!
//! Invariants: keys are fetched at most once per [`FETCH_INTERVAL`], even if tokens name unknown
//! keys; at most [`WAITING_MAX`] requests wait for a fetch, and others are refused at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use pintle_auth::User;
use pintle_auth::jwt::{Issuer, KeySet, WebToken};
use pintle_measure::{Distribution, Gauge, Series, nanoseconds};
use pintle_value::json;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use super::fetch::Client;
use crate::backends::Dialer;
use crate::identity::own_name;
use crate::machine::now;
use crate::reloads::hash;

/// Upstream's buckets of token authentication.
pub(crate) static JWT_BOUNDS: [u64; 12] =
    nanoseconds([0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);
/// The delay before an unready provider is contacted again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// The shortest interval between two fetches of keys.
const FETCH_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of requests that fetch keys or wait for a fetch.
const WAITING_MAX: usize = 64;

/// An OpenID provider.
pub(super) struct Provider {
    pub(super) issuer: Issuer,
    client: Client,
    /// The URL of its keys, once it is discovered.
    keys_url: Mutex<Option<String>>,
    keys: ArcSwapOption<KeySet>,
    /// The time of the last fetch. The holder of the lock fetches.
    fetched: AsyncMutex<Option<Instant>>,
    waiting: Semaphore,
    /// The reason why it is not ready.
    failure: Mutex<Option<String>>,
    issuer_hash: String,
    measures: Arc<ProviderMeasures>,
}

/// Measures of providers, by the issuer's hash.
pub(crate) struct ProviderMeasures {
    /// The latency of authentication, by `success` and `failure`.
    pub(crate) latencies: Series<2, Distribution>,
    /// The time of the last fetch of keys, by server, issuer and result.
    pub(crate) fetched_unix_seconds: Series<3, Gauge>,
    /// 1 for the hash of the current keys, by server, hash and issuer.
    pub(crate) key_sets: Series<3, Gauge>,
}

impl Default for ProviderMeasures {
    fn default() -> Self {
        Self {
            latencies: Series::new(|| Distribution::new(&JWT_BOUNDS)),
            fetched_unix_seconds: Series::default(),
            key_sets: Series::default(),
        }
    }
}

impl ProviderMeasures {
    /// Removes the measures of the keys of issuers that are no longer configured.
    pub(super) fn retain(&self, providers: &[Arc<Provider>]) {
        let is_configured = |hash: &str| providers.iter().any(|one| one.issuer_hash == hash);
        self.fetched_unix_seconds.retain(|[_, issuer, _]| is_configured(issuer));
        self.key_sets.retain(|[_, _, issuer]| is_configured(issuer));
    }
}

impl Provider {
    /// # Errors
    /// If the issuer's CAs cannot be read.
    pub(super) fn new(
        issuer: Issuer,
        dialer: Dialer,
        measures: Arc<ProviderMeasures>,
    ) -> Result<Self, String> {
        let client = Client::new(&issuer.authorities_pem, dialer)?;
        let failure = format!("oidc: authenticator for issuer {:?} is not initialized", issuer.url);
        Ok(Self {
            client,
            keys_url: Mutex::default(),
            keys: ArcSwapOption::empty(),
            fetched: AsyncMutex::default(),
            waiting: Semaphore::new(WAITING_MAX),
            failure: Mutex::new(Some(failure)),
            issuer_hash: hash(issuer.url.as_bytes()),
            issuer,
            measures,
        })
    }

    /// Succeeds once the provider is ready.
    ///
    /// # Errors
    /// The reason why it is not ready.
    pub(super) fn health(&self) -> Result<(), String> {
        self.failure.lock().clone().map_or(Ok(()), Err)
    }

    /// Contacts the provider until it is ready.
    pub(super) async fn initialize(&self) {
        while let Err(why) = self.discover().await {
            tracing::error!(
                "cannot read the configuration of the OpenID provider {:?}; the server tries again in {} s: {why}",
                self.issuer.url,
                RETRY_INTERVAL.as_secs()
            );
            *self.failure.lock() = Some(why);
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        *self.failure.lock() = None;
    }

    async fn discover(&self) -> Result<(), String> {
        let document = self.client.get(&self.issuer.discovery()).await?;
        let document = json::parse(&document).map_err(|why| why.to_string())?;
        let text = |member: &str| document.str_at(&[member]).unwrap_or_default();
        if text("issuer") != self.issuer.url {
            return Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected {:?} got {:?}",
                self.issuer.url,
                text("issuer")
            ));
        }
        if text("jwks_uri").is_empty() {
            return Err("provider did not return JWKS URL".to_owned());
        }
        *self.keys_url.lock() = Some(text("jwks_uri").to_owned());
        // Fetches the keys before the first token needs them; after a failure, that token fetches
        // them.
        if let Err(why) = self.current_keys(None).await {
            tracing::warn!("the keys of {:?} cannot be fetched: {why}", self.issuer.url);
        }
        Ok(())
    }

    /// Authenticates a token.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub(super) async fn authenticate(
        &self,
        token: &WebToken<'_>,
        now_unix_seconds: i64,
    ) -> Result<User, String> {
        let began = Instant::now();
        let found = self.verify(token, now_unix_seconds).await;
        let result = if found.is_ok() { "success" } else { "failure" };
        self.measures.latencies.with([&self.issuer_hash, result]).took(began.elapsed());
        found
    }

    async fn verify(&self, token: &WebToken<'_>, now_unix_seconds: i64) -> Result<User, String> {
        let refused = |why: String| format!("oidc: verify token: {why}");
        let signing = self.issuer.check(token, now_unix_seconds).map_err(refused)?;
        let known = self.keys.load_full();
        let found = known.as_ref().and_then(|keys| self.issuer.user(token, &signing, keys));
        if let Some(found) = found {
            return found;
        }
        let keys = self.current_keys(known).await.map_err(refused)?;
        let found = self.issuer.user(token, &signing, &keys);
        found.unwrap_or_else(|| {
            Err(refused(
                "failed to verify signature: failed to verify id token signature".to_owned(),
            ))
        })
    }

    /// The provider's keys; newer ones than `seen`, if possible.
    async fn current_keys(&self, seen: Option<Arc<KeySet>>) -> Result<Arc<KeySet>, String> {
        let Some(url) = self.keys_url.lock().clone() else {
            return Err("oidc: authenticator not initialized".to_owned());
        };
        let Ok(_waits) = self.waiting.try_acquire() else {
            return Err("too many tokens wait for the keys of their issuer".to_owned());
        };
        let mut fetched = self.fetched.lock().await;
        let current = self.keys.load_full();
        let is_new = match (&current, &seen) {
            (Some(current), Some(seen)) => !Arc::ptr_eq(current, seen),
            (current, _) => current.is_some(),
        };
        let is_recent = fetched.is_some_and(|at| at.elapsed() < FETCH_INTERVAL);
        if is_new || is_recent {
            return current.ok_or_else(|| "the keys cannot be fetched".to_owned());
        }
        let keys = self.fetch(&url).await;
        *fetched = Some(Instant::now());
        let keys = Arc::new(keys?);
        self.keys.store(Some(keys.clone()));
        Ok(keys)
    }

    async fn fetch(&self, url: &str) -> Result<KeySet, String> {
        let fetched = match self.client.get(url).await {
            Ok(bytes) => KeySet::read(&bytes).map(|keys| (keys, hash(&bytes))),
            Err(why) => Err(why),
        };
        let (server, issuer) = (hash(own_name().as_bytes()), self.issuer_hash.as_str());
        let result = if fetched.is_ok() { "success" } else { "failure" };
        let last = self.measures.fetched_unix_seconds.with([&server, issuer, result]);
        last.set(now().unix_seconds());
        let (keys, key_set) = fetched.map_err(|why| format!("fetching keys {why}"))?;
        let key_sets = &self.measures.key_sets;
        key_sets.retain(|[_, _, of]| of != issuer);
        key_sets.with([&server, &key_set, issuer]).set(1);
        Ok(keys)
    }
}
