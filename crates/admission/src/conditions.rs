//! Match conditions: a webhook or a policy applies to a write only if all of these expressions are
//! true (WH-01, VAP-01).

use pintle_cel::Budget;
use pintle_value::Value;

use crate::expressions::{Compiler, Evaluation, Expected, Expression, Failure};

/// The cost limit of all conditions of a webhook or a policy (upstream:
/// `RuntimeCELCostBudgetMatchConditions`).
const COST_MAX: u64 = 2_500_000;

/// The compiled match conditions of a webhook or a policy.
#[derive(Debug, Default)]
pub(crate) struct Conditions(Vec<Expression>);

impl Conditions {
    /// Compiles the `matchConditions` of a webhook or of the spec of a policy.
    pub(crate) fn of(owner: &Value, compiler: &Compiler) -> Self {
        let conditions = owner.get("matchConditions").and_then(Value::as_array).unwrap_or_default();
        let read = |condition: &Value| {
            let text = condition.str_at(&["expression"]).unwrap_or_default();
            compiler.compile(text.trim(), Expected::Bool)
        };
        Self(conditions.iter().map(read).collect())
    }

    /// The compiled expressions, in order.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.0.iter()
    }

    /// Whether there are no conditions.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if all conditions are true. One false condition decides, even if the evaluation
    /// of another one fails. But an exhausted cost budget is an error at once.
    pub(crate) fn all_true<'a>(&'a self, evaluation: &Evaluation<'a>) -> Result<bool, String> {
        let mut budget = Budget::new(COST_MAX);
        let mut errors = Vec::new();
        for condition in &self.0 {
            match evaluation.of(condition, &mut budget) {
                Ok(Value::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(Failure::Expression(why)) => errors.push(why),
                Err(why) => return Err(why.into_text()),
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            [why] => Err(why.clone()),
            all => Err(format!("[{}]", all.join(", "))),
        }
    }
}
