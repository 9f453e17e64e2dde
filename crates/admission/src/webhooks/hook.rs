//! One webhook as its configuration says.

use std::sync::Arc;
use std::time::Duration;

use pintle_meta::{Status, object};
use pintle_registry::webhook::Endpoint;
use pintle_value::{Str, Value};

use crate::conditions::Conditions;
use crate::expressions::Compiler;
use crate::matching::{Matching, texts};

/// A webhook of a configuration.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    pub(super) name: Str,
    /// The name of its configuration.
    pub(super) configuration: Str,
    /// Tells it from all others.
    pub(super) key: String,
    pub(super) endpoint: Endpoint,
    pub(super) timeout: Duration,
    /// A call that fails lets the write pass.
    pub(super) lenient: bool,
    /// It does nothing besides, or nothing where nothing is to come of the write.
    dry_runs: bool,
    /// It is to be asked again if others changed the object after it.
    pub(super) again: bool,
    /// `v1` or `v1beta1`; `None` where it knows neither.
    pub(super) version: Option<&'static str>,
    pub(super) matching: Matching,
    pub(super) conditions: Arc<Conditions>,
}

impl Hook {
    /// The webhooks of a configuration, in order.
    pub(super) fn all(configuration: &Value) -> Vec<Self> {
        let hooks = configuration.get("webhooks").and_then(Value::as_array).unwrap_or_default();
        let name = Str::from(object::name(configuration));
        let of = |(index, hook)| Self::of(hook, name.clone(), format!("{name}/{index}"));
        hooks.iter().enumerate().map(of).collect()
    }

    fn of(hook: &Value, configuration: Str, key: String) -> Self {
        let text = |member| hook.str_at(&[member]).unwrap_or_default();
        let seconds = hook.get("timeoutSeconds").and_then(Value::as_int).unwrap_or(10);
        let versions = texts(hook, "admissionReviewVersions");
        let known = |said: &Str| ["v1", "v1beta1"].into_iter().find(|version| *said == *version);
        let seconds = u64::try_from(seconds).unwrap_or(10);
        let endpoint = Endpoint::of(hook.get("clientConfig").unwrap_or(&Value::Null));
        let conditions = match hook.get("matchConditions") {
            Some(_) => Conditions::of(hook, &Compiler::of_webhook()),
            None => Conditions::default(),
        };
        Self {
            name: text("name").into(),
            configuration,
            key,
            endpoint: endpoint.within(seconds),
            timeout: Duration::from_secs(seconds),
            lenient: text("failurePolicy") == "Ignore",
            dry_runs: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            again: text("reinvocationPolicy") == "IfNeeded",
            version: versions.iter().find_map(known),
            matching: Matching::of_webhook(hook),
            conditions: Arc::new(conditions),
        }
    }

    /// Refuses a dry run if the webhook might do something all the same (DRY-07).
    pub(super) fn supports_dry_run(&self) -> Result<(), Status> {
        if self.dry_runs {
            return Ok(());
        }
        let why = format!("admission webhook {:?} does not support dry run", self.name);
        Err(Status::bad_request(why))
    }
}
