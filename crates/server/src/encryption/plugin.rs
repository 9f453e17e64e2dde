//! A KMS plugin: asked for its state again and again, and for seeds and keys when they are needed.
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

/// How long after an answer a plugin is asked again, if all is well and if not. It is what upstream does while
/// its health is asked for: `kmsPluginHealthzPositiveTTL` and `kmsPluginHealthzNegativeTTL`.
const PACE: Duration = Duration::from_secs(20);
const PACE_OF_THE_ILL: Duration = Duration::from_secs(3);

/// How long after the last good answer values may be written.
const WRITES_MAX: Duration = Duration::from_secs(3 * 60);

/// A plugin, asked until this is dropped.
pub(super) struct Plugin {
    name: String,
    measures: Arc<Measures>,
    client: Arc<Client>,
    /// Where it is asked.
    runtime: Handle,
    envelope: Arc<Envelope>,
    /// What is wrong, as the last answer tells it.
    health: RwLock<Result<(), String>>,
    /// The version of the API that it said first.
    version: Mutex<Option<String>>,
    /// Until when values may be written.
    writes_until: Mutex<Option<Instant>>,
    polling: Mutex<Option<AbortHandle>>,
}

impl Plugin {
    /// Asks nothing yet.
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
            health: RwLock::new(Err("not asked yet".to_owned())),
            version: Mutex::new(None),
            writes_until: Mutex::new(None),
            polling: Mutex::new(None),
        })
    }

    pub(super) fn envelope(&self) -> Arc<Envelope> {
        self.envelope.clone()
    }

    /// Its name, and how many seeds and keys of its are remembered.
    pub(super) fn sources(&self) -> (String, usize) {
        (self.name.clone(), self.envelope.sources())
    }

    /// What is wrong with it.
    pub(super) fn health(&self) -> Result<(), String> {
        self.health.read().clone()
    }

    /// Asks it, and from then on again and again. Returns what the first answer says of it.
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

    /// Asks it once, and takes account of the answer.
    async fn check(&self) -> Result<(), String> {
        let outcome = match self.client.status().await {
            Ok(status) => self.settle(status).await,
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

    /// Takes account of a plugin's state.
    async fn settle(&self, status: StatusResponse) -> Result<(), String> {
        let StatusResponse { version, healthz, key_id } = status;
        let mut wrong = Vec::new();
        if healthz != "ok" {
            wrong.push(format!("got unexpected healthz status: {healthz}"));
        }
        if version == "v2" || version == "v2beta1" {
            let mut first = self.version.lock();
            let first = first.get_or_insert_with(|| version.clone());
            if *first != version {
                wrong.push(format!(
                    "KMSv2 API version should not change after the initial status response version {first}, \
                     got {version}"
                ));
            }
        } else {
            wrong.push(format!("expected KMSv2 API version v2, got {version}"));
        }
        match check_key_id(&key_id) {
            Err((fault, why)) => {
                self.measures.invalid_key_ids.with([fault, &self.name]).add(1);
                wrong.push(format!("got invalid KMSv2 KeyID hash {:?}: {why}", key_hash(&key_id)));
            }
            Ok(()) => {
                self.measures.saw_key(&self.name, &key_hash(&key_id));
                wrong.extend(self.rotate(&key_id).await.err());
            }
        }
        let why = match wrong.as_slice() {
            [] => return Ok(()),
            [why] => why.clone(),
            more => format!("[{}]", more.join(", ")),
        };
        Err(format!("kmsv2 Provider {} is not healthy, error: {why}", self.name))
    }

    /// Makes a new seed where the plugin has another key than the one that encrypted the seed in use.
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
                return Err(failed(format!("the plugin encrypted by another key: {other:?}")));
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

    /// Ends writes where there was no good answer for long.
    fn expire(&self) {
        let until = *self.writes_until.lock();
        if until.is_some_and(|until| until < Instant::now()) {
            let key_id = self.envelope.key_id().unwrap_or_default();
            self.envelope.refuse_writes(format!(
                "encryptedDEKSource with keyID hash {:?} expired: the KMS plugin {} has given no good answer \
                 for {} seconds",
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

/// Asks a plugin as long as there is somebody who wants to know.
async fn poll(plugin: Weak<Plugin>) {
    loop {
        let pace = match plugin.upgrade().map(|plugin| plugin.health()) {
            None => return,
            Some(Ok(())) => PACE,
            Some(Err(_)) => PACE_OF_THE_ILL,
        };
        tokio::time::sleep(pace).await;
        let Some(plugin) = plugin.upgrade() else { return };
        let _ = plugin.check().await; // it has said what is wrong
    }
}

/// What a request is called in the logs of both sides.
fn uid() -> String {
    let mut bytes = [0; 16];
    random(&mut bytes);
    pintle_meta::uid::format(bytes).to_string()
}

/// The hash by which a key of a plugin is known in messages.
fn key_hash(key_id: &str) -> String {
    if key_id.is_empty() { String::new() } else { hash(key_id.as_bytes()) }
}

/// Asks a plugin on behalf of a thread that waits.
#[derive(Debug)]
struct Service {
    client: Arc<Client>,
    runtime: Handle,
    name: String,
    measures: Arc<Measures>,
}

impl KeyService for Service {
    fn unseal(&self, sealed: &SealedSource) -> Result<Zeroizing<Vec<u8>>, String> {
        let (say, answered) = std::sync::mpsc::sync_channel(1);
        let (client, sealed) = (self.client.clone(), sealed.clone());
        self.runtime.spawn(async move {
            let SealedSource { key_id, bytes, annotations } = sealed;
            let uid = uid();
            let request = DecryptRequest { ciphertext: bytes, uid, key_id, annotations };
            let _ = say.send(client.decrypt(&request).await); // somebody waits for it
        });
        let wait = || {
            let answer = answered.recv().unwrap_or_else(|_| Err("the server stops".to_owned()));
            answer.map(|answer| Zeroizing::new(answer.plaintext))
        };
        match Handle::try_current().map(|here| here.runtime_flavor()) {
            // Another thread takes over this one's tasks.
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
            _ => wait(),
        }
    }

    fn count_use(&self, direction: Direction, key_id: &str) {
        self.measures.count_use(&self.name, &key_hash(key_id), direction);
    }
}
