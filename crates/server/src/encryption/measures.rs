//! Measures of encryption at rest and of KMS plugins, by upstream's labels.

use std::sync::Arc;
use std::time::Duration;

use pintle_encryption::Direction;
use pintle_measure::{Counter, Distribution, Gauge, Series, nanoseconds};

use crate::identity::own_name;
use crate::machine::now;
use crate::reloads::hash;

/// The largest number of plugins' keys that metrics show.
const KEY_IDS_MAX: usize = 100;

/// Upstream's bucket bounds for [`Measures::calls`]: each is twice the one before.
pub(crate) const PLUGIN_CALL_BOUNDS: [u64; 20] = {
    let mut bounds = nanoseconds([0.0001; 20]);
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = 2 * bounds[at - 1];
        at += 1;
    }
    bounds
};

/// Upstream's bucket bounds for [`Measures::seeds_made`].
pub(crate) const SEED_BOUNDS: [u64; 14] = {
    let mut bounds = nanoseconds([5e-6; 14]);
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = 2 * bounds[at - 1];
        at += 1;
    }
    bounds
};

/// Counters and distributions of encryption, of all plugins.
#[derive(Debug)]
pub(crate) struct Measures {
    /// A hash of the server's name.
    server: String,
    /// The duration of calls, by gRPC status, method and plugin name.
    pub(crate) calls: Series<3, Distribution>,
    /// When a plugin's status last named a key, by hash of the server's name, hash of the key id, and plugin name.
    pub(crate) key_ids: Series<3, Gauge>,
    /// The number of values encrypted or decrypted with seeds of a plugin's key, and when the last one was: by
    /// hash of the server's name, hash of the key id, plugin name, and direction.
    pub(crate) key_uses: Series<4, KeyUses>,
    /// The time to generate a seed, and the number of failures.
    pub(crate) seeds_made: Distribution,
    pub(crate) seeds_failed: Counter,
    /// Measures of single values.
    pub(crate) values: Arc<pintle_encryption::Measures>,
    /// Invalid key ids, by error and plugin name.
    pub(crate) invalid_key_ids: Series<2, Counter>,
}

/// How often a key was used, and the time of the last use.
#[derive(Debug, Default)]
pub(crate) struct KeyUses {
    pub(crate) count: Counter,
    pub(crate) last_unix_seconds: Gauge,
}

impl Default for Measures {
    fn default() -> Self {
        Self {
            server: hash(own_name().as_bytes()),
            calls: Series::new(|| Distribution::new(&PLUGIN_CALL_BOUNDS)),
            key_ids: Series::with_max(KEY_IDS_MAX, Gauge::default),
            key_uses: Series::with_max(KEY_IDS_MAX, KeyUses::default),
            seeds_made: Distribution::new(&SEED_BOUNDS),
            seeds_failed: Counter::default(),
            invalid_key_ids: Series::default(),
            values: Arc::default(),
        }
    }
}

impl Measures {
    /// Records that a plugin's status named a key.
    pub(super) fn saw_key(&self, plugin: &str, key_id_hash: &str) {
        let seconds = now().unix_seconds();
        self.key_ids.with([&self.server, key_id_hash, plugin]).set(seconds);
    }

    /// Counts a value that was encrypted or decrypted with a seed of a plugin's key.
    pub(super) fn count_use(&self, plugin: &str, key_id_hash: &str, direction: Direction) {
        let labels = [&*self.server, key_id_hash, plugin, direction.name()];
        let uses = self.key_uses.with(labels);
        uses.count.add(1);
        uses.last_unix_seconds.set(now().unix_seconds());
    }

    /// Counts an attempt to generate a seed.
    pub(super) fn made_seed<T, E>(&self, took: Duration, made: &Result<T, E>) {
        match made {
            Ok(_) => self.seeds_made.took(took),
            Err(_) => self.seeds_failed.add(1),
        }
    }
}
