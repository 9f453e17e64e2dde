//! What authorizers have decided, and how webhooks and the configuration do.

use std::time::Duration;

use pintle_measure::{Counter, Distribution, Gauge, Series};
use sha2::{Digest, Sha256};

use crate::metrics::{CONDITION_BOUNDS, WEBHOOK_BOUNDS};
use crate::server::own_name;

/// What there is to count of authorizers.
#[derive(Default)]
pub(crate) struct Measures {
    /// By an authorizer's name and mode. `system:masters` comes before them all and is not counted, as
    /// upstream has it.
    pub(crate) decisions: Series<2, Decisions>,
    pub(crate) webhooks: WebhookMeasures,
    pub(crate) reloads: Reloads,
}

/// What an authorizer has decided.
#[derive(Default)]
pub(crate) struct Decisions {
    pub(crate) allowed: Counter,
    pub(crate) denied: Counter,
}

/// How webhooks do: by name and by what came of it, or by name and mode.
pub(crate) struct WebhookMeasures {
    pub(crate) durations: Series<2, Distribution>,
    pub(crate) failed_open: Series<2, Counter>,
    pub(crate) conditions: Series<2, Distribution>,
    pub(crate) condition_errors: Series<2, Counter>,
    pub(crate) exclusions: Series<2, Counter>,
}

/// The mode of webhooks, as metrics name it.
const WEBHOOK: &str = "Webhook";

impl Default for WebhookMeasures {
    fn default() -> Self {
        Self {
            durations: Series::new(|| Distribution::new(&WEBHOOK_BOUNDS)),
            failed_open: Series::default(),
            conditions: Series::new(|| Distribution::new(&CONDITION_BOUNDS)),
            condition_errors: Series::default(),
            exclusions: Series::default(),
        }
    }
}

impl WebhookMeasures {
    /// Counts that a webhook was asked.
    pub(super) fn asked(&self, name: &str, result: &str, took: Duration) {
        self.durations.with([name, result]).took(took);
    }

    /// Counts that a question goes on though a webhook did not answer it.
    pub(super) fn failed_open(&self, name: &str, result: &str) {
        self.failed_open.with([name, result]).add(1);
    }

    /// Counts that the conditions of a webhook were looked at.
    pub(super) fn matched(&self, name: &str, holds: &Result<bool, String>, took: Duration) {
        let labels = [name, WEBHOOK];
        self.conditions.with(labels).took(took);
        match holds {
            Ok(true) => {}
            Ok(false) => self.exclusions.with(labels).add(1),
            Err(_) => self.condition_errors.with(labels).add(1),
        }
    }
}

/// How the configuration was read again, by a hash of the server's name.
pub(crate) struct Reloads {
    server: String,
    /// By `success` and `failure`.
    pub(crate) total: Series<2, Counter>,
    pub(crate) last_unix_seconds: Series<2, Gauge>,
    /// 1 for the hash of the configuration that counts, 0 for those before.
    pub(crate) config: Series<2, Gauge>,
}

impl Default for Reloads {
    fn default() -> Self {
        Self {
            server: hash(own_name().as_bytes()),
            total: Series::default(),
            last_unix_seconds: Series::default(),
            config: Series::with_max(CONFIGS_MAX, Gauge::default),
        }
    }
}

/// How many configurations are told of.
const CONFIGS_MAX: usize = 16;

impl Reloads {
    /// Tells which configuration counts.
    pub(super) fn taken(&self, said: &[u8]) {
        self.config.all().iter().for_each(|(_, gauge)| gauge.set(0));
        self.config.with([&self.server, &hash(said)]).set(1);
    }

    /// Counts an attempt.
    pub(super) fn ended(&self, why: Option<&str>, unix_seconds: i64) {
        let status = if why.is_none() { "success" } else { "failure" };
        match why {
            None => {
                tracing::info!("the authorization configuration has changed and counts from now on")
            }
            Some(why) => tracing::error!("the authorization configuration stays as it was: {why}"),
        }
        self.total.with([&self.server, status]).add(1);
        self.last_unix_seconds.with([&self.server, status]).set(unix_seconds);
    }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}
