//! Expressions that are ready to be evaluated.

use pintle_value::Value;

use crate::ast::Expr;
use crate::authorizer::{Asker, Authorizer, ResourceCheck};
use crate::checker::{Checked, Reference};
use crate::composition::Composed;
use crate::context::{Budget, Context};
use crate::cost::Estimate;
use crate::declaration::Declaration;
use crate::environment::Environment;
use crate::error::EvalError;
use crate::plan::{Frame, Plan};
use crate::types::Type;
use crate::value::{Eval, Opaque, Val, to_json};

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

/// The values of variables, in the order of their declaration.
#[derive(Clone, Debug, Default)]
pub struct Bindings<'a> {
    values: Vec<Option<Bound<'a>>>,
}

/// The value of a variable.
#[derive(Clone, Debug)]
pub(crate) enum Bound<'a> {
    /// To be read by its declaration.
    Tree(&'a Value),
    Value(Val<'static>),
}

impl<'a> Bindings<'a> {
    /// No values yet.
    pub const fn new() -> Self {
        Self { values: Vec::new() }
    }

    /// The next variable's value. A variable that is declared as optional may have none.
    #[must_use]
    pub fn with(mut self, value: impl Into<Option<&'a Value>>) -> Self {
        self.values.push(value.into().map(Bound::Tree));
        self
    }

    /// Who is asked by the next variable, [`Declaration::AUTHORIZER`], about whom the evaluation is about;
    /// and by the one after it, [`Declaration::RESOURCE_CHECK`], about `resource`.
    #[must_use]
    pub fn with_authorizer(
        mut self,
        authorizer: &Arc<dyn Authorizer>,
        resource: ResourceCheck,
    ) -> Self {
        let asker = Asker { authorizer: Arc::clone(authorizer), account: None };
        let check = Opaque::ResourceCheck(asker.clone(), resource);
        for opaque in [Opaque::Authorizer(asker), check] {
            self.values.push(Some(Bound::Value(Val::Opaque(Arc::new(opaque)))));
        }
        self
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Bound<'a>> {
        self.values.get(index)?.as_ref()
    }
}

impl Program {
    pub(crate) fn new(
        plan: Plan,
        root: &Expr,
        checked: &Checked,
        estimate: Estimate,
        environment: &Environment,
    ) -> Self {
        let variables = environment.variables().to_vec();
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

    /// What an evaluation costs at least and at most.
    pub const fn estimate(&self) -> Estimate {
        self.estimate
    }

    /// Whether the expression uses the variable.
    pub fn uses(&self, variable: &str) -> bool {
        let index = self.variables.iter().position(|(name, _)| name == variable);
        index.is_some_and(|index| self.used[index])
    }

    /// The values of its composition that the expression may use.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = &str> {
        self.plan.wanted.iter().map(|name| &**name)
    }

    /// As [`Program::evaluate`], for an expression that uses `variables`.
    ///
    /// # Errors
    /// What went wrong, in upstream's words.
    pub fn evaluate_composed<'a>(
        &'a self,
        bindings: &Bindings<'a>,
        composed: &Composed<'a>,
        budget: &mut Budget,
    ) -> Result<Value, EvalError> {
        let limit = budget.left().min(crate::context::COST_MAX);
        let mut context = Context::new(limit);
        composed.prepare(bindings);
        let value = self.value(bindings, Some((composed, composed.end())), &mut context);
        let result = value.and_then(|value| to_json(&value, &mut context));
        let enough = budget.spend(composed.take_cost());
        budget.spend(context.cost());
        if enough { result } else { Err(EvalError::cost()) }
    }

    /// The expression's value.
    pub(crate) fn value<'a>(
        &'a self,
        bindings: &Bindings<'a>,
        composed: Option<(&Composed<'a>, usize)>,
        context: &mut Context,
    ) -> Eval<'a> {
        let frame = Frame::new(&self.variables, bindings, self.plan.slots, context);
        self.plan.root.eval(&mut frame.composing(composed))
    }

    /// The expression's value as data. One evaluation may cost as much as upstream lets it, and all
    /// that share the budget as much as that has.
    ///
    /// # Errors
    /// What went wrong, in upstream's words.
    pub fn evaluate(
        &self,
        bindings: &Bindings<'_>,
        budget: &mut Budget,
    ) -> Result<Value, EvalError> {
        let limit = budget.left().min(crate::context::COST_MAX);
        let mut context = Context::new(limit);
        let result =
            self.evaluate_in(bindings, &mut context, |value, context| to_json(&value, context));
        budget.spend(context.cost());
        result
    }

    /// Evaluates, and lets `then` see the value.
    pub(crate) fn evaluate_in<'a, T>(
        &'a self,
        bindings: &Bindings<'a>,
        context: &mut Context,
        then: impl FnOnce(Val<'a>, &mut Context) -> Result<T, EvalError>,
    ) -> Result<T, EvalError> {
        then(self.value(bindings, None, context)?, context)
    }
}
