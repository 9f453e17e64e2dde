//! Measures of authorizers: decisions, webhooks, configuration reloads.

use std::time::Duration;

use pintle_measure::{Counter, Distribution, Series, nanoseconds};

use crate::reloads::Reloads;

/// Upstream's buckets of match conditions.
pub(crate) static CONDITION_BOUNDS: [u64; 7] =
    nanoseconds([0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25]);
/// Upstream's buckets of webhook calls.
pub(crate) static WEBHOOK_BOUNDS: [u64; 11] =
    nanoseconds([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);

/// Measures of all authorizers.
pub(crate) struct Measures {
    /// Decisions by authorizer name and mode. The group `system:masters` is allowed before the
    /// configured authorizers and is not counted, as in upstream.
    pub(crate) decisions: Series<2, Decisions>,
    pub(crate) webhooks: WebhookMeasures,
    pub(crate) reloads: Reloads,
}

impl Default for Measures {
    fn default() -> Self {
        let (decisions, webhooks) = (Series::default(), WebhookMeasures::default());
        Self { decisions, webhooks, reloads: Reloads::new("authorization") }
    }
}

/// The decisions of an authorizer.
#[derive(Default)]
pub(crate) struct Decisions {
    pub(crate) allowed: Counter,
    pub(crate) denied: Counter,
}

/// Measures of webhooks, by name and result or by name and mode.
pub(crate) struct WebhookMeasures {
    pub(crate) durations: Series<2, Distribution>,
    pub(crate) failed_open: Series<2, Counter>,
    pub(crate) conditions: Series<2, Distribution>,
    pub(crate) condition_errors: Series<2, Counter>,
    pub(crate) exclusions: Series<2, Counter>,
}

/// The metric label of the mode.
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
    /// Counts a call of a webhook.
    pub(super) fn asked(&self, name: &str, result: &str, took: Duration) {
        self.durations.with([name, result]).took(took);
    }

    /// Counts a failed call after which the next authorizer decides.
    pub(super) fn failed_open(&self, name: &str, result: &str) {
        self.failed_open.with([name, result]).add(1);
    }

    /// Counts an evaluation of a webhook's match conditions.
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
