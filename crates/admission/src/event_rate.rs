//! EventRateLimit: limits the rate at which events are written.

mod buckets;
mod configuration;

use parking_lot::Mutex;
use pintle_meta::{Reason, Status};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation};
use pintle_value::Value;

use buckets::Buckets;
pub(crate) use configuration::EventLimit;
use configuration::LimitType;

/// The plugin.
pub(crate) struct EventRateLimit(Vec<Limiter>);

/// Enforces one limit.
struct Limiter {
    limit_type: LimitType,
    buckets: Mutex<Buckets>,
}

impl EventRateLimit {
    pub(crate) fn new(limits: &[EventLimit]) -> Self {
        let limiter = |limit: &EventLimit| Limiter {
            limit_type: limit.limit_type,
            buckets: Mutex::new(Buckets::new(limit)),
        };
        Self(limits.iter().map(limiter).collect())
    }
}

impl Admission for EventRateLimit {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Validate])
    }

    fn validate(&self, write: &Attributes<'_>, _: &Registry) -> Result<(), Status> {
        let of = &write.resource.resource;
        // As in upstream, events of `events.k8s.io` are not limited.
        let is_event = of.resource == "events" && of.group.is_empty();
        let is_new = matches!(write.operation, Operation::Create | Operation::Update);
        if !is_event || !is_new || write.dry_run {
            return Ok(());
        }
        // Each limit counts the write, even if another one refuses it.
        let refusals: Vec<String> =
            self.0.iter().filter_map(|limiter| limiter.refusal(write)).collect();
        match refusals.as_slice() {
            [] => Ok(()),
            [only] => Err(too_many(only)),
            all => Err(too_many(&format!("[{}]", all.join(", ")))),
        }
    }
}

impl Limiter {
    fn refusal(&self, write: &Attributes<'_>) -> Option<String> {
        let key = match self.limit_type {
            LimitType::Server => String::new(),
            LimitType::Namespace => write.namespace.to_owned(),
            LimitType::User => write.user.name.clone(),
            LimitType::SourceAndObject => source_and_object(write.object.unwrap_or(&Value::Null)),
        };
        let passes = self.buckets.lock().take(&key, write.now.unix_micros);
        let name = self.limit_type.name();
        (!passes).then(|| format!("limit reached on type {name} for key {key}"))
    }
}

/// The key of an event for `SourceAndObject` (upstream: `getSourceAndObjectKey`).
fn source_and_object(event: &Value) -> String {
    const MEMBERS: [&[&str]; 7] = [
        &["source", "component"],
        &["source", "host"],
        &["involvedObject", "kind"],
        &["involvedObject", "namespace"],
        &["involvedObject", "name"],
        &["involvedObject", "uid"],
        &["involvedObject", "apiVersion"],
    ];
    MEMBERS.iter().filter_map(|path| event.str_at(path)).collect()
}

fn too_many(why: &str) -> Status {
    Status::failure(Reason::TooManyRequests, format!("Too many requests: {why}"))
}

#[cfg(test)]
mod tests {
    use pintle_value::json;

    use super::*;

    #[test]
    fn the_key_has_the_source_and_the_object() {
        let event = br#"{"source":{"component":"c","host":"h"},"involvedObject":{"kind":"Pod",
            "namespace":"n","name":"p","uid":"u","apiVersion":"v1","fieldPath":"x"}}"#;
        assert_eq!(source_and_object(&json::parse(event).unwrap()), "chPodnpuv1");
        assert_eq!(source_and_object(&Value::Null), "");
    }
}
