//! Audit annotations of webhook calls (upstream: `webhookAnnotator`).

use pintle_registry::admission::Attributes;
use pintle_value::{Value, json};

use super::webhook::Webhook;
use crate::annotations::{annotate, ordered};
use crate::measures::Step;

/// The annotations of one call of a webhook.
pub(super) struct AuditAnnotations<'a> {
    pub(super) write: &'a Attributes<'a>,
    pub(super) webhook: &'a Webhook,
    /// 1 in the second round of webhooks, else 0.
    pub(super) round: u8,
    pub(super) index: usize,
}

impl AuditAnnotations<'_> {
    /// Records that the call failed and that the write continues without it.
    pub(super) fn failed_open(&self, step: Step) {
        let sort = match step {
            Step::Admit => "mutation",
            Step::Validate => "validating",
        };
        let key = self.key(&format!("failed-open.{sort}"));
        annotate(self.write, &key, || self.webhook.name.to_string());
    }

    /// Records whether the webhook changed the object.
    pub(super) fn mutation(&self, is_changed: bool) {
        annotate(self.write, &self.key("mutation"), || {
            ordered(&[
                ("configuration", &self.webhook.configuration.clone().into()),
                ("webhook", &self.webhook.name.clone().into()),
                ("mutated", &is_changed.into()),
            ])
        });
    }

    /// Records the JSON patch of the webhook, if the audit level includes objects.
    pub(super) fn patch(&self, patch: &[u8]) {
        if !self.write.recorder.is_some_and(|recorder| recorder.wants_objects()) {
            return;
        }
        let Ok(patch) = json::parse(patch) else { return };
        annotate(self.write, &self.key("patch"), || {
            ordered(&[
                ("configuration", &self.webhook.configuration.clone().into()),
                ("webhook", &self.webhook.name.clone().into()),
                ("patch", &patch),
                ("patchType", &Value::from("JSONPatch")),
            ])
        });
    }

    fn key(&self, sort: &str) -> String {
        let Self { round, index, .. } = self;
        format!("{sort}.webhook.admission.k8s.io/round_{round}_index_{index}")
    }
}
