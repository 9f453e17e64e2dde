//! A webhook, read from its configuration.

use std::sync::LazyLock;
use std::time::Duration;

use pintle_meta::{Status, object};
use pintle_registry::webhook::Endpoint;
use pintle_value::{Str, Value};

use crate::conditions::Conditions;
use crate::expressions::Compiler;
use crate::matching::{Matching, texts};

/// A webhook of a configuration.
#[derive(Debug)]
pub(super) struct Webhook {
    pub(super) name: Str,
    /// The name of its configuration.
    pub(super) configuration: Str,
    /// Identifies the webhook among all webhooks.
    pub(super) key: String,
    pub(super) endpoint: Endpoint,
    pub(super) timeout: Duration,
    /// Whether the failure policy ignores failed calls.
    pub(super) ignores_failures: bool,
    /// Whether the webhook has no side effects, or none in a dry run.
    has_no_side_effects_in_dry_runs: bool,
    /// Whether the webhook is called again when a later webhook or policy changes the object
    /// (`reinvocationPolicy: IfNeeded`).
    pub(super) wants_reinvocation: bool,
    /// The version of AdmissionReview, `v1` or `v1beta1`; `None` if the webhook accepts neither.
    pub(super) version: Option<&'static str>,
    pub(super) matching: Matching,
    /// The match conditions, if there are any. They are compiled when they are first evaluated: this
    /// may take long, and all webhooks are locked while they are read.
    pub(super) conditions: Option<LazyConditions>,
}

type LazyConditions = LazyLock<Conditions, Box<dyn FnOnce() -> Conditions + Send>>;

impl Webhook {
    /// The webhooks of a configuration, in order.
    pub(super) fn all(configuration: &Value) -> Vec<Self> {
        let webhooks = configuration.get("webhooks").and_then(Value::as_array).unwrap_or_default();
        let name = Str::from(object::name(configuration));
        let of = |(index, webhook)| Self::of(webhook, name.clone(), format!("{name}/{index}"));
        webhooks.iter().enumerate().map(of).collect()
    }

    fn of(webhook: &Value, configuration: Str, key: String) -> Self {
        let text = |member| webhook.str_at(&[member]).unwrap_or_default();
        let seconds = webhook.get("timeoutSeconds").and_then(Value::as_int).unwrap_or(10);
        let versions = texts(webhook, "admissionReviewVersions");
        let known = |version: &Str| ["v1", "v1beta1"].into_iter().find(|known| *version == **known);
        let seconds = u64::try_from(seconds).unwrap_or(10);
        let endpoint = Endpoint::of(webhook.get("clientConfig").unwrap_or(&Value::Null));
        let conditions = webhook.get("matchConditions").and_then(Value::as_array);
        let conditions = conditions.filter(|all| !all.is_empty()).map(|conditions| {
            let owner = Value::from([("matchConditions", conditions.to_vec())]);
            let compile = move || Conditions::of(&owner, &Compiler::of_webhook());
            LazyConditions::new(Box::new(compile))
        });
        Self {
            name: text("name").into(),
            configuration,
            key,
            endpoint: endpoint.within(seconds),
            timeout: Duration::from_secs(seconds),
            ignores_failures: text("failurePolicy") == "Ignore",
            has_no_side_effects_in_dry_runs: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            wants_reinvocation: text("reinvocationPolicy") == "IfNeeded",
            version: versions.iter().find_map(known),
            matching: Matching::of_webhook(webhook),
            conditions,
        }
    }

    /// Refuses a dry run if the webhook may have side effects in it (DRY-07).
    pub(super) fn supports_dry_run(&self) -> Result<(), Status> {
        if self.has_no_side_effects_in_dry_runs {
            return Ok(());
        }
        let why = format!("admission webhook {:?} does not support dry run", self.name);
        Err(Status::bad_request(why))
    }
}
