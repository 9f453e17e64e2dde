//! Measures of webhooks, match conditions, policies, Pod Security and the durations of plugins.
//! Labels are sorted by name, as upstream's.

use std::time::Duration;

use pintle_measure::{Counter, Distribution, Series, nanoseconds};
use pintle_registry::admission::Operation;
use pintle_registry::measures::PhaseDurations;

use crate::pod_security::PodSecurityMeasures;
use crate::rows;

/// Upstream's buckets of webhook calls.
pub static CALL_BOUNDS: [u64; 8] = nanoseconds([0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0]);
/// Upstream's buckets of conditions.
pub static CONDITION_BOUNDS: [u64; 7] = nanoseconds([0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25]);
/// Upstream's buckets of policies.
pub static POLICY_BOUNDS: [u64; 5] = nanoseconds([0.000_000_5, 0.001, 0.01, 0.1, 1.0]);

/// Higher codes count as this one (upstream: bounds the number of series).
const CODE_MAX: u16 = 600;

/// The measures of webhooks and policies.
#[derive(Debug)]
pub struct Measures {
    /// Durations of calls by webhook, operation, rejection and type.
    pub calls: Series<4, Distribution>,
    /// Calls by code, webhook, operation, rejection and type.
    pub answers: Series<5, Counter>,
    /// Rejections by error type, webhook, operation, code and type.
    pub rejections: Series<5, Counter>,
    /// Failed calls that let the write pass, by webhook and type.
    pub failed_open: Series<2, Counter>,
    /// Durations of conditions by kind and name of their owner, operation and type.
    pub conditions: Series<4, Distribution>,
    /// Conditions that failed, by the same labels.
    pub condition_errors: Series<4, Counter>,
    /// Webhooks that were not called because of a condition, by the same labels.
    pub exclusions: Series<4, Counter>,
    /// Evaluations of validating policies by enforcement action, error type, policy and binding.
    pub validations: Series<4, Distribution>,
    /// Evaluations of mutating policies by error type, policy and binding.
    pub mutations: Series<3, Distribution>,
    /// Decisions of Pod Security.
    pub pod_security: PodSecurityMeasures,
    /// Durations of plugins, in the order of [`rows::ALL`].
    pub(crate) plugins: Box<[PhaseDurations]>,
}

impl Default for Measures {
    fn default() -> Self {
        Self {
            calls: Series::new(|| Distribution::new(&CALL_BOUNDS)),
            answers: Series::default(),
            rejections: Series::default(),
            failed_open: Series::default(),
            conditions: Series::new(|| Distribution::new(&CONDITION_BOUNDS)),
            condition_errors: Series::default(),
            exclusions: Series::default(),
            validations: Series::new(|| Distribution::new(&POLICY_BOUNDS)),
            mutations: Series::new(|| Distribution::new(&POLICY_BOUNDS)),
            pod_security: PodSecurityMeasures::default(),
            plugins: rows::ALL.iter().map(|_| PhaseDurations::default()).collect(),
        }
    }
}

/// Mutating or validating webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Admit,
    Validate,
}

impl Step {
    /// The name of a call's span.
    pub(crate) const fn span(self) -> &'static str {
        match self {
            Self::Admit => "Call mutating webhook",
            Self::Validate => "Call validating webhook",
        }
    }

    /// The label `type` of calls, and of conditions that are evaluated.
    const fn label(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Validate => "validating",
        }
    }

    /// The label `type` of webhooks that are not called, which upstream spells differently.
    const fn exclusion_label(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Validate => "validate",
        }
    }
}

/// Why a write was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// The webhook rejected it.
    ByWebhook,
    /// The webhook could not be called, or its response could not be parsed.
    CallFailed,
    /// The webhook must not be called in a dry run, because it may have side effects.
    Internal,
}

impl Rejection {
    const fn name(self) -> &'static str {
        match self {
            Self::ByWebhook => "no_error",
            Self::CallFailed => "calling_webhook_error",
            Self::Internal => "apiserver_internal_error",
        }
    }
}

/// The owner of match conditions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConditionOwner<'a> {
    Webhook(&'a str, Step),
    Policy(&'a str),
}

impl<'a> ConditionOwner<'a> {
    fn labels(self, operation: Operation) -> [&'a str; 4] {
        match self {
            Self::Webhook(name, step) => ["webhook", name, operation.name(), step.label()],
            Self::Policy(name) => ["policy", name, operation.name(), "validate"],
        }
    }
}

impl Measures {
    /// Durations of plugins by name.
    pub fn plugins(&self) -> impl Iterator<Item = (&'static str, &PhaseDurations)> {
        rows::ALL.iter().map(|row| row.name).zip(&self.plugins)
    }

    /// Counts a call of a webhook; `code` is the status code of its response, or 0 if the webhook
    /// was not called.
    pub(crate) fn called(
        &self,
        (name, step, operation): (&str, Step, Operation),
        took: Duration,
        code: u16,
        rejection: Option<Rejection>,
    ) {
        let (step, operation) = (step.label(), operation.name());
        let code = code.min(CODE_MAX).to_string();
        let rejected = if rejection.is_some() { "true" } else { "false" };
        self.calls.with([name, operation, rejected, step]).took(took);
        self.answers.with([&code, name, operation, rejected, step]).add(1);
        if let Some(rejection) = rejection {
            self.rejections.with([rejection.name(), name, operation, &code, step]).add(1);
        }
    }

    /// Counts a failure that lets the write pass.
    pub(crate) fn failed_open(&self, name: &str, step: Step) {
        self.failed_open.with([name, step.label()]).add(1);
    }

    /// Observes an evaluation of conditions, and whether it failed.
    pub(crate) fn conditions_evaluated(
        &self,
        asker: ConditionOwner<'_>,
        operation: Operation,
        took: Duration,
        failed: bool,
    ) {
        let labels = asker.labels(operation);
        self.conditions.with(labels).took(took);
        if failed {
            self.condition_errors.with(labels).add(1);
        }
    }

    /// Observes an evaluation of a validating policy; `action` is `allow`, `deny`, `warn` or
    /// `audit`.
    pub(crate) fn validated(
        &self,
        (policy, binding): (&str, &str),
        action: &str,
        message: &str,
        took: Duration,
    ) {
        self.validations.with([action, error_type(message), policy, binding]).took(took);
    }

    /// Observes an evaluation of a mutating policy.
    pub(crate) fn mutated(
        &self,
        (policy, binding): (&str, &str),
        failure: Option<&str>,
        took: Duration,
    ) {
        let error_type = failure.map_or("no_error", error_type);
        self.mutations.with([error_type, policy, binding]).took(took);
    }

    /// Counts a webhook that is not called because of its conditions.
    pub(crate) fn excluded(&self, name: &str, step: Step, operation: Operation) {
        self.exclusions.with(["webhook", name, operation.name(), step.exclusion_label()]).add(1);
    }
}

/// Returns the error type of a policy's denial, which its message shows. As in upstream, a failed
/// validation is an `invalid_error`, too.
fn error_type(message: &str) -> &'static str {
    if message.starts_with("compilation") {
        "compile_error"
    } else if message.starts_with("validation failed due to running out of cost budget") {
        "out_of_budget"
    } else {
        "invalid_error"
    }
}
