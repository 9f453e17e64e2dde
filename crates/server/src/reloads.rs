//! How configuration files are read again when they change, as metrics tell it.

use pintle_measure::{Counter, Gauge, Series};
use sha2::{Digest, Sha256};

use crate::server::own_name;

/// How many configurations are told of.
const CONFIGS_MAX: usize = 16;

/// The attempts to read a configuration again, by a hash of the server's name.
pub(crate) struct Reloads {
    /// What the configuration is about, for the log.
    subject: &'static str,
    server: String,
    /// By `success` and `failure`.
    pub(crate) total: Series<2, Counter>,
    pub(crate) last_unix_seconds: Series<2, Gauge>,
    /// 1 for the hash of the configuration that counts, 0 for those before.
    pub(crate) config: Series<2, Gauge>,
}

impl Reloads {
    /// No attempts yet.
    pub(crate) fn new(subject: &'static str) -> Self {
        Self {
            subject,
            server: hash(own_name().as_bytes()),
            total: Series::default(),
            last_unix_seconds: Series::default(),
            config: Series::with_max(CONFIGS_MAX, Gauge::default),
        }
    }

    /// Tells which configuration counts.
    pub(crate) fn taken(&self, content: &[u8]) {
        self.config.all().iter().for_each(|(_, gauge)| gauge.set(0));
        self.config.with([&self.server, &hash(content)]).set(1);
    }

    /// Counts an attempt; `why` it failed, if it did.
    pub(crate) fn ended(&self, why: Option<&str>, unix_seconds: i64) {
        let (subject, status) = (self.subject, if why.is_none() { "success" } else { "failure" });
        match why {
            None => tracing::info!("the new {subject} configuration counts from now on"),
            Some(why) => tracing::error!("the {subject} configuration stays as it was: {why}"),
        }
        self.total.with([&self.server, status]).add(1);
        self.last_unix_seconds.with([&self.server, status]).set(unix_seconds);
    }
}

/// The hash of a text as metrics tell it: `sha256:` and 64 digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}
