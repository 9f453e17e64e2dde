//! Checks the types of comprehensions, to which macros expand.

use std::sync::Arc;

use super::Checker;
use crate::ast::{Comprehension, Expr};
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn fold(&mut self, fold: &Comprehension) -> Type {
        self.check(&fold.range);
        self.check(&fold.init);
        let range = self.unifier.resolve(&self.type_of(&fold.range), false);
        let accu = self.type_of(&fold.init);
        self.scopes.push((Arc::clone(&fold.accu), accu.clone()));
        let (first, second) = self.loop_types(fold, &range);
        self.scopes.push((Arc::clone(&fold.var), first));
        if let Some(var2) = &fold.var2 {
            self.scopes.push((Arc::clone(var2), second));
        }
        self.check(&fold.condition);
        self.assert_type(&fold.condition, &Type::Bool);
        self.check(&fold.step);
        self.assert_type(&fold.step, &accu);
        let loop_variables = 1 + usize::from(fold.var2.is_some());
        self.scopes.truncate(self.scopes.len() - loop_variables);
        self.check(&fold.result);
        self.scopes.pop();
        self.unifier.resolve(&self.type_of(&fold.result), false)
    }

    /// The types of the loop variables.
    fn loop_types(&mut self, fold: &Comprehension, range: &Type) -> (Type, Type) {
        let two = fold.var2.is_some();
        match range {
            Type::List(items) if two => (Type::Int, (**items).clone()),
            Type::List(items) => ((**items).clone(), Type::Error),
            Type::Map(pair) => (pair.0.clone(), pair.1.clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.unifier.assignable(&Type::Dyn, range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = "cannot be range of a comprehension (must be list, map, or dynamic)";
                self.wrong(fold.range.at, format!("expression of type '{other}' {message}"));
                (Type::Error, Type::Error)
            }
        }
    }

    fn assert_type(&mut self, expr: &Expr, expected: &Type) {
        let found = self.type_of(expr);
        if !self.unifier.assignable(expected, &found) {
            self.mismatch(expr.at, expected, &found);
        }
    }
}
