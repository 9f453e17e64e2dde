//! What a policy says of a request, given its parameters (upstream: `validator.Validate`).

use pintle_cel::Budget;
use pintle_meta::Reason;
use pintle_value::Value;

use super::policy::{Policy, Validation};
use crate::expressions::{Evaluation, Facts, Failure};

/// What one evaluation of a policy may cost (upstream: `RuntimeCELCostBudget`).
const COST_MAX: u64 = 10_000_000;
/// The longest message that an expression may make.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// Something that speaks against a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Objection {
    pub(super) message: String,
    pub(super) reason: Reason,
    /// It counts whatever a binding says should come of objections.
    pub(super) always: bool,
}

impl Objection {
    /// Something is wrong with the policy itself.
    fn failure(message: String) -> Self {
        Self { message, reason: Reason::Invalid, always: false }
    }
}

/// Everything that a policy has against a request. Where it cannot decide, that is an objection, or
/// nothing for a lenient one.
pub(super) fn objections(policy: &Policy, facts: Facts<'_>) -> Vec<Objection> {
    let failed = |why: String| match policy.lenient {
        true => Vec::new(),
        false => vec![Objection::failure(why)],
    };
    if !policy.conditions.is_empty() {
        // Conditions are judged before the namespace is looked at.
        let facts = Facts { namespace: &Value::Null, ..facts };
        match policy.conditions.hold(&mut Evaluation::new(facts, &policy.variables)) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(why) => return failed(why),
        }
    }
    let mut evaluation = Evaluation::new(facts, &policy.variables);
    let mut budget = Budget::new(COST_MAX);
    let mut objections = Vec::new();
    for validation in &policy.validations {
        match evaluation.of(&validation.expression, &mut budget) {
            Ok(Value::Bool(true)) => {}
            Ok(_) => {
                let message = message(validation, &mut evaluation, &mut budget);
                let reason = validation.reason;
                objections.push(Objection { message, reason, always: false });
            }
            Err(Failure::Expression(why)) => objections.extend(failed(why)),
            Err(why) => return failed(why.into_text()),
        }
    }
    objections.extend(annotations(policy, &mut evaluation));
    objections
}

/// What is said where a validation does not hold: what its expression makes of it, its text, or the
/// validation itself.
fn message(
    validation: &Validation,
    evaluation: &mut Evaluation<'_>,
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

/// What cannot be written into the audit log is an objection.
fn annotations(policy: &Policy, evaluation: &mut Evaluation<'_>) -> Vec<Objection> {
    let mut budget = Budget::new(COST_MAX);
    let values = policy.annotations.iter().map(|one| evaluation.of(one, &mut budget));
    let failures = values.filter_map(Result::err).filter(|_| !policy.lenient);
    let objections = failures.map(|why| {
        let always = matches!(why, Failure::Expression(_));
        Objection { always, ..Objection::failure(why.into_text()) }
    });
    objections.collect()
}
