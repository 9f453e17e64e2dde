//! Texts.

use super::no_overload;
use crate::context::Context;
use crate::functions::Guard::Own;
use crate::functions::Row;
use crate::value::{Eval, Val};

pub(super) const FUNCTIONS: &[Row] = &[
    ("contains", Own, contains, &[("contains_string", ".string, string -> bool")]),
    ("startsWith", Own, starts_with, &[("starts_with_string", ".string, string -> bool")]),
    ("endsWith", Own, ends_with, &[("ends_with_string", ".string, string -> bool")]),
];

fn both<'a>(args: &[Val<'a>], holds: impl Fn(&str, &str) -> bool) -> Eval<'a> {
    match args {
        [Val::String(a), Val::String(b)] => Ok(Val::Bool(holds(a, b))),
        _ => no_overload(),
    }
}

fn contains<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    both(args, |text, part| text.contains(part))
}

fn starts_with<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    both(args, |text, prefix| text.starts_with(prefix))
}

fn ends_with<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    both(args, |text, suffix| text.ends_with(suffix))
}
