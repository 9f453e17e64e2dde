//! A KMS plugin: the server polls its status, and calls it to encrypt and decrypt seeds.
//! upstream: `kmsv2PluginProbe` of `apiserver/pkg/server/options/encryptionconfig/config.go`.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use pintle_encryption::{Direction, Envelope, KeyService, Kms, SealedSource, Seed, check_key_id};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::AbortHandle;
use zeroize::Zeroizing;

use super::client::{Client, DecryptRequest, EncryptRequest, StatusResponse};
use super::measures::Measures;
use crate::machine::random;
use crate::reloads::hash;

/// The wait between two status calls of a healthy plugin. upstream: `kmsPluginHealthzPositiveTTL`.
const POLL_PERIOD: Duration = Duration::from_secs(20);
/// The same for an unhealthy one. upstream: `kmsPluginHealthzNegativeTTL`.
const UNHEALTHY_POLL_PERIOD: Duration = Duration::from_secs(3);

/// How long values may be written with the plugin's seed after the last status response that named
/// the seed's key or led to a new seed.
const WRITES_MAX: Duration = Duration::from_secs(3 * 60);

/// A plugin, polled until this value is dropped.
pub(super) struct Plugin {
    name: String,
    measures: Arc<Measures>,
    client: Arc<Client>,
    /// The runtime of the calls.
    runtime: Handle,
    envelope: Arc<Envelope>,
    /// The outcome of the last status call.
    health: RwLock<Result<(), String>>,
    /// The API version of the plugin's first response. It must not change.
    version: Mutex<Option<String>>,
    /// The time until which values may be written; `None` before the first seed.
    writes_until: Mutex<Option<Instant>>,
    polling: Mutex<Option<AbortHandle>>,
}

impl Plugin {
    /// A plugin that is not polled yet.
    pub(super) fn new(kms: &Kms, measures: &Arc<Measures>, runtime: &Handle) -> Arc<Self> {
        let client = Arc::new(Client::new(kms, measures.clone()));
        let service = Service {
            client: client.clone(),
            runtime: runtime.clone(),
            name: kms.name.clone(),
            measures: measures.clone(),
        };
        Arc::new(Self {
            name: kms.name.clone(),
            measures: measures.clone(),
            client,
            runtime: runtime.clone(),
            envelope: Arc::new(Envelope::new(Arc::new(service))),
            health: RwLock::new(Err("its status is not known yet".to_owned())),
            version: Mutex::new(None),
            writes_until: Mutex::new(None),
            polling: Mutex::new(None),
        })
    }

    pub(super) fn envelope(&self) -> Arc<Envelope> {
        self.envelope.clone()
    }

    /// The plugin's name and the number of its seeds in the cache.
    pub(super) fn sources(&self) -> (String, usize) {
        (self.name.clone(), self.envelope.sources())
    }

    /// The outcome of the last status call.
    pub(super) fn health(&self) -> Result<(), String> {
        self.health.read().clone()
    }

    /// Calls the plugin's status, starts to poll it, and returns the outcome of the first call.
    pub(super) async fn start(self: &Arc<Self>) -> Result<(), String> {
        let plugin = self.clone();
        let first = self.runtime.spawn(async move { plugin.check().await });
        let outcome = first.await.unwrap_or_else(|why| Err(why.to_string()));
        let polling = self.runtime.spawn(poll(Arc::downgrade(self))).abort_handle();
        if let Some(earlier) = self.polling.lock().replace(polling) {
            earlier.abort();
        }
        outcome
    }

    /// Calls the plugin's status once and updates the health and the seed.
    async fn check(&self) -> Result<(), String> {
        let outcome = match self.client.status().await {
            Ok(status) => self.handle_status(status).await,
            Err(why) => Err(format!(
                "failed to perform status section of the healthz check for KMS Provider {}, error: {why}",
                self.name
            )),
        };
        self.expire();
        let mut health = self.health.write();
        if let Err(why) = &outcome
            && *health != outcome
        {
            tracing::error!("{why}");
        }
        health.clone_from(&outcome);
        outcome
    }

    /// Checks a status response and rotates the seed if the plugin's key has changed.
    async fn handle_status(&self, status: StatusResponse) -> Result<(), String> {
        let StatusResponse { version, healthz, key_id } = status;
        let mut errors = Vec::new();
        if healthz != "ok" {
            errors.push(format!("got unexpected healthz status: {healthz}"));
        }
        if version == "v2" || version == "v2beta1" {
            let mut first = self.version.lock();
            let first = first.get_or_insert_with(|| version.clone());
            if *first != version {
                errors.push(format!(
                    "KMSv2 API version should not change after the initial status response version {first}, \
                     got {version}"
                ));
            }
        } else {
            errors.push(format!("expected KMSv2 API version v2, got {version}"));
        }
        match check_key_id(&key_id) {
            Err((fault, why)) => {
                self.measures.invalid_key_ids.with([fault, &self.name]).add(1);
                errors.push(format!("got invalid KMSv2 KeyID hash {:?}: {why}", key_hash(&key_id)));
            }
            Ok(()) => {
                self.measures.saw_key(&self.name, &key_hash(&key_id));
                errors.extend(self.rotate(&key_id).await.err());
            }
        }
        let why = match errors.as_slice() {
            [] => return Ok(()),
            [why] => why.clone(),
            more => format!("[{}]", more.join(", ")),
        };
        Err(format!("kmsv2 Provider {} is not healthy, error: {why}", self.name))
    }

    /// Makes a new seed if the plugin's key is not the one that encrypted the seed in use. Extends the time
    /// for writes.
    async fn rotate(&self, key_id: &str) -> Result<(), String> {
        let until = Instant::now() + WRITES_MAX;
        let current = self.envelope.key_id();
        if current.as_deref() == Some(key_id) {
            self.envelope.allow_writes();
        } else {
            let failed = |why: String| {
                format!(
                    "failed to rotate DEK, error: {why}, statusKeyIDHash={:?}, stateKeyIDHash={:?}",
                    key_hash(key_id),
                    key_hash(current.as_deref().unwrap_or_default())
                )
            };
            let began = std::time::Instant::now();
            let seed = Seed::generate();
            self.measures.made_seed(began.elapsed(), &seed);
            let seed = seed.map_err(|why| failed(why.to_string()))?;
            let uid = uid();
            let request = EncryptRequest { plaintext: seed.bytes().to_vec(), uid };
            let made = self.client.encrypt(&request).await;
            drop(Zeroizing::new(request.plaintext));
            let made =
                made.map_err(|why| failed(format!("failed to encrypt DEK, error: {why}")))?;
            if made.key_id != key_id {
                let other = key_hash(&made.key_id);
                return Err(failed(format!("the plugin encrypted with another key: {other:?}")));
            }
            let sealed = SealedSource {
                key_id: made.key_id,
                bytes: made.ciphertext,
                annotations: made.annotations,
            };
            self.envelope.write_with(&seed, sealed).map_err(|why| failed(why.to_string()))?;
        }
        *self.writes_until.lock() = Some(until);
        Ok(())
    }

    /// Refuses writes if [`Self::rotate`] has not succeeded for [`WRITES_MAX`].
    fn expire(&self) {
        let until = *self.writes_until.lock();
        if until.is_some_and(|until| until < Instant::now()) {
            let key_id = self.envelope.key_id().unwrap_or_default();
            self.envelope.refuse_writes(format!(
                "encryptedDEKSource with keyID hash {:?} expired: the KMS plugin {} has not been healthy for {} \
                 seconds",
                key_hash(&key_id),
                self.name,
                WRITES_MAX.as_secs()
            ));
        }
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Plugin").field(&self.name).finish()
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        if let Some(polling) = self.polling.get_mut() {
            polling.abort();
        }
    }
}

/// Polls a plugin's status until the plugin is dropped.
async fn poll(plugin: Weak<Plugin>) {
    loop {
        let period = match plugin.upgrade().map(|plugin| plugin.health()) {
            None => return,
            Some(Ok(())) => POLL_PERIOD,
            Some(Err(_)) => UNHEALTHY_POLL_PERIOD,
        };
        tokio::time::sleep(period).await;
        let Some(plugin) = plugin.upgrade() else { return };
        let _ = plugin.check().await; // `check` has logged the error
    }
}

/// A new id for a request, for the logs of the server and the plugin.
fn uid() -> String {
    let mut bytes = [0; 16];
    random(&mut bytes);
    pintle_meta::uid::format(bytes).to_string()
}

/// The hash that messages and metrics show instead of a plugin's key id.
fn key_hash(key_id: &str) -> String {
    if key_id.is_empty() { String::new() } else { hash(key_id.as_bytes()) }
}

/// Calls a plugin for a thread that blocks until the response is there.
#[derive(Debug)]
struct Service {
    client: Arc<Client>,
    runtime: Handle,
    name: String,
    measures: Arc<Measures>,
}

impl KeyService for Service {
    fn unseal(&self, sealed: &SealedSource) -> Result<Zeroizing<Vec<u8>>, String> {
        let (respond, response) = std::sync::mpsc::sync_channel(1);
        let (client, sealed) = (self.client.clone(), sealed.clone());
        self.runtime.spawn(async move {
            let SealedSource { key_id, bytes, annotations } = sealed;
            let uid = uid();
            let request = DecryptRequest { ciphertext: bytes, uid, key_id, annotations };
            let _ = respond.send(client.decrypt(&request).await); // the receiver below waits
        });
        let wait = || {
            let response = response.recv().unwrap_or_else(|_| Err("the server stops".to_owned()));
            response.map(|response| Zeroizing::new(response.plaintext))
        };
        match Handle::try_current().map(|here| here.runtime_flavor()) {
            // The runtime moves this thread's other tasks to another thread.
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
            _ => wait(),
        }
    }

    fn count_use(&self, direction: Direction, key_id: &str) {
        self.measures.count_use(&self.name, &key_hash(key_id), direction);
    }
}
