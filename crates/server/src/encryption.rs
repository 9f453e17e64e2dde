//! Encryption at rest: reads `--encryption-provider-config` at the start and, if
//! `--encryption-provider-config-automatic-reload` is set, whenever the file changes.
//!
//! Invariant: a changed file that is invalid changes nothing; the last valid configuration stays in
//! use.

mod client;
mod measures;
mod plugin;

use std::cell::RefCell;
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

use crate::Error;
use crate::config::EncryptionFile;
use crate::followed_file::{Content, FollowedFile, Unusable, read};
use crate::reloads::Reloads;
use measures::Measures;
pub(crate) use measures::{PLUGIN_CALL_BOUNDS, SEED_BOUNDS};
use plugin::Plugin;

const FLAG: &str = "encryption-provider-config";

/// How often the server tries again to decrypt values while the configuration is unchanged.
const RETRY_PERIOD: Duration = Duration::from_secs(60);

/// How long the start waits until all plugins are healthy. The start needs them, because it
/// decrypts all stored values.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the start asks a plugin that is not healthy.
const START_RETRY_PERIOD: Duration = Duration::from_secs(1);

/// The configuration in use and the file that it is read from.
pub(crate) struct Encryption {
    current: Arc<Current>,
    file: EncryptionFile,
    followed: FollowedFile,
    thread: PluginThread,
}

impl Encryption {
    /// Reads the file, if there is one, and waits for the plugins that it names.
    ///
    /// # Errors
    /// If the file is invalid, or a plugin is not healthy in time.
    pub(crate) async fn open(file: Option<&EncryptionFile>) -> Result<Option<Self>, Error> {
        let Some(file) = file else { return Ok(None) };
        let failed = |reason| Error::Flag { flag: FLAG, reason };
        let text = read(&file.path).await.map_err(failed)?;
        let thread = PluginThread::default();
        let measures = Arc::new(Measures::default());
        let configured = configure(file, &text, &measures, &thread).map_err(failed)?;
        configured.start(START_TIMEOUT).await.map_err(failed)?;
        let reloads = Reloads::new("encryption");
        reloads.set_current(&text);
        let (configured, changed) = (ArcSwap::from_pointee(configured), Notify::new());
        let current = Arc::new(Current {
            configured,
            changed,
            reloads,
            measures,
            is_reloaded: file.reloaded,
        });
        Ok(Some(Self {
            current,
            file: file.clone(),
            followed: FollowedFile::new(&file.path, &text),
            thread,
        }))
    }

    /// A transformer that always uses the current configuration.
    pub(crate) fn transformer(&self) -> Arc<dyn Transformer> {
        self.current.clone()
    }

    /// The configuration in use.
    pub(crate) fn current(&self) -> Arc<Current> {
        self.current.clone()
    }

    /// Reloads the file when it changes, if automatic reload is on, and tries again to decrypt
    /// values that could not be decrypted.
    pub(crate) async fn run(self, registry: Arc<Registry>) {
        let current = self.current();
        tokio::join!(self.follow_file(), retry_undecryptable(&current, &registry));
    }

    async fn follow_file(self) {
        if !self.file.reloaded {
            return std::future::pending().await; // dropping `self` would end the plugins' thread
        }
        let reloads = &self.current.reloads;
        self.followed.follow(reloads, |text| self.reload(text)).await;
    }

    /// Upstream tries each refused content again, an invalid one, too.
    async fn reload(&self, text: Content) -> Result<(), Unusable> {
        let configured = configure(&self.file, &text, &self.current.measures, &self.thread)?;
        configured.start(Duration::ZERO).await?;
        self.current.configured.store(Arc::new(configured));
        self.current.changed.notify_one();
        self.current.reloads.set_current(&text);
        Ok(())
    }
}

/// Tries again to decrypt values that could not be decrypted: at once when the configuration
/// changes, and periodically, because a plugin may have been unreachable.
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
                %why, ?RETRY_PERIOD,
                "cannot read undecryptable values again from the store; the server will retry"
            ),
        }
    }
}

/// Makes the providers and plugins of a configuration. No plugin is called yet.
fn configure(
    file: &EncryptionFile,
    text: &[u8],
    measures: &Arc<Measures>,
    thread: &PluginThread,
) -> Result<Configured, String> {
    if text.is_empty() {
        let path = file.path.display();
        return Err(format!("encryption provider configuration file {path} is empty"));
    }
    let plugins = RefCell::default();
    let envelopes = |kms: &Kms| {
        let failed = |why: Error| pintle_encryption::Error::KeyService(why.to_string());
        let plugin = Plugin::new(kms, measures, &thread.handle().map_err(failed)?);
        let envelope = plugin.envelope();
        RefCell::<Vec<_>>::borrow_mut(&plugins).push(plugin);
        Ok(envelope)
    };
    let configuration = Configuration::read(text, file.reloaded);
    let providers =
        configuration.and_then(|configuration| Providers::new(&configuration, &envelopes));
    let providers = providers.map_err(|why| format!("{}: {why}", file.path.display()))?;
    let providers = providers.measured_by(measures.values.clone());
    Ok(Configured { providers, plugins: plugins.into_inner() })
}

/// The providers of one configuration, and the plugins among them.
#[derive(Debug)]
struct Configured {
    providers: Providers,
    plugins: Vec<Arc<Plugin>>,
}

impl Configured {
    /// Starts to poll the status of the plugins. Waits until all are healthy, or returns an error
    /// after `timeout`.
    async fn start(&self, timeout: Duration) -> Result<(), String> {
        let began = Instant::now();
        for plugin in &self.plugins {
            while let Err(why) = plugin.start().await {
                if began.elapsed() >= timeout {
                    return Err(why);
                }
                tokio::time::sleep(START_RETRY_PERIOD).await;
            }
        }
        Ok(())
    }
}

/// The configuration in use, which a reload replaces.
pub(crate) struct Current {
    configured: ArcSwap<Configured>,
    /// Notified when a reload has replaced the configuration.
    changed: Notify,
    pub(crate) reloads: Reloads,
    /// The measures of all plugins since the start, those of replaced configurations included.
    pub(crate) measures: Arc<Measures>,
    /// Whether the file is followed.
    pub(crate) is_reloaded: bool,
}

impl Current {
    /// For each plugin its name and the number of its seeds in the cache.
    pub(crate) fn sources(&self) -> Vec<(String, usize)> {
        self.configured.load().plugins.iter().map(|plugin| plugin.sources()).collect()
    }

    /// The health of all plugins. `None` if the server has no such check: as in upstream, the
    /// server has the check if there are plugins, or if a reload may add some.
    pub(crate) fn health(&self) -> Option<Result<(), String>> {
        let plugins = &self.configured.load().plugins;
        let name = |(number, why)| format!("kms-provider-{number}: {why}");
        let failed = |(number, plugin): (_, &Arc<Plugin>)| Some((number, plugin.health().err()?));
        let errors: Vec<String> = plugins.iter().enumerate().filter_map(failed).map(name).collect();
        let has_check = self.is_reloaded || !plugins.is_empty();
        has_check.then(|| match errors.as_slice() {
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
        // Not `load`: the call may wait for a plugin, and a guard of `load` is for short use.
        self.configured.load_full().providers.to_value(key, path, stored)
    }

    fn fingerprint(&self) -> u64 {
        self.configured.load().providers.fingerprint()
    }
}

/// The thread that calls plugins, started with the first plugin. It is separate because a thread
/// that decrypts blocks until the plugin has responded.
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
                let _ = runtime.block_on(stopped); // ends when the sender is dropped
            })
            .map_err(Error::Thread)?;
        let (handle, _) = self.0.get_or_init(|| (handle, stop));
        Ok(handle.clone())
    }
}
