//! Events that controllers report (upstream: the `EventRecorder` of client-go).

use std::sync::Arc;

use pintle_meta::{object, time};
use pintle_registry::Resource;
use pintle_value::{Map, Str, Value};

use crate::each_namespace::create;
use crate::{Environment, SERVER};

/// What is wrong with an object.
pub(crate) struct Warning {
    pub(crate) reason: &'static str,
    pub(crate) note: String,
}

/// Reports as one controller.
pub(crate) struct Recorder<'e> {
    environment: &'e Environment,
    events: Option<Arc<Resource>>,
    reporter: &'static str,
    instance: Str,
}

impl<'e> Recorder<'e> {
    /// Who reports, on which machine.
    pub(crate) fn new(
        environment: &'e Environment,
        reporter: &'static str,
        hostname: &str,
    ) -> Self {
        let events = environment.resource("events.k8s.io", "v1", "events");
        let instance = format!("{reporter}-{hostname}").into();
        Self { environment, events, reporter, instance }
    }

    /// Reports what is wrong with an object, and what is done because of it. Nothing depends on it: if
    /// it fails, the log has it.
    pub(crate) async fn warn(&self, regarding: &Value, action: &str, warning: Warning) {
        tracing::warn!(name = object::name(regarding), reason = warning.reason, "{}", warning.note);
        let Some(events) = &self.events else { return };
        let event = self.event(regarding, action, &warning);
        if let Err(status) = create(self.environment, SERVER, events, &event).await {
            tracing::warn!(%status, "cannot report an event");
        }
    }

    fn event(&self, regarding: &Value, action: &str, warning: &Warning) -> Value {
        let now = (self.environment.clock)().unix_micros;
        let name = format!("{}.{:x}", object::name(regarding), now.saturating_mul(1000));
        let namespace = match object::namespace(regarding) {
            "" => "default",
            namespace => namespace,
        };
        Value::from([
            ("apiVersion", Value::from("events.k8s.io/v1")),
            ("kind", "Event".into()),
            ("metadata", Value::from([("name", name.as_str()), ("namespace", namespace)])),
            ("eventTime", time::format_micro(now).into()),
            ("reportingController", self.reporter.into()),
            ("reportingInstance", self.instance.clone().into()),
            ("action", action.into()),
            ("reason", warning.reason.into()),
            ("type", "Warning".into()),
            ("note", warning.note.as_str().into()),
            ("regarding", reference(regarding)),
        ])
    }
}

/// What an event says of the object that it is about.
fn reference(object: &Value) -> Value {
    let mut reference = Map::new();
    let mut say = |member: &'static str, text: &str| {
        if !text.is_empty() {
            reference.insert(member, text);
        }
    };
    for member in ["apiVersion", "kind"] {
        say(member, object.str_at(&[member]).unwrap_or_default());
    }
    for member in ["name", "namespace", "resourceVersion", "uid"] {
        say(member, object::text(object, member));
    }
    reference.into()
}
