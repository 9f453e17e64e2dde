//! Match conditions: expressions that must all hold for somebody to be asked (WH-01, VAP-01).

use pintle_cel::Budget;
use pintle_value::Value;

use crate::expressions::{Compiler, Evaluation, Expression, Failure, Wanted};

/// What all conditions of one asker may cost together (upstream: `RuntimeCELCostBudgetMatchConditions`).
const COST_MAX: u64 = 2_500_000;

/// The conditions of a webhook or a policy.
#[derive(Debug, Default)]
pub(crate) struct Conditions(Vec<Expression>);

impl Conditions {
    /// The `matchConditions` of a webhook or a policy.
    pub(crate) fn of(asker: &Value, compiler: &Compiler) -> Self {
        let conditions = asker.get("matchConditions").and_then(Value::as_array).unwrap_or_default();
        let read = |condition: &Value| {
            let text = condition.str_at(&["expression"]).unwrap_or_default();
            compiler.compile(text, Wanted::Bool)
        };
        Self(conditions.iter().map(read).collect())
    }

    /// Their expressions.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.0.iter()
    }

    /// Whether there are none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all hold. One that does not outweighs one that cannot be judged.
    pub(crate) fn hold<'a>(&'a self, evaluation: &Evaluation<'a>) -> Result<bool, String> {
        let mut budget = Budget::new(COST_MAX);
        let mut unjudged = Vec::new();
        for condition in &self.0 {
            match evaluation.of(condition, &mut budget) {
                Ok(Value::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(Failure::Expression(why)) => unjudged.push(why),
                Err(why) => return Err(why.into_text()),
            }
        }
        match unjudged.as_slice() {
            [] => Ok(true),
            [why] => Err(why.clone()),
            all => Err(format!("[{}]", all.join(", "))),
        }
    }
}
