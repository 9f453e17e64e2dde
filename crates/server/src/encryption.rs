//! Encryption at rest: the file that says what is encrypted and how, read at the start and, where that is
//! wanted, whenever it changes.
//!
//! Invariant: what is wrong with a changed file changes nothing.

mod client;
mod measures;
mod plugin;

use std::cell::RefCell;
use std::fs;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use pintle_encryption::{Configuration, Kms, Providers};
use pintle_registry::{Registry, Retry};
use pintle_store::{Key, TransformError, Transformed, Transformer};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, oneshot};
use zeroize::Zeroizing;

use crate::Error;
use crate::config::EncryptionFile;
use crate::machine::now;
use crate::reloads::{Reloads, hash};
use measures::Measures;
pub(crate) use measures::{PLUGIN_CALL_BOUNDS, SEED_BOUNDS};
use plugin::Plugin;

const FLAG: &str = "encryption-provider-config";

/// How often the file is looked at.
const PACE: Duration = Duration::from_secs(1);

/// How often values that could not be decrypted are tried again while the configuration stays.
const RETRY_PERIOD: Duration = Duration::from_secs(60);

/// How long a start waits for plugins, and how often it asks them: it reads everything that is stored.
const START_PATIENCE: Duration = Duration::from_secs(30);
const START_PACE: Duration = Duration::from_secs(1);

/// The configuration that counts, and where it comes from.
pub(crate) struct Encryption {
    current: Arc<Current>,
    file: EncryptionFile,
    /// The hash of what the file said last.
    known: String,
    thread: PluginThread,
}

impl Encryption {
    /// Reads the file, if there is one, and waits for the plugins that it names.
    ///
    /// # Errors
    /// What is wrong with the file, or with a plugin.
    pub(crate) async fn open(file: Option<&EncryptionFile>) -> Result<Option<Self>, Error> {
        let Some(file) = file else { return Ok(None) };
        let failed = |reason| Error::Flag { flag: FLAG, reason };
        let said = read(file).map_err(failed)?;
        let thread = PluginThread::default();
        let measures = Arc::new(Measures::default());
        let configured = configured(file, &said, &measures, &thread).map_err(failed)?;
        configured.start(START_PATIENCE).await.map_err(failed)?;
        let reloads = Reloads::new("encryption");
        reloads.taken(&said);
        let (configured, changed) = (ArcSwap::from_pointee(configured), Notify::new());
        let current = Arc::new(Current {
            configured,
            changed,
            reloads,
            measures,
            is_reloaded: file.reloaded,
        });
        Ok(Some(Self { current, file: file.clone(), known: hash(&said), thread }))
    }

    /// What encrypts values, always by the configuration that counts.
    pub(crate) fn transformer(&self) -> Arc<dyn Transformer> {
        self.current.clone()
    }

    /// The configuration that counts.
    pub(crate) fn current(&self) -> Arc<Current> {
        self.current.clone()
    }

    /// Reads the file again whenever it changes, if that is wanted, and what could not be decrypted.
    pub(crate) async fn keep_up(self, registry: Arc<Registry>) {
        let current = self.current();
        tokio::join!(self.follow_file(), retry_undecryptable(&current, &registry));
    }

    async fn follow_file(mut self) {
        if !self.file.reloaded {
            return std::future::pending().await; // the plugins' thread ends with this
        }
        let mut pace = tokio::time::interval(PACE);
        let mut is_missing = false;
        loop {
            pace.tick().await;
            let ended = match read(&self.file) {
                Ok(said) if hash(&said) == self.known => {
                    is_missing = false;
                    continue;
                }
                Ok(said) => {
                    is_missing = false;
                    self.reload(&said).await
                }
                Err(_) if is_missing => continue,
                Err(why) => {
                    is_missing = true;
                    Err(why)
                }
            };
            self.current.reloads.ended(ended.err().as_deref(), now().unix_seconds());
        }
    }

    async fn reload(&mut self, said: &[u8]) -> Result<(), String> {
        self.known = hash(said);
        let configured = configured(&self.file, said, &self.current.measures, &self.thread)?;
        configured.start(Duration::ZERO).await?;
        self.current.configured.store(Arc::new(configured));
        self.current.changed.notify_one();
        self.current.reloads.taken(said);
        Ok(())
    }
}

/// Tries again to decrypt what could not be decrypted: at once when the configuration changes, and now and then,
/// since a plugin may have been away.
async fn retry_undecryptable(current: &Current, registry: &Registry) {
    for round in 0.. {
        let changed = tokio::time::timeout(RETRY_PERIOD, current.changed.notified()).await;
        let retry = if changed.is_ok() { Retry::All } else { Retry::Probe(round) };
        match registry.retry_undecryptable(retry).await {
            Ok(0) => {}
            Ok(count) => {
                tracing::info!(count, "stored values that could not be decrypted now can be")
            }
            Err(why) => tracing::warn!(
                %why, "cannot read again the values that could not be decrypted; this is tried again"
            ),
        }
    }
}

/// What a file says; it holds keys.
fn read(file: &EncryptionFile) -> Result<Zeroizing<Vec<u8>>, String> {
    let path = file.path.display();
    match fs::read(&file.path) {
        Ok(said) if said.is_empty() => {
            Err(format!("encryption provider configuration file {path} is empty"))
        }
        Ok(said) => Ok(Zeroizing::new(said)),
        Err(why) => Err(format!("cannot read {path}: {why}")),
    }
}

fn configured(
    file: &EncryptionFile,
    said: &[u8],
    measures: &Arc<Measures>,
    thread: &PluginThread,
) -> Result<Configured, String> {
    let plugins = RefCell::default();
    let envelopes = |kms: &Kms| {
        let failed = |why: Error| pintle_encryption::Error::KeyService(why.to_string());
        let plugin = Plugin::new(kms, measures, &thread.handle().map_err(failed)?);
        let envelope = plugin.envelope();
        RefCell::<Vec<_>>::borrow_mut(&plugins).push(plugin);
        Ok(envelope)
    };
    let configuration = Configuration::read(said, file.reloaded);
    let providers =
        configuration.and_then(|configuration| Providers::new(&configuration, &envelopes));
    let providers = providers.map_err(|why| format!("{}: {why}", file.path.display()))?;
    let providers = providers.measured_by(measures.values.clone());
    Ok(Configured { providers, plugins: plugins.into_inner() })
}

/// Providers that are in use, and the plugins among them.
#[derive(Debug)]
struct Configured {
    providers: Providers,
    plugins: Vec<Arc<Plugin>>,
}

impl Configured {
    /// Asks the plugins, again and again from then on; waits so long until all are well.
    async fn start(&self, patience: Duration) -> Result<(), String> {
        let began = Instant::now();
        for plugin in &self.plugins {
            while let Err(why) = plugin.start().await {
                if began.elapsed() >= patience {
                    return Err(why);
                }
                tokio::time::sleep(START_PACE).await;
            }
        }
        Ok(())
    }
}

/// The configuration that counts now.
pub(crate) struct Current {
    configured: ArcSwap<Configured>,
    /// Told when another configuration counts.
    changed: Notify,
    pub(crate) reloads: Reloads,
    /// Of all plugins so far.
    pub(crate) measures: Arc<Measures>,
    is_reloaded: bool,
}

impl Current {
    /// The names of the plugins, and how many seeds and keys of theirs are remembered.
    pub(crate) fn sources(&self) -> Vec<(String, usize)> {
        self.configured.load().plugins.iter().map(|plugin| plugin.sources()).collect()
    }

    /// Whether all plugins are well; `None` where there is no such check, as upstream has it: without plugins,
    /// unless a changed file may bring some.
    pub(crate) fn health(&self) -> Option<Result<(), String>> {
        let plugins = &self.configured.load().plugins;
        let name = |(number, why)| format!("kms-provider-{number}: {why}");
        let ill = |(number, plugin): (_, &Arc<Plugin>)| Some((number, plugin.health().err()?));
        let wrong: Vec<String> = plugins.iter().enumerate().filter_map(ill).map(name).collect();
        let is_there = self.is_reloaded || !plugins.is_empty();
        is_there.then(|| match wrong.as_slice() {
            [] => Ok(()),
            [why] => Err(why.clone()),
            more => Err(format!("[{}]", more.join(", "))),
        })
    }
}

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.configured.load().fmt(f)
    }
}

impl Transformer for Current {
    fn to_storage(&self, key: &Key, path: &[u8], value: Bytes) -> Result<Bytes, TransformError> {
        self.configured.load().providers.to_storage(key, path, value)
    }

    fn to_value(
        &self,
        key: &Key,
        path: &[u8],
        stored: Bytes,
    ) -> Result<Transformed, TransformError> {
        // Not `load`: a plugin may be waited for.
        self.configured.load_full().providers.to_value(key, path, stored)
    }

    fn fingerprint(&self) -> u64 {
        self.configured.load().providers.fingerprint()
    }
}

/// Where plugins are asked, from the first plugin on. It is a thread of their own, since who waits for a key
/// keeps another.
#[derive(Default)]
struct PluginThread(OnceLock<(Handle, oneshot::Sender<()>)>);

impl PluginThread {
    fn handle(&self) -> Result<Handle, Error> {
        if let Some((handle, _)) = self.0.get() {
            return Ok(handle.clone());
        }
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Thread)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        thread::Builder::new()
            .name("kms-plugins".to_owned())
            .spawn(move || {
                let _ = runtime.block_on(stopped); // the sender says nothing: it is dropped
            })
            .map_err(Error::Thread)?;
        let (handle, _) = self.0.get_or_init(|| (handle, stop));
        Ok(handle.clone())
    }
}
