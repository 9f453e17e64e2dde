//! What a policy says of a request, given its parameters (upstream: `validator.Validate`).

use std::time::{Duration, Instant};

use pintle_cel::Budget;
use pintle_meta::Reason;
use pintle_registry::admission::Operation;
use pintle_value::Value;

use super::policy::{Policy, Validation};
use crate::annotations::Values;
use crate::expressions::{Evaluation, Facts, Failure};
use crate::measures::Measures;
use crate::policies::seen::is_wanted;

/// What one evaluation of a policy may cost (upstream: `RuntimeCELCostBudget`).
const COST_MAX: u64 = 10_000_000;
/// The longest message that an expression may make.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// Something that speaks against a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Objection {
    /// Which of the policy's validations it comes from; 0 where it comes from none.
    pub(super) index: usize,
    pub(super) message: String,
    pub(super) reason: Reason,
    pub(super) weight: Weight,
    /// How long it took to find.
    pub(super) took: Duration,
}

/// What an objection counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// Nothing: the policy's failures are ignored.
    None,
    /// What a binding says should come of it.
    AsBound,
    /// It refuses the write, whatever a binding says.
    Full,
}

impl Objection {
    /// Something is wrong with the policy itself.
    fn failure(message: String, weight: Weight, took: Duration) -> Self {
        Self { index: 0, message, reason: Reason::Invalid, weight, took }
    }
}

/// Everything that a policy has against a request. Where it cannot decide, that is an objection, of no
/// weight for a lenient one. With it comes what the policy says for the audit log.
pub(super) fn objections<'a>(
    policy: &'a Policy,
    facts: Facts<'a>,
    measured: (&Measures, Operation),
) -> (Vec<Objection>, Values) {
    let head = &policy.head;
    let weight = if head.lenient { Weight::None } else { Weight::AsBound };
    let began = Instant::now();
    match is_wanted(head, facts, measured) {
        Ok(true) => {}
        Ok(false) => return Default::default(),
        Err(why) => {
            return (vec![Objection::failure(why, weight, began.elapsed())], Values::default());
        }
    }
    let evaluation = Evaluation::new(facts, &head.variables);
    let mut budget = Budget::new(COST_MAX);
    let mut objections = Vec::new();
    for (index, validation) in policy.validations.iter().enumerate() {
        let began = Instant::now();
        match evaluation.of(&validation.expression, &mut budget) {
            Ok(Value::Bool(true)) => {}
            Ok(_) => {
                let message = message(validation, &evaluation, &mut budget);
                let reason = validation.reason;
                let took = began.elapsed();
                let weight = Weight::AsBound;
                objections.push(Objection { index, message, reason, weight, took });
            }
            Err(Failure::Expression(why)) => {
                let failure = Objection::failure(why, weight, began.elapsed());
                objections.push(Objection { index, ..failure });
            }
            Err(why) => {
                let failure = Objection::failure(why.into_text(), weight, began.elapsed());
                return (vec![failure], Values::default());
            }
        }
    }
    let mut said = Values::default();
    objections.extend(annotations(policy, &evaluation, &mut said));
    (objections, said)
}

/// What is said where a validation does not hold: what its expression makes of it, its text, or the
/// validation itself.
fn message<'a>(
    validation: &'a Validation,
    evaluation: &Evaluation<'a>,
    budget: &mut Budget,
) -> String {
    let made = validation.message_expression.as_ref().map(|said| evaluation.of(said, budget));
    if let Some(Err(why @ Failure::Budget)) = made {
        return format!("failed messageExpression: {}", why.into_text());
    }
    let made = made.and_then(Result::ok);
    let made = made.as_ref().and_then(Value::as_str).unwrap_or_default().trim();
    let fits = !made.is_empty() && made.len() <= MESSAGE_BYTES_MAX && !made.contains('\n');
    match (fits, validation.message.as_str()) {
        (true, _) => made.to_owned(),
        (false, "") => format!("failed expression: {}", validation.expression.text.trim()),
        (false, message) => message.to_owned(),
    }
}

/// Adds what is said for the audit log; what cannot be is an objection.
fn annotations<'a>(
    policy: &'a Policy,
    evaluation: &Evaluation<'a>,
    said: &mut Values,
) -> Vec<Objection> {
    let mut budget = Budget::new(COST_MAX);
    let mut objections = Vec::new();
    for annotation in &policy.annotations {
        let began = Instant::now();
        let why = match evaluation.of(&annotation.value, &mut budget) {
            Ok(value) => {
                let value = value.as_str().map(str::trim).filter(|value| !value.is_empty());
                value.into_iter().for_each(|value| said.add(&annotation.key, value));
                continue;
            }
            Err(why) => why,
        };
        if !policy.head.lenient {
            let is_its_own = matches!(why, Failure::Expression(_));
            let weight = if is_its_own { Weight::Full } else { Weight::AsBound };
            objections.push(Objection::failure(why.into_text(), weight, began.elapsed()));
        }
    }
    objections
}
