//! The environment that expressions are compiled against.

use std::sync::Arc;

use pintle_value::Str;

use crate::allowance::Allowance;
use crate::checker;
use crate::cost;
use crate::error::CompileError;
use crate::parser;
use crate::plan;
use crate::program::Program;
use crate::scope::Scope;
use crate::source::Issues;
use crate::types::Declaration;

/// The environment of Kubernetes v1.36 with the variables of one use.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    scope: Scope,
    bindings: bool,
}

impl Environment {
    /// An environment without variables.
    pub const fn new() -> Self {
        Self { scope: Scope::new(), bindings: false }
    }

    /// Declares a variable. The values in an evaluation's [`Bindings`](crate::Bindings) are in the
    /// order of the declarations.
    #[must_use]
    pub fn with(mut self, name: impl Into<Str>, declaration: impl Into<Arc<Declaration>>) -> Self {
        self.scope.variables.push((name.into(), declaration.into()));
        self
    }

    /// Enables the macro `cel.bind`, which gives a value a name. Kubernetes enables the macro only
    /// for device selectors.
    #[must_use]
    pub const fn with_bindings(mut self) -> Self {
        self.bindings = true;
        self
    }

    /// Enables the types from which patches are constructed: `Object`, the types of its fields, and
    /// `JSONPatch`.
    #[must_use]
    pub const fn with_patches(mut self) -> Self {
        self.scope.patches = true;
        self
    }

    /// Parses, checks and plans an expression, and estimates its cost.
    ///
    /// # Errors
    /// The problems of the expression, with upstream's messages.
    pub fn compile(&self, expression: &str) -> Result<Program, CompileError> {
        self.compile_within(&mut Allowance::unlimited(), expression)
    }

    /// Like [`Self::compile`], for one of several expressions that share an allowance.
    ///
    /// # Errors
    /// The problems of the expression, or [`CompileError::Spent`].
    pub fn compile_within(
        &self,
        allowance: &mut Allowance,
        expression: &str,
    ) -> Result<Program, CompileError> {
        if allowance.is_spent() {
            return Err(CompileError::Spent);
        }
        let mut issues = Issues::new(expression);
        let (root, nodes) = parser::parse(expression, self.bindings, &mut issues);
        allowance.spend_nodes(nodes);
        let Some(root) = root else { return Err(issues.sorted().into()) };
        let checked = checker::check(&root, nodes, &self.scope, &mut issues, allowance);
        let Some(checked) = checked else { return Err(issues.sorted().into()) };
        let estimate = cost::estimate(&root, &checked, &self.scope);
        let plan = plan::plan(&root, &checked, self.scope.composed(), allowance)
            .map_err(|why| CompileError::Constant(why, checked.type_of(&root).clone()))?;
        Ok(Program::new(plan, &root, &checked, estimate, &self.scope))
    }
}
