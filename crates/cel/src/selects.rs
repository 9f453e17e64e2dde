//! Finds field selections in an expression by its syntax, before type checking.

use crate::ast::{Expr, Kind, Literal};
use crate::parser;
use crate::source::Issues;

/// Whether an expression contains `operand.field` or `operand.?field`; false if it does not parse.
pub fn selects(expression: &str, operand: &str, field: &str) -> bool {
    let (root, _) = parser::parse(expression, false, &mut Issues::new(expression));
    root.is_some_and(|root| has(&root, operand, field))
}

fn has(expr: &Expr, operand: &str, field: &str) -> bool {
    let is_operand = |expr: &Expr| expr.as_ident().is_some_and(|name| &**name == operand);
    let below = |expr: &Expr| has(expr, operand, field);
    match &expr.kind {
        Kind::Literal(_) | Kind::Ident(_) => false,
        Kind::Select(select) => {
            (is_operand(&select.operand) && &*select.field == field) || below(&select.operand)
        }
        Kind::Call(call) => {
            let is_optional = match call.args.as_slice() {
                [object, name] => {
                    let is_field =
                        matches!(name.as_literal(), Some(Literal::String(n)) if n == field);
                    &*call.function == "_?._" && is_operand(object) && is_field
                }
                _ => false,
            };
            is_optional || call.args.iter().chain(&call.target).any(below)
        }
        Kind::List(items) => items.iter().any(|item| below(&item.value)),
        Kind::Map(entries) => entries.iter().any(|e| below(&e.key) || below(&e.value)),
        Kind::Struct(made) => made.fields.iter().any(|field| below(&field.value)),
        Kind::Comprehension(fold) => {
            let parts = [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result];
            parts.into_iter().any(below)
        }
    }
}
