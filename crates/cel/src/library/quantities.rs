//! Quantities of resources.

use std::sync::Arc;

use pintle_meta::Quantity;

use super::no_overload;
use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Guard::Typed;
use crate::functions::Row;
use crate::value::{Eval, Opaque, Val};

pub(super) const FUNCTIONS: &[Row] = &[
    ("quantity", Typed, quantity, &[("string_to_quantity", "string -> kubernetes.Quantity")]),
    ("isQuantity", Typed, is_quantity, &[("is_quantity_string", "string -> bool")]),
];

fn quantity<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(text)] = args else { return no_overload() };
    match text.parse::<Quantity>() {
        Ok(quantity) => Ok(Val::Opaque(Arc::new(Opaque::Quantity(quantity)))),
        Err(error) => Err(EvalError::new(error.to_string())),
    }
}

fn is_quantity<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(text)] = args else { return no_overload() };
    Ok(Val::Bool(text.parse::<Quantity>().is_ok()))
}
