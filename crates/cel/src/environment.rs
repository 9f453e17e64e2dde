//! What expressions are compiled against: the functions of Kubernetes' environment, and variables.

use std::sync::Arc;

use pintle_value::Str;

use crate::checker;
use crate::cost;
use crate::declaration::Declaration;
use crate::error::CompileError;
use crate::functions::{self, Function};
use crate::library;
use crate::parser;
use crate::plan;
use crate::program::Program;
use crate::source::Issues;
use crate::types::Type;
use crate::value::made;

/// The environment of Kubernetes v1.36 with the variables of one use.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: Vec<(Str, Arc<Declaration>)>,
    bindings: bool,
    patches: bool,
}

impl Environment {
    /// No variables yet.
    pub const fn new() -> Self {
        Self { variables: Vec::new(), bindings: false, patches: false }
    }

    /// Declares a variable; bindings give the values in the order of declaration.
    #[must_use]
    pub fn with(mut self, name: impl Into<Str>, declaration: impl Into<Arc<Declaration>>) -> Self {
        self.variables.push((name.into(), declaration.into()));
        self
    }

    /// With `cel.bind`, which gives a value a name. Kubernetes has it where devices are selected, and
    /// nowhere else.
    #[must_use]
    pub const fn with_bindings(mut self) -> Self {
        self.bindings = true;
        self
    }

    /// With the types of which patches are made: `Object`, those of its fields, and `JSONPatch`.
    #[must_use]
    pub const fn with_patches(mut self) -> Self {
        self.patches = true;
        self
    }

    /// The type of this name that expressions can make values of.
    pub(crate) fn made_type(&self, name: &str) -> Option<Type> {
        (self.patches && made::is_type(name)).then(|| Type::Made(name.into()))
    }

    /// The function of this name that expressions can call.
    pub(crate) fn function(&self, name: &str) -> Option<&'static Function> {
        functions::find(name).filter(|_| self.patches || !library::is_of_patches(name))
    }

    /// The variable that is a composition.
    fn composed(&self) -> Option<usize> {
        let is_composed =
            |declaration: &Declaration| matches!(declaration, Declaration::Composed(_));
        self.variables.iter().position(|(_, declaration)| is_composed(declaration))
    }

    /// A variable's index and type.
    pub(crate) fn variable(&self, name: &str) -> Option<(usize, Type)> {
        let index = self.variables.iter().position(|(n, _)| n == name)?;
        Some((index, Type::of(&self.variables[index].1)))
    }

    pub(crate) fn declaration(&self, name: &str) -> Option<&Declaration> {
        self.variables.iter().find(|(n, _)| n == name).map(|(_, d)| &**d)
    }

    pub(crate) fn variables(&self) -> &[(Str, Arc<Declaration>)] {
        &self.variables
    }

    /// Parses, checks and plans an expression, and estimates what it will cost.
    ///
    /// # Errors
    /// What is wrong with it, in upstream's words.
    pub fn compile(&self, expression: &str) -> Result<Program, CompileError> {
        let mut issues = Issues::new(expression);
        let Some(parsed) = parser::parse(expression, self.bindings, &mut issues) else {
            return Err(issues.sorted().into());
        };
        let checked = checker::check(&parsed.root, parsed.nodes, self, &mut issues);
        let Some(checked) = checked else { return Err(issues.sorted().into()) };
        let estimate = cost::estimate(&parsed.root, &checked, self);
        let plan =
            plan::plan(&parsed.root, &checked, self.composed()).map_err(CompileError::Constant)?;
        Ok(Program::new(plan, &parsed.root, &checked, estimate, self))
    }
}
