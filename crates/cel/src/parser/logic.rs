//! Chains of `&&` and `||`: `a && b && c && d` becomes `(a && b) && (c && d)`, so that long chains
//! do not make deep trees.

use crate::ast::{Expr, Id};

/// Builds the balanced tree of `terms`; `signs` are the ids and positions of the operators between
/// them.
pub(super) fn balance(function: &'static str, terms: Vec<Expr>, signs: &[(Id, u32)]) -> Expr {
    debug_assert_eq!(terms.len(), signs.len() + 1);
    let mut terms: Vec<Option<Expr>> = terms.into_iter().map(Some).collect();
    build(function, &mut terms, signs).expect("there is at least one term")
}

fn build(function: &'static str, terms: &mut [Option<Expr>], signs: &[(Id, u32)]) -> Option<Expr> {
    if signs.is_empty() {
        return terms.first_mut()?.take();
    }
    let middle = signs.len() / 2;
    let (left, right) = terms.split_at_mut(middle + 1);
    let left = build(function, left, &signs[..middle])?;
    let right = build(function, right, &signs[middle + 1..])?;
    let (id, at) = signs[middle];
    Some(super::call(id, at, function, vec![left, right]))
}
