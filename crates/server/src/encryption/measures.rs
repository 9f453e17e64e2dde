//! What is measured of encryption, and of KMS plugins, by upstream's labels.

use std::sync::Arc;
use std::time::Duration;

use pintle_encryption::Direction;
use pintle_measure::{Counter, Distribution, Gauge, Series, nanoseconds};

use crate::identity::own_name;
use crate::machine::now;
use crate::reloads::hash;

/// How many keys of plugins are told of.
const KEY_IDS_MAX: usize = 100;

/// The bounds of [`Measures::calls`], upstream's: each twice the one before.
pub(crate) const PLUGIN_CALL_BOUNDS: [u64; 20] = {
    let mut bounds = nanoseconds([0.0001; 20]);
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = 2 * bounds[at - 1];
        at += 1;
    }
    bounds
};

/// The bounds of [`Measures::seeds_made`], upstream's.
pub(crate) const SEED_BOUNDS: [u64; 14] = {
    let mut bounds = nanoseconds([5e-6; 14]);
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = 2 * bounds[at - 1];
        at += 1;
    }
    bounds
};

/// What there is to count of plugins.
#[derive(Debug)]
pub(crate) struct Measures {
    /// A hash of the server's name.
    server: String,
    /// How long calls took: by how they ended, the method and the plugin's name.
    pub(crate) calls: Series<3, Distribution>,
    /// When plugins said last that a key encrypts for them: by hashes of the server's name and of the key's, and
    /// by the plugin's name.
    pub(crate) key_ids: Series<3, Gauge>,
    /// How many values were encrypted and decrypted with seeds that a key sealed, and when the last was: by
    /// hashes of the server's name and of the key's, the plugin's name, and the direction.
    pub(crate) key_uses: Series<4, KeyUses>,
    /// How long it took to make seeds, and how often that failed.
    pub(crate) seeds_made: Distribution,
    pub(crate) seeds_failed: Counter,
    /// Of single values.
    pub(crate) values: Arc<pintle_encryption::Measures>,
    /// Names of keys that cannot be used: by what is wrong, and the plugin's name.
    pub(crate) invalid_key_ids: Series<2, Counter>,
}

/// How often a key was used, and when last.
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
    /// Tells that a plugin has a key.
    pub(super) fn saw_key(&self, plugin: &str, key_id_hash: &str) {
        let seconds = now().unix_seconds();
        self.key_ids.with([&self.server, key_id_hash, plugin]).set(seconds);
    }

    /// Counts a value that was encrypted or decrypted with a seed that a key sealed.
    pub(super) fn count_use(&self, plugin: &str, key_id_hash: &str, direction: Direction) {
        let labels = [&*self.server, key_id_hash, plugin, direction.name()];
        let uses = self.key_uses.with(labels);
        uses.count.add(1);
        uses.last_unix_seconds.set(now().unix_seconds());
    }

    /// Counts a seed that was made, or could not be.
    pub(super) fn made_seed<T, E>(&self, took: Duration, made: &Result<T, E>) {
        match made {
            Ok(_) => self.seeds_made.took(took),
            Err(_) => self.seeds_failed.add(1),
        }
    }
}
