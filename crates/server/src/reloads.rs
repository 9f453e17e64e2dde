//! Measures of reloaded configuration files.

use pintle_measure::{Counter, Gauge, Series};
use sha2::{Digest, Sha256};

use crate::identity::own_name;

/// The reloads of a configuration, by a hash of the server's name.
pub(crate) struct Reloads {
    /// The name of the configuration in log lines.
    subject: &'static str,
    server: String,
    /// By the hash of the server's name, and `success` or `failure`.
    pub(crate) total: Series<2, Counter>,
    pub(crate) last_unix_seconds: Series<2, Gauge>,
    /// 1 for the server's hash and the hash of the current configuration.
    pub(crate) config: Series<2, Gauge>,
}

impl Reloads {
    /// No reloads yet.
    pub(crate) fn new(subject: &'static str) -> Self {
        Self {
            subject,
            server: hash(own_name().as_bytes()),
            total: Series::default(),
            last_unix_seconds: Series::default(),
            config: Series::default(),
        }
    }

    /// Sets the hash of the current configuration.
    pub(crate) fn set_current(&self, content: &[u8]) {
        self.config.retain(|_| false);
        self.config.with([&self.server, &hash(content)]).set(1);
    }

    /// Counts and logs a reload.
    pub(crate) fn succeeded(&self, unix_seconds: i64) {
        tracing::info!("reloaded the {} configuration", self.subject);
        self.count("success", unix_seconds);
    }

    /// Counts a reload that failed for the reason `why`, and logs the reason unless it is known.
    pub(crate) fn failed(&self, why: &str, is_known: bool, unix_seconds: i64) {
        let subject = self.subject;
        if !is_known {
            tracing::error!(
                "cannot reload the {subject} configuration; the previous one stays in use: {why}"
            );
        }
        self.count("failure", unix_seconds);
    }

    fn count(&self, status: &str, unix_seconds: i64) {
        self.total.with([&self.server, status]).add(1);
        self.last_unix_seconds.with([&self.server, status]).set(unix_seconds);
    }
}

/// The SHA-256 of bytes, as metrics show it: `sha256:` and 64 digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}
