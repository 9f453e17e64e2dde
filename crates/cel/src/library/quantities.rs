//! Functions of resource quantities.

use std::cmp::Ordering;
use std::ops::{Add as _, Sub as _};
use std::sync::Arc;

use pintle_meta::{Quantity, quantity::Format};

use super::no_overload;
use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Guard::Typed;
use crate::functions::Row;
use crate::value::{Eval, Opaque, Val};

pub(super) const FUNCTIONS: &[Row] = &[
    ("quantity", Typed, quantity, &[("string_to_quantity", "string -> kubernetes.Quantity")]),
    ("isQuantity", Typed, is_quantity, &[("is_quantity_string", "string -> bool")]),
    ("sign", Typed, sign, &[("quantity_sign", "kubernetes.Quantity -> int")]),
    (
        "isGreaterThan",
        Typed,
        |context, args| order(context, args, |order| Val::Bool(order.is_gt())),
        &[
            ("quantity_is_greater_than", ".kubernetes.Quantity, kubernetes.Quantity -> bool"),
            ("semver_is_greater_than", ".kubernetes.Semver, kubernetes.Semver -> bool"),
        ],
    ),
    (
        "isLessThan",
        Typed,
        |context, args| order(context, args, |order| Val::Bool(order.is_lt())),
        &[
            ("quantity_is_less_than", ".kubernetes.Quantity, kubernetes.Quantity -> bool"),
            ("semver_is_less_than", ".kubernetes.Semver, kubernetes.Semver -> bool"),
        ],
    ),
    (
        "compareTo",
        Typed,
        |context, args| order(context, args, |order| Val::Int(order as i64)),
        &[
            ("quantity_compare_to", ".kubernetes.Quantity, kubernetes.Quantity -> int"),
            ("semver_compare_to", ".kubernetes.Semver, kubernetes.Semver -> int"),
        ],
    ),
    (
        "asApproximateFloat",
        Typed,
        as_float,
        &[("quantity_get_float", ".kubernetes.Quantity -> double")],
    ),
    ("asInteger", Typed, as_integer, &[("quantity_get_int", ".kubernetes.Quantity -> int")]),
    ("isInteger", Typed, is_integer, &[("quantity_is_integer", ".kubernetes.Quantity -> bool")]),
    (
        "add",
        Typed,
        |_, args| sum(args, Quantity::add),
        &[
            ("quantity_add", ".kubernetes.Quantity, kubernetes.Quantity -> kubernetes.Quantity"),
            ("quantity_add_int", ".kubernetes.Quantity, int -> kubernetes.Quantity"),
        ],
    ),
    (
        "sub",
        Typed,
        |_, args| sum(args, Quantity::sub),
        &[
            ("quantity_sub", ".kubernetes.Quantity, kubernetes.Quantity -> kubernetes.Quantity"),
            ("quantity_sub_int", ".kubernetes.Quantity, int -> kubernetes.Quantity"),
        ],
    ),
];

fn quantity<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(text)] = args else { return no_overload() };
    match parse(text) {
        Ok(quantity) => Ok(new(quantity, false)),
        Err(error) => Err(EvalError::new(error)),
    }
}

fn new<'a>(quantity: Quantity, calculated: bool) -> Val<'a> {
    Val::Opaque(Arc::new(Opaque::Quantity { quantity, calculated }))
}

/// Parses a quantity; unlike in data, surrounding white space is an error.
fn parse(text: &str) -> Result<Quantity, String> {
    if text.trim() != text {
        return "x".parse::<Quantity>().map_err(|error| error.to_string());
    }
    text.parse::<Quantity>().map_err(|error| error.to_string())
}

fn is_quantity<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(text)] = args else { return no_overload() };
    Ok(Val::Bool(parse(text).is_ok()))
}

/// The quantity of a value.
fn read(value: &Val<'_>) -> Result<Quantity, EvalError> {
    match value {
        Val::Opaque(opaque) => match &**opaque {
            Opaque::Quantity { quantity, .. } => Ok(*quantity),
            _ => no_overload(),
        },
        _ => no_overload(),
    }
}

fn sign<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [value] = args else { return no_overload() };
    Ok(Val::Int(read(value)?.signum().into()))
}

/// Compares two quantities, or two versions.
fn order<'a>(context: &mut Context, args: &[Val<'a>], tell: fn(Ordering) -> Val<'a>) -> Eval<'a> {
    let [Val::Opaque(a), Val::Opaque(b)] = args else { return no_overload() };
    a.visit(context)?;
    b.visit(context)?;
    match (&**a, &**b) {
        (Opaque::Quantity { quantity: a, .. }, Opaque::Quantity { quantity: b, .. }) => {
            Ok(tell(a.cmp(b)))
        }
        (Opaque::Semver(a), Opaque::Semver(b)) => Ok(tell(a.cmp(b))),
        _ => no_overload(),
    }
}

fn as_float<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [value] = args else { return no_overload() };
    Ok(Val::Double(read(value)?.to_f64()))
}

fn as_integer<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [value] = args else { return no_overload() };
    let integer = read(value)?.to_int();
    integer.map(Val::Int).ok_or_else(|| EvalError::new("cannot convert value to integer"))
}

fn is_integer<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [value] = args else { return no_overload() };
    Ok(Val::Bool(read(value)?.to_int().is_some()))
}

fn sum<'a>(args: &[Val<'a>], operation: fn(Quantity, Quantity) -> Quantity) -> Eval<'a> {
    let [a, b] = args else { return no_overload() };
    let b = match b {
        Val::Int(n) => Quantity::from_int(*n, Format::DecimalExponent),
        other => read(other)?,
    };
    Ok(new(operation(read(a)?, b), true))
}
