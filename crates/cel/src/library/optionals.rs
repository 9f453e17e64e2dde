//! Functions of optional values.

use std::sync::Arc;

use super::{no_overload, planned};
use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Guard::Typed;
use crate::functions::Row;
use crate::value::{Eval, Val};

pub(super) const FUNCTIONS: &[Row] = &[
    ("optional.of", Typed, of, &[("optional_of", "V -> optional_type(V)")]),
    (
        "optional.ofNonZeroValue",
        Typed,
        of_non_zero,
        &[("optional_ofNonZeroValue", "V -> optional_type(V)")],
    ),
    ("optional.none", Typed, |_, _| Ok(Val::none()), &[("optional_none", "-> optional_type(V)")]),
    ("hasValue", Typed, has_value, &[("optional_hasValue", ".optional_type(V) -> bool")]),
    ("value", Typed, value, &[("optional_value", ".optional_type(V) -> V")]),
    (
        "or",
        Typed,
        planned,
        &[("optional_or_optional", ".optional_type(V), optional_type(V) -> optional_type(V)")],
    ),
    ("orValue", Typed, planned, &[("optional_orValue_value", ".optional_type(V), V -> V")]),
    ("optional.unwrap", Typed, unwrap, &[("optional_unwrap", "list(optional_type(V)) -> list(V)")]),
    ("unwrapOpt", Typed, unwrap, &[("optional_unwrapOpt", ".list(optional_type(V)) -> list(V)")]),
    ("first", Typed, first, &[("list_first", ".list(V) -> optional_type(V)")]),
    ("last", Typed, last, &[("list_last", ".list(V) -> optional_type(V)")]),
];

fn of<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [value] => Ok(Val::some(value.clone())),
        _ => no_overload(),
    }
}

fn of_non_zero<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [value] if value.is_zero() => Ok(Val::none()),
        [value] => Ok(Val::some(value.clone())),
        _ => no_overload(),
    }
}

fn has_value<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [Val::Optional(inner)] => Ok(Val::Bool(inner.is_some())),
        _ => no_overload(),
    }
}

fn value<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [Val::Optional(Some(inner))] => Ok(Val::clone(inner)),
        [Val::Optional(None)] => Err(EvalError::new("optional.none() dereference")),
        _ => no_overload(),
    }
}

fn unwrap<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::List(list)] = args else { return no_overload() };
    context.work(list.len())?;
    let mut out = Vec::new();
    for item in list.iter() {
        match item? {
            Val::Optional(inner) => out.extend(inner.as_deref().cloned()),
            other => return Err(EvalError::new(format!("value {other} is not optional"))),
        }
    }
    Ok(Val::list(out))
}

fn at<'a>(args: &[Val<'a>], index: impl Fn(u64) -> Option<u64>) -> Eval<'a> {
    let [Val::List(list)] = args else { return no_overload() };
    let found = index(list.len()).and_then(|index| list.get(index)).transpose()?;
    Ok(Val::Optional(found.map(Arc::new)))
}

fn first<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    at(args, |_| Some(0))
}

fn last<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    at(args, |len| len.checked_sub(1))
}
