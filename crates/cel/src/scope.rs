//! The names that an expression can refer to: variables, functions, and types of constructible
//! values.

use std::sync::Arc;

use pintle_value::Str;

use crate::functions::Function;
use crate::library;
use crate::types::{Declaration, Type};
use crate::value::made;

/// The names that an expression can use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// The variables, in the order of declaration.
    pub(crate) variables: Vec<(Str, Arc<Declaration>)>,
    /// Whether the types of patches are declared.
    pub(crate) patches: bool,
}

impl Scope {
    pub(crate) const fn new() -> Self {
        Self { variables: Vec::new(), patches: false }
    }

    /// The type with this name, if expressions can construct its values.
    pub(crate) fn made_type(&self, name: &str) -> Option<Type> {
        (self.patches && made::is_type(name)).then(|| Type::Made(name.into()))
    }

    /// The function with this name, if expressions can call it.
    pub(crate) fn function(&self, name: &str) -> Option<&'static Function> {
        library::find(name).filter(|_| self.patches || !library::is_of_patches(name))
    }

    /// The index of the variable that is a composition.
    pub(crate) fn composed(&self) -> Option<usize> {
        let is_composed =
            |declaration: &Declaration| matches!(declaration, Declaration::Composed(_));
        self.variables.iter().position(|(_, declaration)| is_composed(declaration))
    }

    /// A variable's index and type.
    pub(crate) fn variable(&self, name: &str) -> Option<(usize, Type)> {
        let index = self.variables.iter().position(|(n, _)| n == name)?;
        Some((index, Type::of(&self.variables[index].1)))
    }

    /// A variable's declaration.
    pub(crate) fn declaration(&self, name: &str) -> Option<&Declaration> {
        self.variables.iter().find(|(n, _)| n == name).map(|(_, d)| &**d)
    }
}
