//! Evaluates a policy for one request and one parameter (upstream: `validator.Validate`).

use std::time::{Duration, Instant};

use pintle_cel::Budget;
use pintle_meta::Reason;
use pintle_registry::admission::Operation;
use pintle_value::Value;

use super::policy::{Policy, Validation};
use crate::annotations::Values;
use crate::expressions::{Evaluation, Failure, Inputs};
use crate::measures::Measures;
use crate::policies::input::is_matched;

/// The cost limit of all validations of an evaluation, and again of all its audit annotations
/// (upstream: `RuntimeCELCostBudget`).
const COST_MAX: u64 = 10_000_000;
/// The longest message of a message expression; longer ones are not used.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// The largest number of failures of one evaluation. A policy may have more validations, and each
/// failure has a message.
const FAILURES_MAX: usize = 1000;

/// A failed validation, or an error of the policy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PolicyFailure {
    /// The index of the failed validation; 0 for an error of another part of the policy.
    pub(super) index: usize,
    pub(super) message: String,
    pub(super) reason: Reason,
    pub(super) effect: Effect,
    /// The duration of the evaluation.
    pub(super) took: Duration,
}

/// The effect of a failure on the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The policy ignores failures.
    Ignore,
    /// The actions of the binding decide.
    BindingActions,
    /// The write is refused, whatever the actions of the binding are.
    Deny,
}

impl PolicyFailure {
    /// Returns the failure for an error of the policy itself.
    fn failure(message: String, effect: Effect, took: Duration) -> Self {
        Self { index: 0, message, reason: Reason::Invalid, effect, took }
    }
}

/// Evaluates all validations and audit annotations of a policy if its match conditions match, until
/// the cost limit is reached. Returns the failures, and the values of the audit annotations. An
/// error of the policy is a failure; its effect depends on the failure policy.
pub(super) fn failures<'a>(
    policy: &'a Policy,
    inputs: Inputs<'a>,
    measured: (&Measures, Operation),
) -> (Vec<PolicyFailure>, Values) {
    let head = &policy.head;
    let effect = if head.ignores_failures { Effect::Ignore } else { Effect::BindingActions };
    let began = Instant::now();
    match is_matched(head, inputs, measured) {
        Ok(true) => {}
        Ok(false) => return Default::default(),
        Err(why) => {
            return (vec![PolicyFailure::failure(why, effect, began.elapsed())], Values::default());
        }
    }
    let evaluation = Evaluation::new(inputs, &head.variables);
    let mut budget = Budget::new(COST_MAX);
    let mut failures = Vec::new();
    let mut add = |failure| {
        if failures.len() < FAILURES_MAX {
            failures.push(failure);
        }
    };
    for (index, validation) in policy.validations.iter().enumerate() {
        let began = Instant::now();
        match evaluation.of(&validation.expression, &mut budget) {
            Ok(Value::Bool(true)) => {}
            Ok(_) => {
                let message = message(validation, &evaluation, &mut budget);
                let reason = validation.reason;
                let took = began.elapsed();
                let effect = Effect::BindingActions;
                add(PolicyFailure { index, message, reason, effect, took });
            }
            Err(Failure::Expression(why)) => {
                let failure = PolicyFailure::failure(why, effect, began.elapsed());
                add(PolicyFailure { index, ..failure });
            }
            Err(why) => {
                let failure = PolicyFailure::failure(why.into_text(), effect, began.elapsed());
                return (vec![failure], Values::default());
            }
        }
    }
    let mut values = Values::default();
    failures.extend(annotations(policy, &evaluation, &mut values));
    (failures, values)
}

/// Returns the message of a failed validation: the value of its message expression, its text, or
/// its expression.
fn message<'a>(
    validation: &'a Validation,
    evaluation: &Evaluation<'a>,
    budget: &mut Budget,
) -> String {
    let evaluated =
        validation.message_expression.as_ref().map(|expression| evaluation.of(expression, budget));
    if let Some(Err(why @ Failure::Budget)) = evaluated {
        return format!("failed messageExpression: {}", why.into_text());
    }
    let text = evaluated.and_then(Result::ok);
    let text = text.as_ref().and_then(Value::as_str).unwrap_or_default().trim();
    let fits = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
    match (fits, validation.message.as_str()) {
        (true, _) => text.to_owned(),
        (false, "") => format!("failed expression: {}", validation.expression.text.trim()),
        (false, message) => message.to_owned(),
    }
}

/// Evaluates the audit annotations and adds their values. Returns their errors, unless the policy
/// ignores failures.
fn annotations<'a>(
    policy: &'a Policy,
    evaluation: &Evaluation<'a>,
    values: &mut Values,
) -> Vec<PolicyFailure> {
    let mut budget = Budget::new(COST_MAX);
    let mut failures = Vec::new();
    for annotation in &policy.annotations {
        let began = Instant::now();
        let why = match evaluation.of(&annotation.value, &mut budget) {
            Ok(value) => {
                let value = value.as_str().map(str::trim).filter(|value| !value.is_empty());
                value.into_iter().for_each(|value| values.add(&annotation.key, value));
                continue;
            }
            Err(why) => why,
        };
        if !policy.head.ignores_failures {
            let is_its_own = matches!(why, Failure::Expression(_));
            let effect = if is_its_own { Effect::Deny } else { Effect::BindingActions };
            failures.push(PolicyFailure::failure(why.into_text(), effect, began.elapsed()));
        }
    }
    failures
}
