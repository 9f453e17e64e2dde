//! What a policy says of a request, given its parameters (upstream: `validator.Validate`).

use pintle_cel::Budget;
use pintle_meta::Reason;
use pintle_value::Value;

use super::policy::{Policy, Validation};
use crate::expressions::{Evaluation, Facts, Failure};
use crate::policies::seen::is_wanted;

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
pub(super) fn objections<'a>(policy: &'a Policy, facts: Facts<'a>) -> Vec<Objection> {
    let head = &policy.head;
    let failed = |why: String| match head.lenient {
        true => Vec::new(),
        false => vec![Objection::failure(why)],
    };
    match is_wanted(head, facts) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(why) => return failed(why),
    }
    let evaluation = Evaluation::new(facts, &head.variables);
    let mut budget = Budget::new(COST_MAX);
    let mut objections = Vec::new();
    for validation in &policy.validations {
        match evaluation.of(&validation.expression, &mut budget) {
            Ok(Value::Bool(true)) => {}
            Ok(_) => {
                let message = message(validation, &evaluation, &mut budget);
                let reason = validation.reason;
                objections.push(Objection { message, reason, always: false });
            }
            Err(Failure::Expression(why)) => objections.extend(failed(why)),
            Err(why) => return failed(why.into_text()),
        }
    }
    objections.extend(annotations(policy, &evaluation));
    objections
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

/// What cannot be written into the audit log is an objection.
fn annotations<'a>(policy: &'a Policy, evaluation: &Evaluation<'a>) -> Vec<Objection> {
    let mut budget = Budget::new(COST_MAX);
    let values = policy.annotations.iter().map(|one| evaluation.of(one, &mut budget));
    let failures = values.filter_map(Result::err).filter(|_| !policy.head.lenient);
    let objections = failures.map(|why| {
        let always = matches!(why, Failure::Expression(_));
        Objection { always, ..Objection::failure(why.into_text()) }
    });
    objections.collect()
}
