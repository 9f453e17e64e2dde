//! Events that controllers report (upstream: the `EventRecorder` of client-go).

use std::sync::Arc;

use pintle_meta::{object, time};
use pintle_registry::Resource;
use pintle_value::{Map, Str, Value};

use crate::each_namespace::create;
use crate::{Environment, SERVER};

/// A warning about an object.
pub(crate) struct Warning {
    pub(crate) reason: &'static str,
    pub(crate) note: String,
}

/// Reports events as one controller.
pub(crate) struct Recorder<'e> {
    environment: &'e Environment,
    events: Option<Arc<Resource>>,
    reporter: &'static str,
    instance: Str,
}

impl<'e> Recorder<'e> {
    /// Makes a recorder for a controller on a host.
    pub(crate) fn new(
        environment: &'e Environment,
        reporter: &'static str,
        hostname: &str,
    ) -> Self {
        let events = environment.resource("events.k8s.io", "v1", "events");
        let instance = format!("{reporter}-{hostname}").into();
        Self { environment, events, reporter, instance }
    }

    /// Reports a warning about an object and the action taken. A failure to report is only logged.
    pub(crate) async fn warn(&self, regarding: &Value, action: &str, warning: Warning) {
        tracing::warn!(name = object::name(regarding), reason = warning.reason, "{}", warning.note);
        let Some(events) = &self.events else { return };
        let event = self.event(regarding, action, &warning);
        if let Err(status) = create(self.environment, SERVER, events, &event).await {
            tracing::warn!(%status, "cannot create an Event for a warning");
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

/// Returns the reference from an event to its object.
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
