//! Match conditions: expressions that must all hold for a webhook to be asked (WH-01).

use std::sync::Arc;

use pintle_cel::{Bindings, Budget, Declaration, Environment, Program, SIZE_MAX};
use pintle_value::{Str, Value};

/// What all conditions of a webhook may cost together (upstream: `RuntimeCELCostBudgetMatchConditions`).
const COST_MAX: u64 = 2_500_000;

/// The conditions of a webhook.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions(Vec<Condition>);

#[derive(Clone, Debug)]
struct Condition {
    name: Str,
    /// Why it cannot be judged, if it cannot.
    program: Result<Arc<Program>, String>,
}

impl Conditions {
    /// The `matchConditions` of a webhook.
    pub(super) fn of(hook: &Value) -> Self {
        let conditions = hook.get("matchConditions").and_then(Value::as_array).unwrap_or_default();
        if conditions.is_empty() {
            return Self::default();
        }
        let environment = ["object", "oldObject", "request"]
            .into_iter()
            .fold(Environment::new(), |environment, name| {
                environment.with(name, Declaration::Dyn { size_max: SIZE_MAX })
            });
        let read = |condition: &Value| Condition {
            name: condition.str_at(&["name"]).unwrap_or_default().into(),
            program: environment
                .compile(condition.str_at(&["expression"]).unwrap_or_default())
                .map(Arc::new)
                .map_err(|why| why.to_string()),
        };
        Self(conditions.iter().map(read).collect())
    }

    /// Whether there are none.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all hold. One that does not outweighs one that cannot be judged.
    pub(super) fn hold(
        &self,
        object: &Value,
        old: &Value,
        request: &Value,
    ) -> Result<bool, String> {
        let bindings = Bindings::new().with(object).with(old).with(request);
        let mut budget = Budget::new(COST_MAX);
        let mut unjudged = Vec::new();
        for Condition { name, program } in &self.0 {
            let value = program.as_ref().map_err(Clone::clone).and_then(|program| {
                program.evaluate(&bindings, &mut budget).map_err(|why| why.to_string())
            });
            match value {
                Ok(Value::Bool(true)) => {}
                Ok(Value::Bool(false)) => return Ok(false),
                Ok(_) => unjudged.push(format!("expression '{name}' must evaluate to bool")),
                Err(why) => unjudged.push(format!("expression '{name}' resulted in error: {why}")),
            }
        }
        if unjudged.is_empty() { Ok(true) } else { Err(unjudged.join(", ")) }
    }
}
