//! What admission measures beyond its two halves: calls of webhooks, conditions, and what policies say.
//! Labels are in the order of their names, as upstream has them.

use std::time::Duration;

use pintle_measure::{Counter, Distribution, Series, nanoseconds};
use pintle_registry::admission::Operation;
use pintle_registry::measures::PhaseDurations;

use crate::pod_security::PodSecurityMeasures;
use crate::rows;

/// Upstream's buckets of calls of webhooks.
pub static CALL_BOUNDS: [u64; 8] = nanoseconds([0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0]);
/// Upstream's buckets of conditions.
pub static CONDITION_BOUNDS: [u64; 7] = nanoseconds([0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25]);
/// Upstream's buckets of policies.
pub static POLICY_BOUNDS: [u64; 5] = nanoseconds([0.000_000_5, 0.001, 0.01, 0.1, 1.0]);

/// Codes above this are counted as this one (upstream: so that their number is bounded).
const CODE_MAX: u16 = 600;

/// The measures of webhooks and policies.
#[derive(Debug)]
pub struct Measures {
    /// How long calls took, by webhook, operation, whether it refused the write, and type.
    pub calls: Series<4, Distribution>,
    /// Calls, by code, webhook, operation, whether it refused the write, and type.
    pub answers: Series<5, Counter>,
    /// Refused writes, by sort of error, webhook, operation, code and type.
    pub rejections: Series<5, Counter>,
    /// Calls that failed and let the write pass, by webhook and type.
    pub failed_open: Series<2, Counter>,
    /// How long conditions took, by kind of who has them, its name, operation and type.
    pub conditions: Series<4, Distribution>,
    /// Conditions that could not be judged, by the same labels.
    pub condition_errors: Series<4, Counter>,
    /// Webhooks that were not asked because a condition did not hold, by the same labels.
    pub exclusions: Series<4, Counter>,
    /// What validating policies said, by what came of it, sort of error, policy and binding.
    pub validations: Series<4, Distribution>,
    /// What mutating policies did, by sort of error, policy and binding.
    pub mutations: Series<3, Distribution>,
    /// What the Pod Security Standards decided.
    pub pod_security: PodSecurityMeasures,
    /// How long each plugin took, in the order of all.
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

/// Which webhooks are asked: those that change objects, or those that judge them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Admit,
    Validate,
}

impl Step {
    /// The label `type` of calls, and of conditions that are evaluated.
    const fn label(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Validate => "validating",
        }
    }

    /// The label `type` of webhooks that are not called, which upstream spells otherwise.
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
    /// The webhook said so.
    Said,
    /// It could not be asked, or its answer not be read.
    NotAsked,
    /// It must not be asked.
    Internal,
}

impl Rejection {
    const fn name(self) -> &'static str {
        match self {
            Self::Said => "no_error",
            Self::NotAsked => "calling_webhook_error",
            Self::Internal => "apiserver_internal_error",
        }
    }
}

/// Who has conditions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asker<'a> {
    Webhook(&'a str, Step),
    Policy(&'a str),
}

impl<'a> Asker<'a> {
    fn labels(self, operation: Operation) -> [&'a str; 4] {
        match self {
            Self::Webhook(name, step) => ["webhook", name, operation.name(), step.label()],
            Self::Policy(name) => ["policy", name, operation.name(), "validate"],
        }
    }
}

impl Measures {
    /// How long each plugin took, by its name.
    pub fn plugins(&self) -> impl Iterator<Item = (&'static str, &PhaseDurations)> {
        rows::ALL.iter().map(|row| row.name).zip(&self.plugins)
    }

    /// Counts a call of a webhook; `code` is that of its answer, and 0 where it was not asked.
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

    /// Counts how long conditions took, and whether they could be judged.
    pub(crate) fn judged(
        &self,
        asker: Asker<'_>,
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

    /// Counts what came of what a validating policy said: `allow`, `deny`, `warn`, `audit`.
    pub(crate) fn validated(
        &self,
        (policy, binding): (&str, &str),
        action: &str,
        message: &str,
        took: Duration,
    ) {
        self.validations.with([action, error_type(message), policy, binding]).took(took);
    }

    /// Counts a mutation that a policy made, or why it did not.
    pub(crate) fn mutated(
        &self,
        (policy, binding): (&str, &str),
        failure: Option<&str>,
        took: Duration,
    ) {
        let error_type = failure.map_or("no_error", error_type);
        self.mutations.with([error_type, policy, binding]).took(took);
    }

    /// Counts a webhook that is not asked, for its conditions do not hold.
    pub(crate) fn excluded(&self, name: &str, step: Step, operation: Operation) {
        self.exclusions.with(["webhook", name, operation.name(), step.exclusion_label()]).add(1);
    }
}

/// The sort of what a policy objects to: what does not hold is `invalid_error`, as upstream has it.
fn error_type(message: &str) -> &'static str {
    if message.starts_with("compilation") {
        "compile_error"
    } else if message.starts_with("validation failed due to running out of cost budget") {
        "out_of_budget"
    } else {
        "invalid_error"
    }
}
