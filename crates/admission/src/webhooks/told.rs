//! What the audit log is told of webhooks (upstream: `webhookAnnotator`).

use pintle_registry::admission::Attributes;
use pintle_value::{Value, json};

use super::hook::Hook;
use crate::annotations::{annotate, ordered};
use crate::measures::Step;

/// A webhook that is asked about a write.
pub(super) struct Told<'a> {
    pub(super) write: &'a Attributes<'a>,
    pub(super) hook: &'a Hook,
    /// 1 where webhooks are asked again.
    pub(super) round: u8,
    pub(super) index: usize,
}

impl Told<'_> {
    /// It could not be asked, and the write passed without.
    pub(super) fn failed_open(&self, step: Step) {
        let sort = match step {
            Step::Admit => "mutation",
            Step::Validate => "validating",
        };
        let key = self.key(&format!("failed-open.{sort}"));
        annotate(self.write, &key, || self.hook.name.to_string());
    }

    /// Whether it changed the object.
    pub(super) fn mutation(&self, is_changed: bool) {
        annotate(self.write, &self.key("mutation"), || {
            ordered(&[
                ("configuration", &self.hook.configuration.clone().into()),
                ("webhook", &self.hook.name.clone().into()),
                ("mutated", &is_changed.into()),
            ])
        });
    }

    /// The JSON patch that it made, where the log is to have objects.
    pub(super) fn patch(&self, patch: &[u8]) {
        if !self.write.recorder.is_some_and(|recorder| recorder.wants_objects()) {
            return;
        }
        let Ok(patch) = json::parse(patch) else { return };
        annotate(self.write, &self.key("patch"), || {
            ordered(&[
                ("configuration", &self.hook.configuration.clone().into()),
                ("webhook", &self.hook.name.clone().into()),
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
