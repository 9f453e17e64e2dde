//! Compiled expressions.

use pintle_value::Value;

use crate::ast::Expr;
use crate::bindings::Bindings;
use crate::checker::{Checked, Reference};
use crate::context::{Budget, Context};
use crate::cost::Estimate;
use crate::error::EvalError;
use crate::plan::{Frame, NamedValues, Plan};
use crate::scope::Scope;
use crate::types::Type;
use crate::types::declaration::Declaration;
use crate::value::{Eval, Val, to_json};

use std::sync::Arc;

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    plan: Plan,
    output: Type,
    estimate: Estimate,
    variables: Vec<(pintle_value::Str, Arc<Declaration>)>,
    used: Vec<bool>,
}

impl Program {
    pub(crate) fn new(
        plan: Plan,
        root: &Expr,
        checked: &Checked,
        estimate: Estimate,
        scope: &Scope,
    ) -> Self {
        let variables = scope.variables.clone();
        let mut used = vec![false; variables.len()];
        for reference in checked.references() {
            if let Reference::Variable(index) = reference {
                used[*index] = true;
            }
        }
        let output = checked.type_of(root).clone();
        Self { plan, output, estimate, variables, used }
    }

    /// The type of the expression's value.
    pub const fn output_type(&self) -> &Type {
        &self.output
    }

    /// The minimum and maximum cost of an evaluation.
    pub const fn estimate(&self) -> Estimate {
        self.estimate
    }

    /// Whether the expression refers to the variable.
    pub fn uses(&self, variable: &str) -> bool {
        let index = self.variables.iter().position(|(name, _)| name == variable);
        index.is_some_and(|index| self.used[index])
    }

    /// The named values that the expression may use.
    pub(crate) fn used_values(&self) -> impl Iterator<Item = &str> {
        self.plan.used_values.iter().map(|name| &**name)
    }

    /// Evaluates the expression.
    pub(crate) fn value<'a>(
        &'a self,
        bindings: &Bindings<'a>,
        named: Option<(&dyn NamedValues<'a>, usize)>,
        context: &mut Context,
    ) -> Eval<'a> {
        let frame = Frame::new(&self.variables, bindings, self.plan.slots, context);
        self.plan.root.eval(&mut frame.with_named(named))
    }

    /// Evaluates the expression to data. The cost is limited by upstream's limit for one evaluation
    /// and by the budget, which evaluations can share.
    ///
    /// # Errors
    /// The evaluation error, with upstream's message.
    pub fn evaluate(
        &self,
        bindings: &Bindings<'_>,
        budget: &mut Budget,
    ) -> Result<Value, EvalError> {
        let mut context = budget.begin();
        let result =
            self.evaluate_in(bindings, &mut context, |value, context| to_json(&value, context));
        budget.end(context);
        result
    }

    /// Evaluates the expression and passes the value to `then`.
    pub(crate) fn evaluate_in<'a, T>(
        &'a self,
        bindings: &Bindings<'a>,
        context: &mut Context,
        then: impl FnOnce(Val<'a>, &mut Context) -> Result<T, EvalError>,
    ) -> Result<T, EvalError> {
        then(self.value(bindings, None, context)?, context)
    }
}
